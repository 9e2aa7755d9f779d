"""Command ``protgraph data join-ligands``: complexes from structures and a table of their ligands' atoms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli import Overwrite

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
    needs a structure; structures without a ligand are left out, and printed.

    \b
    Examples:
      protgraph data join-ligands proteins/ --ligands ligands.csv -o complexes
      protgraph train schnet.atom --ligands --data complexes --labels affinities.csv --task pK
    """
    from protgraph_plugins.ligands.ligand_table import join_ligand, read_ligand_table, write_complex

    from protgraph.errors import AbsentFilesError, OutputFileError, list_first
    from protgraph.structure import load_structure
    from protgraph.structure.io import expand_files
    from protgraph.wording import count_noun

    if out.exists() and not overwrite:
        raise OutputFileError(f"{str(out)!r} exists. Give another folder with -o, or add --overwrite.")
    ligands = read_ligand_table(table)
    structure_of = {}
    for path in expand_files(structures):
        name = Path(path).name
        structure_of[name] = path
        structure_of.setdefault(name.partition(".")[0], path)
    absent = [name for name in ligands if name not in structure_of]
    if absent:
        raise AbsentFilesError(
            f"{table}: {count_noun(len(absent), 'ligand')} without a structure file: {list_first(absent, 5)}. Give "
            "these files, too, or remove the rows."
        )
    out.mkdir(parents=True, exist_ok=True)
    for name, ligand in ligands.items():
        structure = load_structure(structure_of[name])
        write_complex(join_ligand(structure, ligand), out / f"{structure.name}.bcif")
    used = {structure_of[name] for name in ligands}
    unused = sorted({Path(path).name for path in structure_of.values() if path not in used})
    if unused:
        typer.echo(f"left out, without a ligand in the table: {list_first(unused, 5)} ({len(unused)})", err=True)
    typer.echo(f"{count_noun(len(ligands), 'file')} with ligands → {out}")
