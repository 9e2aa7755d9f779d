"""``protgraph view``: write a protein as an interactive page, or as a script for a molecular viewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli import (
    Overwrite,
    check_output,
    model_names,
    parse_feature,
    print_reader_notes,
    reads_structures,
    with_standard_input,
)
from protgraph.errors import OptionError, suggest

if TYPE_CHECKING:
    from protgraph.registry import ComponentSpec
    from protgraph.structure import ReadOptions

__all__ = ["view_command"]

ENTRY_POINTS = {"protgraph.commands": {"view": "view_command"}}

#: Format → suffix of the output file.
_SUFFIX = {"html": ".html", "molviewspec": ".mvsj", "pymol": ".pml", "chimerax": ".cxc"}


@reads_structures()
def view_command(
    files: Annotated[
        list[str],
        typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), folders, pdb:1ubq or '-'. One page each."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Output file: .html, .mvsj, .pml or .cxc; for several structures a folder.  [default: name of the "
            "structure in this folder]",
        ),
    ] = None,
    prediction: Annotated[
        list[Path] | None,
        typer.Option(
            help="Trained model, by name or file, whose predictions are shown; 'a,b' or repeat for two side by side."
        ),
    ] = None,
    attribution: Annotated[
        bool, typer.Option("--attribution", help="Also compute how much each residue contributes to the prediction.")
    ] = False,
    labels: Annotated[
        str | None, typer.Option(help="Table of true labels, shown beside the prediction: file, chain, res_id, label.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Label column of the table, if it has several.")] = None,
    color: Annotated[
        str | None,
        typer.Option(
            help="Values that color the residues: chain, residue, seq_pos, b_factor, a featurizer (sasa, dihedral:4), "
            "or a predicted column.  [default: attributions, the first predicted column, labels, or chain]"
        ),
    ] = None,
    edges: Annotated[
        str, typer.Option(help="Edge featurizers, comma-separated: 'contact,knn:k=8,of=cb,disulfide'.")
    ] = "",
    attention: Annotated[
        bool, typer.Option("--attention", help="Show the strongest attention weights of the trained model as edges.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", help="Output format: html, or a script: pymol, chimerax, molviewspec (Mol*).")
    ] = "html",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Write a protein with predictions, labels and graph edges as an interactive 3D page, or as a script for a viewer.

    The page shows cartoon, sticks, surface and ligands with Mol*, and works offline. Its lists select the color and a
    second picture beside the first one; the sequence selects residues. Pages require the extra view:
    pip install "protgraph-pyg[view]".

    \b
    Examples:
      protgraph view 1ubq.cif --prediction dna_site
      protgraph view 1ubq.cif --prediction dna_site,ligand_site -o both.html
      protgraph view 1ubq.cif 1aki.cif --prediction ligand_site -o pages/
      protgraph view 1ubq.cif --prediction dna_site --attribution -o why.html
      protgraph view 1ubq.cif --prediction ligand_site --labels labels.csv -o compared.html
      protgraph view 1ubq.cif --edges contact,hydrogen_bond --color sasa -o 1ubq.html
      protgraph view 1ubq.cif --color b_factor --format pymol -o 1ubq.pml
    """
    from protgraph.structure.io import expand_files

    prediction = [Path(name) for argument in prediction or () for name in model_names(str(argument))]
    _check_form(form, read)
    _check_options(prediction, {"--attention": attention, "--attribution": attribution})
    sources = expand_files(with_standard_input([Path(file) for file in files]))
    paths = _pages(sources, out, _SUFFIX[form])
    for path in paths:
        check_output(path, inputs=[*sources, *prediction, labels], overwrite=overwrite, suffixes=[_SUFFIX[form]])
    options = {"prediction": prediction or None, "attribution": attribution, "labels": labels, "label": label}
    for source, path in zip(sources, paths, strict=True):
        _write(source, path, form, read, edges, {**options, "color": color, "attention": attention})


def _check_options(prediction: Sequence[Path], of_one_model: Mapping[str, bool]) -> None:
    """Raise :class:`OptionError` for options that need exactly one prediction."""
    for option, is_set in of_one_model.items():
        if is_set and not prediction:
            raise OptionError(f"{option} requires a trained model. Add --prediction MODEL.")
        if is_set and len(prediction) > 1:
            raise OptionError(f"{option}: {len(prediction)} models. Allowed: one --prediction.")


def _pages(sources: Sequence[str], out: Path | None, suffix: str) -> list[Path]:
    """Return the output file of each structure.

    Raises
    ------
    OptionError
        There are several structures and ``out`` is a file, or two of them have the same name.
    """
    if len(sources) == 1 and out is not None:
        return [out]
    if out is not None and out.suffix:
        raise OptionError(f"--out {str(out)!r}: {len(sources)} structures need a folder. Give a name without a suffix.")
    paths = [(out or Path()) / (_stem(source) + suffix) for source in sources]
    if len(set(paths)) < len(paths):
        raise OptionError(f"two of {len(sources)} structures have the same name. Draw them one at a time with --out.")
    return paths


def _stem(file: str) -> str:
    """Return the name of a structure without folder and suffixes, e.g. "1ubq" of pdb:1ubq and a/1ubq.cif.gz."""
    return Path(file.partition(":")[2] or file).name.split(".")[0]


def _check_form(form: str, read: ReadOptions) -> None:
    if form not in _SUFFIX:
        raise OptionError(f"--format {form!r}.{suggest(form, _SUFFIX)} Allowed: {', '.join(_SUFFIX)}.")
    if form != "html" and (read.assembly is not None or read.model_number != 1):
        raise OptionError(
            f"--format {form} shows the file unmodified. Remove --assembly and --model-number, or use html."
        )


def _write(file: str, out: Path, form: str, read: ReadOptions, edges: str, options: dict[str, Any]) -> None:
    from protgraph_plugins.view import (
        limit_scene,
        molstar_script,
        view,
        write_molviewspec,
        write_page,
        write_scene_chimerax,
        write_scene_pymol,
    )

    from protgraph.structure.io import open_source, read_residues
    from protgraph.wording import count_noun, note_line

    if form == "html":
        molstar_script()  # raises before the model runs if the extra is missing
    content = open_source(file)
    residues = read_residues(content, read.with_ligands())
    print_reader_notes({file: residues.report.without("models")})  # the scene has the note of models
    scene = view(residues, edges=parse_edges(edges), **options)
    if form == "html":
        scene = limit_scene(scene)  # with notes of what is left out
        write_page(scene, out)
    else:
        scripts = {"molviewspec": write_molviewspec, "pymol": write_scene_pymol, "chimerax": write_scene_chimerax}
        scripts[form](scene, out, source=content)
    for note in scene.notes:
        typer.echo(note_line(note))
    chains = count_noun(len(scene.residues.chain_names), "chain")
    summary = f"{scene.residues.name}: {count_noun(len(scene.residues), 'residue')} of {chains}"
    counts = "".join(f", {len(edges.pairs)} {edges.name}" for edges in scene.edges)
    beside = f", beside it {scene.beside}" if scene.beside else ""
    typer.echo(f"{summary}{counts}, colored by {scene.color.name}{beside} → {out}")


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
    features: list[str] = []
    for entry in filter(None, map(str.strip, text.split(","))):
        if "=" not in entry or ":" in entry:
            features.append(entry)
        elif features and ":" in features[-1]:
            features[-1] += f",{entry}"
        else:
            raise OptionError(
                f"--edges {text!r}: option {entry!r} has no featurizer before it. Write e.g. 'contact,knn:k=8,of=cb'."
            )
    return [parse_feature(feature) for feature in features]
