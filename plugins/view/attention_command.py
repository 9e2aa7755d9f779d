"""``protgraph attention``: attention of a model in a protein, as figures and a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import (
    Overwrite,
    SetValues,
    check_output_folder,
    find_checkpoint,
    find_model,
    print_reader_notes,
    reads_structures,
    text_console,
)

if TYPE_CHECKING:
    from protgraph_plugins.view import AttentionReport

    from protgraph.featurize import Failure
    from protgraph.structure import ReadOptions

__all__ = ["attention_command"]

ENTRY_POINTS = {"protgraph.commands": {"attention": "attention_command"}}

#: Number of heads in the printed table; the CSV has all.
_SHOWN = 12


@reads_structures()
def attention_command(
    model: Annotated[str, typer.Argument(help="Model name ('transformer', 'gat.v1'), TOML file or checkpoint file.")],
    file: Annotated[Path, typer.Argument(help="Structure file (PDB, mmCIF, BinaryCIF, .gz) or FASTA file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder.")],
    settings: SetValues = None,
    separation: Annotated[int, typer.Option(help="Minimum separation of contacts within a chain, residues.")] = 6,
    seed: Annotated[int, typer.Option(help="Seed of the random weights of an untrained model.")] = 0,
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Plot the attention of every layer and head, and its agreement with the contacts of the structure.

    OUT receives a heat map per layer, heads.png and heads.csv (correlation with contacts, symmetrized and corrected
    as in Rao et al. 2021, and with sequence separation), and positions.png with the positional encodings of the
    model. A file with several proteins, or a model of single chains, gets one folder per protein.

    \b
    Examples:
      protgraph attention transformer 1ubq.cif -o attention
      protgraph attention trained.safetensors 1ubq.cif --chain A -o attention
    """
    from protgraph_plugins.view import write_attention

    from protgraph.errors import StructureFileError
    from protgraph.featurize import ModelInputs, iter_graphs, successes
    from protgraph.inference import featurized_proteins
    from protgraph.model import build_model
    from protgraph.registry import tasks

    check_output_folder(out, inputs=[model, file], overwrite=overwrite)
    trained = find_checkpoint(model, settings)
    failures: list[Failure] = []
    if trained is None:
        network = find_model(model, settings)
        built, name = build_model(network, tasks.get("secondary_structure").target, seed=seed), f"{model}, untrained,"
        results = successes(iter_graphs(file, built.plan, read=read, step=ModelInputs()), failures)
    else:
        built, name = trained.single_model("attention"), f"{trained.model.spec.name} ({Path(model).name})"
        results = featurized_proteins(trained, file, failures, [], read=read, jobs=1)
    proteins = list(results)
    if failures:
        raise StructureFileError(str(failures[0]))
    print_reader_notes({p.source: p.residues.report for p in proteins})
    for number, protein in enumerate(proteins, 1):
        residues = protein.residues
        folder = out
        if len(proteins) > 1:
            folder /= re.sub(r"[^A-Za-z0-9.-]+", "_", f"{number}_{residues.name}_{protein.chains}").strip("_")
        title = f"{name} on {residues.name}, {len(residues)} residues"
        report = write_attention(built, residues, protein.graph, folder, title=title, separation=separation)
        _print(title, report)


def _print(title: str, report: AttentionReport) -> None:
    """Print the heads with the best agreement with contacts (without a structure, in order), and the output folder."""
    from math import isnan

    from rich.box import SIMPLE
    from rich.table import Table

    heads = sorted(report.heads, key=lambda r: -r.r_contact if not isnan(r.r_contact) else 2.0)
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("layer", overflow="fold")
    for heading in ("head", "r\ncontact", "P@L", "P@L/5", "prevalence", "r\nseparation", "mean\nseparation"):
        table.add_column(heading, justify="right", no_wrap=True)
    for r in heads[:_SHOWN]:
        values = (r.r_contact, r.p_at_l, r.p_at_l5, r.prevalence, r.r_separation)
        numbers = ["–" if isnan(v) else f"{v:z.3f}" for v in values]
        table.add_row(r.layer, str(r.head), *numbers, "–" if isnan(r.mean_separation) else f"{r.mean_separation:.1f}")
    text_console().print(table)
    if len(heads) > _SHOWN:
        typer.echo(f"{len(heads) - _SHOWN} more heads in heads.csv")
    if not report.positions:
        typer.echo("the model has no positional encoding")
    typer.echo(f"{len(report.files)} files → {report.files[0].parent}")
