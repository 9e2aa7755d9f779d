"""``protgraph view``: write a protein graph as an interactive page, or for Mol*."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.output_path import Overwrite, check_output, set_aside_if_failed
from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError, suggest

if TYPE_CHECKING:
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure import ReadOptions, Residues

__all__ = ["view_command"]

#: Format → suffix of the output file.
_SUFFIX = {"html": ".html", "molviewspec": ".mvsj"}


@reads_structures()
def view_command(
    file: Annotated[str, typer.Argument(help="Structure file (PDB, mmCIF, BinaryCIF, .gz), or pdb:1ubq, af:P69905.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file, .html, or .mvsj for molviewspec.")],
    edges: Annotated[
        str, typer.Option(help="Edge featurizers, comma-separated: 'contact,knn:k=8,of=cb,disulfide'.")
    ] = "",
    color: Annotated[
        str | None,
        typer.Option(
            help="Values that color the residues: chain, residue, seq_pos, b_factor, a featurizer (sasa, dihedral:4), "
            "or a predicted column.  [default: the first predicted column, or chain]"
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Trained model, by name or file, whose predictions are shown.")
    ] = None,
    attention: Annotated[
        bool, typer.Option("--attention", help="Show the strongest attention weights of the trained model as edges.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="Output format: html, or molviewspec for Mol*.")] = "html",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Write a protein graph as an interactive 3D page that works offline, or as a MolViewSpec state for Mol*.

    The legend of the page hides and shows chains, kinds of edges and categories. Hovering over a residue shows its
    name and values. With --checkpoint, residues are colored by the predictions of the model; --color p_H selects one
    of its columns. Pages require plotly: pip install "protgraph-pyg[view]".

    \b
    Examples:
      protgraph view 1ubq.cif --edges contact,hydrogen_bond -o 1ubq.html
      protgraph view pdb:1ubq --edges knn:k=8 --color dssp -o 1ubq.html
      protgraph view 1ubq.cif --checkpoint gat.safetensors -o predicted.html
      protgraph view 1ubq.cif --color b_factor --format molviewspec -o 1ubq.mvsj
    """
    if form not in _SUFFIX:
        raise OptionError(f"--format {form!r}.{suggest(form, _SUFFIX)} Allowed: {', '.join(_SUFFIX)}.")
    if attention and checkpoint is None:
        raise OptionError("--attention requires a trained model. Add --checkpoint FILE.")
    if form == "molviewspec" and (read.assembly is not None or read.model_number != 1):
        raise OptionError(
            "--format molviewspec shows the file unmodified. Remove --assembly and --model-number, or use html."
        )
    out = check_output(out, inputs=[file, checkpoint], overwrite=overwrite, suffixes=[_SUFFIX[form]])
    with set_aside_if_failed(out, overwrite=overwrite):
        _write(file, out, form, checkpoint, color, edges, read, attention=attention)


def _write(
    file: str,
    out: Path,
    form: str,
    checkpoint: Path | None,
    color: str | None,
    edges: str,
    read: ReadOptions,
    *,
    attention: bool,
) -> None:
    from protgraph.structure.io import open_source, read_residues
    from protgraph.train.checkpoint import as_checkpoint
    from protgraph.visualization import view, write_molviewspec, write_page

    trained = None if checkpoint is None else as_checkpoint(checkpoint)
    content = open_source(file)
    protein = read_residues(content, read if trained is None else read.with_ligands(trained.model.plan.needs_ligands))
    scene = view(protein, edges=parse_edges(edges), color=color, checkpoint=trained, attention=attention)
    if form == "html":
        write_page(scene, out)
    else:
        write_molviewspec(scene, out, source=content)
    counts = "".join(f", {len(e.pairs)} {e.name}" for e in scene.edges)
    typer.echo(f"{_summary(scene.residues)}{counts}, colored by {scene.color.name} → {out}")


def _summary(residues: Residues) -> str:
    from protgraph.wording import count_noun

    chains = count_noun(len(residues.chain_names), "chain")
    return f"{residues.name}: {count_noun(len(residues), 'residue')} of {chains}"


def parse_edges(text: str) -> list[ComponentSpec]:
    """Parse ``contact,knn:k=8,of=cb,disulfide``: parts with "=" are options of the name before them.

    Raises
    ------
    OptionError
        An option has no name before it.

    Examples
    --------
    >>> [n.name for n in parse_edges("contact,knn:k=8,of=cb,disulfide")]
    ['contact', 'knn', 'disulfide']
    """
    from protgraph.cli.feature_options import parse_feature

    features: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if "=" not in part or ":" in part:
            features.append(part)
        elif features and ":" in features[-1]:
            features[-1] += f",{part}"
        else:
            raise OptionError(
                f"--edges {text!r}: option {part!r} has no featurizer before it. Write e.g. 'contact,knn:k=8,of=cb'."
            )
    return [parse_feature(feature) for feature in features]
