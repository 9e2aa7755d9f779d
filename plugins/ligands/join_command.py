"""Command ``protgraph data join-ligands``: complexes from structures and a table of their ligands' atoms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli import Overwrite, check_output_folder, report_failures

__all__ = ["join_ligands_command"]
ENTRY_POINTS = {"protgraph.commands": {"data.join-ligands": "join_ligands_command"}}


def join_ligands_command(
    structures: Annotated[list[str], typer.Argument(help="Structure files, folders and patterns of the proteins.")],
    table: Annotated[Path, typer.Option("--ligands", help="Table of ligand atoms: columns file, element, x, y, z.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the complexes, BinaryCIF files, to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Write complexes: each structure with the ligand that a table gives for it.

    The table has a row per heavy atom, and names the structure with or without suffixes. Every ligand of the table
    needs a structure; structures without a ligand are left out, and printed. Ligands that cannot be joined are listed
    in OUT.failures.csv, and the exit code is 1.

    \b
    Examples:
      protgraph data join-ligands proteins/ --ligands ligands.csv -o complexes
      protgraph train schnet.atom --ligands --data complexes --labels affinities.csv --task pK
    """
    from protgraph_plugins.ligands.ligand_table import join_ligand, read_ligand_table, write_complex

    from protgraph.errors import ProtgraphError, list_first
    from protgraph.featurize import Failure
    from protgraph.structure import load_structure
    from protgraph.structure.io import expand_files
    from protgraph.wording import count_noun

    ligands = read_ligand_table(table)
    paths = expand_files(structures)
    check_output_folder(out, inputs=[*paths, str(table)], overwrite=overwrite, apart=True)
    path_of_ligand = _paths_of_ligands(table, list(ligands), paths)
    failures = []
    written = 0
    for name, path in path_of_ligand.items():
        try:
            structure = join_ligand(load_structure(path), ligands[name])
        except ProtgraphError as error:
            failures.append(Failure.of(path, name, error))
            continue
        out.mkdir(parents=True, exist_ok=True)
        write_complex(structure, out / f"{_stem(path)}.bcif")
        written += 1
    unused = [Path(path).name for path in paths if path not in path_of_ligand.values()]
    if unused:
        typer.echo(f"left out, without a ligand in the table: {list_first(unused, 5)} ({len(unused)})", err=True)
    if written:
        typer.echo(f"{count_noun(written, 'file')} with ligands → {out}")
    report_failures(failures, out, any_succeeded=written > 0)


def _paths_of_ligands(table: Path, names: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
    """Return the structure of each ligand of a table, named with or without suffixes."""
    from protgraph.errors import AbsentFilesError, LabelError, list_first
    from protgraph.wording import count_noun

    paths_of_stem: dict[str, list[str]] = {}
    for path in paths:
        paths_of_stem.setdefault(_stem(path), []).append(path)
    path_of_ligand: dict[str, str] = {}
    absent = []
    for name in names:
        with_this_stem = paths_of_stem.get(_stem(name), [])
        with_this_name = [path for path in with_this_stem if Path(path).name == name]
        candidates = with_this_name or ([] if name != _stem(name) else with_this_stem)
        if len(candidates) > 1:
            raise LabelError(f"{table}: {name!r} is the name of {list_first(candidates, 5)}. Give one of these files.")
        if not candidates:
            absent.append(name)
            continue
        path_of_ligand[name] = candidates[0]
    if absent:
        raise AbsentFilesError(
            f"{table}: {count_noun(len(absent), 'ligand')} without a structure file: {list_first(absent, 5)}. Give "
            "these files, too, or remove the rows."
        )
    # Complexes are named by the stem, so two ligands of one stem would be one file.
    ligand_of_stem: dict[str, str] = {}
    for name in names:
        other = ligand_of_stem.setdefault(_stem(name), name)
        if other != name:
            raise LabelError(f"{table}: {other!r} and {name!r} would be one complex. Use one name for one structure.")
    return path_of_ligand


def _stem(path: str) -> str:
    """Return the name of a file without suffixes."""
    return Path(path).name.partition(".")[0]
