"""``protgraph view``: a protein graph to look at, in a page on its own or in Mol*."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure import Residues
    from protgraph.view.scene import Color, EdgeSet

__all__ = ["view_command"]


@reads_structures()
def view_command(
    file: Annotated[str, typer.Argument(help="Structure file (PDB, mmCIF, BinaryCIF, .gz), or pdb:1ubq, af:P69905.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .html or .mvsj.")],
    edges: Annotated[
        str, typer.Option(help="Edge featurizers with commas between: 'contact,knn:k=8,of=cb,disulfide'.")
    ] = "",
    color: Annotated[
        str | None, typer.Option(help="chain, residue, seq_pos, b_factor, a featurizer (sasa, dihedral:4), predicted.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Show what this trained model predicts.")] = None,
    attention: Annotated[bool, typer.Option("--attention", help="Its strongest attention as edges, by width.")] = False,
    form: Annotated[str, typer.Option("--format", help="html, or molviewspec for Mol*.")] = "html",
    *,
    reading: dict[str, Any],
) -> None:
    """Write a protein graph as a page that needs no network, to turn, to zoom and to point at.

    The legend switches chains, kinds of edges and categories on and off; pointing at a residue shows its name and
    values. With --checkpoint residues have the color of what the model predicts, or of one of its columns (--color
    p_H). Needs plotly: the extra "view".

    \b
    Examples:
      protgraph view 1ubq.cif --edges contact,hydrogen_bond --color sasa -o 1ubq.html
      protgraph view pdb:1ubq --edges knn:k=8 --color dssp -o 1ubq.html
      protgraph view 1ubq.cif --checkpoint gat.safetensors -o predicted.html
      protgraph view 1ubq.cif --color b_factor --format molviewspec -o 1ubq.mvsj
    """
    from protgraph.structure import clean, load_structure
    from protgraph.structure.io.accession import as_accession
    from protgraph.structure.io.fetch import fetch
    from protgraph.view.model_colors import attended, predicted
    from protgraph.view.molviewspec import write_molviewspec
    from protgraph.view.page import write_page
    from protgraph.view.scene import Scene, is_color, make_scene

    if form not in ("html", "molviewspec"):
        raise OptionError(f"format {form!r} is neither html nor molviewspec")
    if attention and checkpoint is None:
        raise OptionError("--attention is of a trained model; give --checkpoint")
    if form == "molviewspec" and (reading["assembly"] is not None or reading["model"] != 1):
        raise OptionError("MolViewSpec shows the file as it is: leave --assembly and --model-number, or take html")
    accession = as_accession(file)
    path = Path(file) if accession is None else fetch(accession)
    structure = load_structure(path, **reading)
    residues = clean(structure)
    nodes = parse_edges(edges)
    columns: dict[str, Color] = {} if checkpoint is None else predicted(checkpoint, path, residues, reading=reading)
    chosen = color or next(iter(columns), "chain")
    if columns and chosen not in columns and not is_color(chosen):
        raise OptionError(f"--color {chosen!r} is no featurizer, nor does the model say it: {', '.join(columns)}")
    scene = make_scene(residues, edges=nodes, color=columns.pop(chosen, chosen), shown=list(columns.values()))
    drawn: tuple[EdgeSet, ...] = scene.edges
    if attention:
        drawn = (*drawn, attended(checkpoint, path, residues, reading=reading))
    scene = Scene(residues, scene.color, scene.shown, drawn)
    if form == "html":
        write_page(scene, out)
    else:
        write_molviewspec(scene, out, source=path, form=structure.format)
    counts = "".join(f", {len(e.pairs)} {e.name}" for e in drawn)
    typer.echo(f"{_named(residues)}{counts}, by {scene.color.name} → {out}")


def _named(residues: Residues) -> str:
    from protgraph.cli.wording import count_noun

    return f"{residues.name}: {count_noun(len(residues), 'residue')} of {count_noun(len(residues.chain_names), 'chain')}"


def parse_edges(text: str) -> list[ComponentSpec]:
    """Nodes from ``contact,knn:k=8,of=cb,disulfide``: what has a "=" is an option of the name before it.

    Raises
    ------
    OptionError
        An option stands before any name that takes it.

    Examples
    --------
    >>> [n.name for n in parse_edges("contact,knn:k=8,of=cb,disulfide")]
    ['contact', 'knn', 'disulfide']
    """
    from protgraph.cli.featurize import parse_feature

    features: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if "=" not in part or ":" in part:
            features.append(part)
        elif features and ":" in features[-1]:
            features[-1] += f",{part}"
        else:
            raise OptionError(f"--edges {text!r}: {part!r} is nobody's option; write 'contact,knn:k=8,of=cb'")
    return [parse_feature(feature) for feature in features]
