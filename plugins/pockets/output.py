"""Files of pockets: tables, mmCIF with a pseudo-atom per pocket, scripts for viewers, and a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from protgraph_plugins.pockets.find import ProteinPockets
from protgraph_plugins.pockets.pockets import Pocket
from protgraph_plugins.view import Color, ResidueGroup, make_scene, write_page, write_scene_chimerax, write_scene_pymol

from protgraph.file_io import write_text_file
from protgraph.inference import ResultTable
from protgraph.structure import Residues
from protgraph.structure.io import FileContent, cif_category

__all__ = [
    "COLUMNS",
    "low_plddt",
    "pocket_rows",
    "pockets_cif",
    "write_pocket_page",
    "write_pocket_scripts",
    "write_tables",
]

COLUMNS = (
    *("file", "rank", "probability", "score", "x", "y", "z", "volume", "depth", "enclosure"),
    *("size", "chains", "residues", "atoms", "letters", "hydrophobicity", "charge", "aromatic", "polar"),
    *("ligands", "ligand_overlap", "low_plddt"),
)
"""Columns of the table of pockets, see :class:`~protgraph_plugins.pockets.Pocket`; ``size`` counts residues, and
``low_plddt`` those with a pLDDT below 70."""

_CONFIDENT = 70.0  # pLDDT from which AlphaFold DB calls a residue confident
_SHOWN = 10  # pockets in pictures, the first ones


def pocket_rows(file: str, protein: ProteinPockets) -> list[tuple[str | int | float, ...]]:
    """Return a row of :data:`COLUMNS` for each pocket of a file."""
    residues = protein.residues
    ids = residues.ids
    rows = []
    for pocket in protein.pockets:
        owners = residues.atom_residue[pocket.atoms].tolist()
        names = residues.atom_name[pocket.atoms].tolist()
        atoms = [f"{ids[row]}:{name}" for row, name in zip(owners, names, strict=True)]
        rows.append((
            *(file, pocket.rank, pocket.probability, pocket.score, *pocket.center.tolist()),
            *(pocket.volume, pocket.depth, pocket.enclosure, len(pocket.residues), " ".join(pocket.chains)),
            *(" ".join(ids[row] for row in pocket.residues.tolist()), " ".join(atoms), pocket.letters),
            *(pocket.hydrophobicity, pocket.charge, pocket.aromatic, pocket.polar),
            *("; ".join(pocket.ligands), pocket.ligand_overlap, int(low_plddt(residues)[pocket.residues].sum())),
        ))  # fmt: skip
    return rows


def low_plddt(residues: Residues) -> np.ndarray:
    """Return which residues ``(N,)`` have a pLDDT below 70; none in a file that does not declare pLDDT."""
    if not residues.predicted:
        return np.zeros(len(residues), bool)
    return residues.b_factor < _CONFIDENT


def write_tables(folder: Path, rows: list[tuple[str | int | float, ...]]) -> list[Path]:
    """Write pockets.csv, pockets.parquet and pockets.json."""
    table = ResultTable(COLUMNS, rows)
    records = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for record in records:
        if np.isnan(record["probability"]):
            record["probability"] = None  # JSON has no NaN
    as_json = folder / "pockets.json"
    write_text_file(as_json, json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    return [table.write(folder / "pockets.csv"), table.write(folder / "pockets.parquet"), as_json]


def pockets_cif(name: str, pockets: Sequence[Pocket]) -> str:
    """Return mmCIF text with one pseudo-atom PCK at the center of each pocket.

    The residue number is the rank, the occupancy the probability, and the B factor the probability in percent.
    """
    count = len(pockets)
    center = np.array([pocket.center for pocket in pockets]).reshape(-1, 3)
    rank = np.array([pocket.rank for pocket in pockets], np.int64)
    chance = np.nan_to_num([pocket.probability for pocket in pockets])
    site = {
        "group_PDB": np.full(count, "HETATM"),
        "id": rank,
        "type_symbol": np.full(count, "X"),
        "label_atom_id": np.full(count, "PCK"),
        "label_alt_id": np.full(count, ""),  # gemmi reads no atoms without it
        "label_comp_id": np.full(count, "PCK"),
        "label_asym_id": np.full(count, "P"),
        "label_entity_id": np.ones(count, np.int64),
        "label_seq_id": np.full(count, ""),
        "auth_asym_id": np.full(count, "P"),
        "auth_comp_id": np.full(count, "PCK"),
        "auth_atom_id": np.full(count, "PCK"),
        "auth_seq_id": rank,
        "pdbx_PDB_ins_code": np.full(count, ""),
        "Cartn_x": center[:, 0],
        "Cartn_y": center[:, 1],
        "Cartn_z": center[:, 2],
        "occupancy": chance.round(2),
        "B_iso_or_equiv": (100 * chance).round(2),
        "pdbx_PDB_model_num": np.ones(count, np.int64),
    }
    entity = {"id": np.array([1]), "type": np.array(["non-polymer"])}
    return f"data_{name}_pockets\n" + cif_category("entity", entity) + cif_category("atom_site", site)


def write_pocket_scripts(stem: Path, protein: ProteinPockets, source: FileContent) -> None:
    """Write STEM.pml and STEM.cxc: the structure with residues in the color of their pocket, and STEM.pockets.cif."""
    scene = make_scene(protein.residues, color=_pocket_color(protein))
    centers = f"{stem.name}.pockets.cif"
    pymol = write_scene_pymol(scene, stem.with_name(f"{stem.name}.pml"), source=source)
    _append(pymol, _pymol_lines(protein, centers))
    chimerax = write_scene_chimerax(scene, stem.with_name(f"{stem.name}.cxc"), source=source)
    _append(chimerax, _chimerax_lines(protein, centers))


def _append(path: Path, lines: Iterable[str]) -> None:
    write_text_file(path, path.read_text(encoding="utf-8") + "\n".join(lines) + "\n")


def _pymol_lines(protein: ProteinPockets, centers: str) -> list[str]:
    """Return commands that load the centers beside the script and select the residues of each pocket."""
    lines = ["python", f"cmd.load(os.path.join(folder, {centers!r}), 'pockets')", "python end"]
    lines += ["show spheres, pockets", "spectrum b, yellow_red, pockets, 0, 100"]
    for pocket in protein.pockets[:_SHOWN]:
        chains = []
        for chain, numbers in _numbers_by_chain(protein.residues, pocket).items():
            escaped = "+".join(numbers).replace("-", "\\-")
            chains.append(f"(chain '{chain}' and resi {escaped})")
        lines.append(f"select pocket_{pocket.rank}, polymer.protein and ({' or '.join(chains)})")
    return [*lines, "deselect"]


def _chimerax_lines(protein: ProteinPockets, centers: str) -> list[str]:
    """Return commands that open the centers, which become model #2, and name the residues of each pocket."""
    lines = [f'open "{centers}"', "style @PCK sphere", "label @PCK atoms text {0.residue.number}"]
    for pocket in protein.pockets[:_SHOWN]:
        chains = []
        for chain, numbers in _numbers_by_chain(protein.residues, pocket).items():
            chain_specifier = f"/{chain}" if chain else ""
            chains.append(f"{chain_specifier}:{','.join(numbers)}")
        lines.append(f"name pocket_{pocket.rank} #1{''.join(chains)}")
    return lines


def _numbers_by_chain(residues: Residues, pocket: Pocket) -> dict[str, list[str]]:
    """Return the numbers of the residues of a pocket, with insertion codes, by chain."""
    numbers: dict[str, list[str]] = {}
    for row in pocket.residues.tolist():
        number = f"{residues.res_id[row]}{residues.ins_code[row]}"
        numbers.setdefault(str(residues.chain[row]), []).append(number)
    return numbers


def write_pocket_page(path: Path, protein: ProteinPockets) -> Path:
    """Write the page: residues in the color of their pocket, and a table whose rows select and zoom."""
    scene = make_scene(protein.residues, color=_pocket_color(protein), shown=_probability_colors(protein))
    groups = tuple(
        ResidueGroup(
            name=f"pocket {pocket.rank}",
            rows=pocket.residues,
            values={
                "probability": "–" if np.isnan(pocket.probability) else f"{pocket.probability:.2f}",
                "volume (Å³)": f"{pocket.volume:.0f}",
                "depth (Å)": f"{pocket.depth:.1f}",
                "residues": str(len(pocket.residues)),
                "chains": ", ".join(pocket.chains),
                "hydropathy": f"{pocket.hydrophobicity:+.1f}",
                "charge": f"{pocket.charge:+d}" if pocket.charge else "0",
                "ligands in the file": ", ".join(pocket.ligands) or "–",
            },
        )
        for pocket in protein.pockets[: 2 * _SHOWN]
    )
    return write_page(replace(scene, groups=groups), path)


def _pocket_color(protein: ProteinPockets) -> Color:
    """Return the best pocket of each residue as categories; residues of no shown pocket have no value."""
    number = np.full(len(protein.residues), np.nan)
    shown = protein.pockets[:_SHOWN]
    for i, pocket in reversed(list(enumerate(shown))):
        number[pocket.residues] = i
    return Color("pocket", number, tuple(f"pocket {pocket.rank}" for pocket in shown))


def _probability_colors(protein: ProteinPockets) -> list[Color]:
    if protein.probability is None:
        return []
    return [Color("probability of the residue", protein.probability, is_probability=True)]
