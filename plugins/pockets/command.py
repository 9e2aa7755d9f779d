"""``protgraph pockets``: find where small molecules bind, and describe the pockets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import (
    Overwrite,
    check_output_folder,
    end_with_files_left,
    print_reader_notes,
    progress_bar,
    reads_structures,
    report_failures,
    with_standard_input,
)
from protgraph.errors import Interrupted, ProtgraphError

if TYPE_CHECKING:
    from protgraph_plugins.pockets.find import PocketFinder, ProteinPockets

    from protgraph.featurize import Failure
    from protgraph.structure import ReadOptions

__all__ = ["pockets_command"]
ENTRY_POINTS = {"protgraph.commands": {"pockets": "pockets_command"}}

_PRINTED = 5  # pockets of a file


@reads_structures(deferred=True)
def pockets_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Structure files (PDB, mmCIF, BinaryCIF, .gz), folders, patterns, pdb:1aki, @LIST or '-'."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")],
    model: Annotated[
        str,
        typer.Option(help="Trained model with one yes/no label per residue; 'none' for geometry alone."),
    ] = "ligand_site",
    pages: Annotated[
        bool, typer.Option("--pages/--no-pages", help="Write a page and scripts for viewers for each structure.")
    ] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Find pockets where small molecules bind: ranked, with probability, center, volume, lining residues and atoms.

    Pockets are clusters of alpha spheres (empty spheres through four atoms), weighted by the probabilities that the
    model gives to the residues around them. The probability of a pocket is calibrated on proteins with known ligands.
    Water, ligands and hydrogens in the file change nothing; columns say which ligands of the file are in a pocket. In
    models that declare pLDDT, residues below 70 count like others; their number in each pocket is stated.

    OUT has pockets.csv, pockets.parquet and pockets.json with all structures, and for each structure NAME.pockets.cif
    (a pseudo-atom per pocket), NAME.html (Mol*: a click on a row of its table zooms), NAME.pml (PyMOL) and NAME.cxc
    (ChimeraX). Pages require the extra view; without it, they are left out.

    Chains of fewer than 30 residues together are refused. Files that fail are listed in OUT/pockets.csv.failures.csv,
    and the others continue; the exit code is 1 (2 if all fail).

    \b
    Examples:
      protgraph pockets 1aki.cif -o out
      protgraph pockets structures/ -o out --no-pages
      protgraph pockets 1aki.cif --model none -o geometry
      protgraph pockets 4hhb.cif --assembly 1 -o tetramer
    """
    from protgraph_plugins.pockets.find import PocketFinder
    from protgraph_plugins.pockets.output import pocket_rows, write_tables

    from protgraph.featurize import Failure, expand_sources
    from protgraph.wording import count_noun

    sources = expand_sources(with_standard_input(files))
    check_output_folder(out, inputs=[*files, *sources], overwrite=overwrite)
    finder = PocketFinder(model, device=device)
    out.mkdir(parents=True, exist_ok=True)
    rows, failures, done = [], list[Failure](), list[str]()
    stopped: KeyboardInterrupt | None = None
    try:
        for source, result in _found(finder, sources, read):
            if isinstance(result, Failure):
                failures.append(result)
            else:
                _print_pockets(source, result)
                if pages:
                    _write_structure(_stem(out, source, sources), source, result, read)
                rows += pocket_rows(source, result)
            done.append(source)
    except (KeyboardInterrupt, Interrupted) as e:
        stopped = e
    # also after an interruption: what is finished is kept
    if rows:
        written = write_tables(out, rows)
        typer.echo(f"{count_noun(len(rows), 'pocket')} → {', '.join(map(str, written))}")
    if stopped is not None:
        end_with_files_left(stopped, out / "pockets.csv", sources, done)
    report_failures(failures, out / "pockets.csv", any_succeeded=len(failures) < len(sources))


def _found(
    finder: PocketFinder, sources: list[str], read: ReadOptions
) -> Iterator[tuple[str, ProteinPockets | Failure]]:
    """Yield the pockets of each file, or why there are none."""
    from protgraph.featurize import Failure

    with progress_bar() as bar:
        for source in bar.track(sources, description="pockets"):
            try:
                yield source, finder(source, read)
            except ProtgraphError as e:
                yield source, Failure.of(source, "", e)


def _stem(out: Path, source: str, sources: list[str]) -> Path:
    """Return the path of a structure's files without suffix; structures of one name get numbers."""
    names = [Path(name.partition(":")[2] or name).name.split(".")[0] for name in sources]
    index = sources.index(source)
    name = names[index]
    if Counter(names)[name] > 1:
        name = f"{name}_{names[: index + 1].count(name)}"
    return out / name


def _print_pockets(source: str, protein: ProteinPockets) -> None:
    """Print the best pockets of a file."""
    from protgraph_plugins.pockets.output import low_plddt

    from protgraph.wording import count_noun

    print_reader_notes({source: protein.residues.report})
    typer.echo(f"{source}: {count_noun(len(protein.pockets), 'pocket')}")
    is_low = low_plddt(protein.residues)
    if is_low.any():
        typer.echo(
            f"note: {is_low.sum()} of {count_noun(len(is_low), 'residue')} have a pLDDT below 70. Their places are not "
            "reliable, nor are pockets that they line"
        )
    for pocket in protein.pockets[:_PRINTED]:
        ligands = f", with {', '.join(pocket.ligands)}" if pocket.ligands else ""
        low = is_low[pocket.residues].sum()
        unsure = f", {low} of low pLDDT" if low else ""
        chains = ",".join(pocket.chains) or "blank"
        chance = "" if isnan(pocket.probability) else f"p {pocket.probability:.2f}  "
        typer.echo(
            f"  {pocket.rank}  {chance}{pocket.volume:5.0f} Å³  chains {chains}  "
            f"{count_noun(len(pocket.residues), 'residue')} {pocket.letters}{unsure}{ligands}"
        )


def _write_structure(stem: Path, source: str, protein: ProteinPockets, read: ReadOptions) -> None:
    """Write the pseudo-atoms, the scripts and the page of a structure."""
    from protgraph_plugins.pockets.output import pockets_cif, write_pocket_page, write_pocket_scripts

    from protgraph.errors import MissingExtraError
    from protgraph.file_io import write_text_file
    from protgraph.structure.io import open_source

    write_text_file(stem.with_name(f"{stem.name}.pockets.cif"), pockets_cif(protein.residues.name, protein.pockets))
    # scripts load the file as it is
    if read.assembly is None and read.model_number == 1:
        write_pocket_scripts(stem, protein, open_source(source))
    else:
        typer.echo("note: no scripts for PyMOL and ChimeraX: they show the file without --assembly and --model-number")
    try:
        write_pocket_page(stem.with_name(f"{stem.name}.html"), protein)
    except MissingExtraError as e:
        typer.echo(f"note: no page. {e}", err=True)
