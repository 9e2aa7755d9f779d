"""``protgraph attention``: what a model attends to in one's own protein, as pictures and a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.read_options import reads_structures

if TYPE_CHECKING:
    from protgraph.view.attention_report import AttentionReport

__all__ = ["attention_command"]

#: Heads in the printed table; all are in the CSV.
_SHOWN = 12


@reads_structures()
def attention_command(
    model: Annotated[str, typer.Argument(help="Model by name ('transformer', 'gat.v1'), or a checkpoint file.")],
    file: Annotated[Path, typer.Argument(help="Structure file (PDB, mmCIF, BinaryCIF, .gz), or FASTA.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")],
    separation: Annotated[int, typer.Option(help="Contacts count from this many residues apart.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the weights of a model by name, which is untrained.")] = 0,
    *,
    reading: dict[str, Any],
) -> None:
    """Draw the attention of every layer and head with the contacts of the structure, and say how far they agree.

    OUT gets a heat map for each layer, heads.png and heads.csv (correlation with contacts, symmetrized and corrected as
    Rao et al. 2021; with distance along the sequence) and positions.png, the model's positional encodings. A file of
    several proteins, or a model of single chains, makes a folder for each.

    \b
    Examples:
      protgraph attention transformer 1ubq.cif -o attention
      protgraph attention trained.safetensors 1ubq.cif --chain A -o attention
    """
    from protgraph import registry
    from protgraph.cli.model_argument import find_checkpoint
    from protgraph.errors import StructureFileError
    from protgraph.model import build_model
    from protgraph.train.files import read_proteins
    from protgraph.view.attention_report import write_attention

    trained = find_checkpoint(model)
    if trained is None:
        built, name = build_model(model, registry.tasks.get("secondary_structure").target, seed=seed), model
        given = {}
    else:
        built, name = trained.model, f"{trained.model.spec.name} ({Path(model).name})"
        given = {"hidden": trained.hidden, "one_chain": trained.one_chain, "visible_types": trained.visible_types}
    failures: list = []
    proteins = list(read_proteins([file], built.plan, failures, **reading, **given))
    if failures:
        raise StructureFileError(f"{failures[0].file} {failures[0].id}".rstrip() + f": {failures[0].reason}")
    for number, p in enumerate(proteins, 1):
        title = f"{name}{'' if trained else ', untrained,'} on {p.residues.name}, {len(p.residues)} residues"
        own = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{number}_{p.residues.name}_{p.chains}").strip("_")
        folder = out if len(proteins) == 1 else out / own
        made = write_attention(built, p.residues, p.graph, folder, title=title, separation=separation)
        _print(title, made)


def _print(title: str, made: AttentionReport) -> None:
    """The heads that agree best with contacts or, without a structure, all in order; and what was written."""
    from math import isnan

    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    heads = sorted(made.heads, key=lambda r: -r.r_contact if not isnan(r.r_contact) else 2.0)
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("layer", overflow="fold")
    for heading in ("head", "r contact", "P@L", "P@L/5", "by chance", "r separation", "mean sep."):
        table.add_column(heading, justify="right", no_wrap=True)
    for r in heads[:_SHOWN]:
        values = (r.r_contact, r.p_at_l, r.p_at_l5, r.prevalence, r.r_separation)
        numbers = ["–" if isnan(v) else f"{v:z.3f}" for v in values]
        table.add_row(r.layer, str(r.head), *numbers, "–" if isnan(r.mean_separation) else f"{r.mean_separation:.1f}")
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table, highlight=False, markup=False)
    if len(heads) > _SHOWN:
        typer.echo(f"and {len(heads) - _SHOWN} heads more; all are in heads.csv")
    if not made.positions:
        typer.echo("no positional encoding to draw")
    typer.echo(f"{len(made.files)} files → {made.files[0].parent}")
