"""Command ``protgraph data label-ligands``: a label table of structures that have their ligands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli import Overwrite, check_output

__all__ = ["label_ligands_command"]
ENTRY_POINTS = {"protgraph.commands": {"data.label-ligands": "label_ligands_command"}}


def label_ligands_command(
    structures: Annotated[list[str], typer.Argument(help="Structure files, folders and patterns, with ligands.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Label table to write, a .csv file.")],
    cutoff: Annotated[float, typer.Option(min=0.1, max=20.0, help="Largest distance of heavy atoms, Å.")] = 4.5,
    min_atoms: Annotated[int, typer.Option(min=1, help="Heavy atoms of the smallest ligand.")] = 7,
    left_out: Annotated[
        str | None,
        typer.Option(
            help="Residue names that are no ligands, 'NAG,SO4'. Default: additives and covalent modifications."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Label the residues that touch a ligand, in structures of your own.

    Train on the same files with the table: ligands are never part of the input. Files that cannot be read are listed
    and left out; the exit code is then 1 (2 without a table if there is no other).

    \b
    Examples:
      protgraph data label-ligands structures/ -o labels.csv
      protgraph train site_mpnn --data structures/ --labels labels.csv --task ligand_site
    """
    import csv

    from protgraph_datasets.ligand_site.ligand_contacts import ADDITIVES, MODIFICATIONS, find_ligand_contacts

    from protgraph.errors import ProtgraphError
    from protgraph.file_io import atomic_write
    from protgraph.structure import clean, load_structure
    from protgraph.structure.io import expand_files
    from protgraph.wording import count_noun

    paths = expand_files(structures)
    check_output(out, inputs=[*structures, *paths], overwrite=overwrite, suffixes=[".csv"])
    names = ADDITIVES | MODIFICATIONS if left_out is None else frozenset(left_out.split(","))
    rows: list[tuple[object, ...]] = []
    labeled, ligands = 0, 0
    for path in paths:
        try:
            residues = clean(load_structure(path), ligands=True, nucleic=True)
        except ProtgraphError as e:
            typer.echo(f"left out: {e}", err=True)
            continue
        contacts = find_ligand_contacts(residues, cutoff=cutoff, min_atoms=min_atoms, left_out=names)
        keys = zip(residues.chain, residues.res_id, residues.ins_code, contacts.binds.astype(int), strict=True)
        rows += [(Path(path).name, *key) for key in keys]
        labeled += 1
        ligands += len(contacts.ligands)
    if not labeled:
        raise typer.Exit(2)
    with atomic_write(out) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("file", "chain", "res_id", "ins_code", "ligand_site"))
        table.writerows(rows)
    typer.echo(f"{count_noun(labeled, 'protein')}, {count_noun(ligands, 'ligand')} → {out}")
    if labeled < len(paths):
        raise typer.Exit(1)
