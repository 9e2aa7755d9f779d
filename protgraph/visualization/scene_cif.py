"""Atoms of a scene as mmCIF text for Mol*: the protein that the graph is made of, and its ligands.

Not biotite: its writer needs an ``AtomArray`` with bonds and has no row number per residue, by which the page finds the
residue under the pointer.

References
----------
wwPDB, PDBx/mmCIF dictionary, categories ``atom_site`` and ``entity``.
"""

from __future__ import annotations

import numpy as np

from protgraph.structure import Residues
from protgraph.structure.io.cif_text import quote
from protgraph.structure.residues.ligands import Ligands

__all__ = ["scene_cif"]

_HEADER = """data_scene
loop_
_entity.id
_entity.type
1 polymer
2 polymer
3 non-polymer
loop_
_entity_poly.entity_id
_entity_poly.type
1 polypeptide(L)
2 polydeoxyribonucleotide
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_entity_id
_atom_site.label_seq_id
_atom_site.auth_asym_id
_atom_site.auth_seq_id
_atom_site.pdbx_PDB_ins_code
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.pdbx_PDB_model_num
"""
#: Nucleotides that are drawn as a chain; others are drawn as ligands.
_NUCLEOTIDES = ("A", "C", "G", "U", "I", "DA", "DC", "DG", "DT", "DU", "DI")


def scene_cif(residues: Residues) -> str:
    """Return mmCIF text with the heavy atoms of the protein and its ligands.

    ``label_seq_id`` of the protein (entity 1) is the row of the residue from 1. Nucleotides are entity 2, all other
    molecules entity 3. Chain, number and insertion code of the file are the ``auth_`` items.
    """
    place = {name: f"P{i}" for i, name in enumerate(residues.chain_names)}
    rows = [
        ("ATOM", kind, atom, residues.res_name[i], place[residues.chain[i]], 1, i + 1, *_author(residues, i), *xyz)
        for i, kind, atom, xyz in _atoms(residues.atom_residue, residues)
    ]
    ligands = residues.ligands
    if ligands is not None and len(ligands):
        nucleic = np.isin(ligands.res_name, _NUCLEOTIDES)
        for i, kind, atom, xyz in _atoms(ligands.atom_molecule, ligands):
            asym = f"N{ligands.chain[i]}" if nucleic[i] else f"L{i}"
            entity, seq = (2, i + 1) if nucleic[i] else (3, ".")
            rows.append(("HETATM", kind, atom, ligands.res_name[i], asym, entity, seq, *_author(ligands, i), *xyz))
    lines = [
        f"{group} {i} {kind.capitalize() or 'X'} {quote(atom)} {quote(comp)} {quote(asym)} {entity} {seq} "
        f"{quote(chain) if chain else '.'} {number} {ins or '?'} {x:.3f} {y:.3f} {z:.3f} 1"
        for i, (group, kind, atom, comp, asym, entity, seq, chain, number, ins, x, y, z) in enumerate(rows, 1)
    ]
    return _HEADER + "\n".join(lines) + "\n"


def _atoms(owner: np.ndarray, atoms: Residues | Ligands) -> zip[tuple[int, str, str, list[float]]]:
    """Return owner, element, name and position of each atom."""
    position = atoms.atom_pos.astype(float).tolist()
    return zip(owner.tolist(), atoms.atom_element.tolist(), atoms.atom_name.tolist(), position, strict=True)


def _author(rows: Residues | Ligands, i: int) -> tuple[str, int, str]:
    return str(rows.chain[i]), int(rows.res_id[i]), str(rows.ins_code[i])
