"""Ligand contacts of any structure: which molecules count as ligands, and the residues near them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from protgraph.errors import LabelError
from protgraph.structure import Ligands, Residues

__all__ = ["ADDITIVES", "MODIFICATIONS", "LigandContacts", "find_ligand_contacts"]

CUTOFF = 4.5  # Å between heavy atoms
LEAST_ATOMS = 7  # heavy atoms of the smallest ligand
_BOND = 1.9  # longest covalent bond of C, N, O and P, Å

_BUFFERS = (
    "ACT ACY BCN BME BTB B3P CAC CIT CXS DTT DTV EPE FLC FMT IMD MES MLA MLI MPO NHE NO3 PIN PO4 SO4 TAM TAR TLA TRS"
)
_SOLVENTS = "BU3 DIO DMF DMS EDO EOH GOL IPA MOH MPD MRD PGO UNL UNX"
_POLYETHERS = "12P 15P 1PE 2PE 33O 7PE JEF P33 P4C P4G P6G PE4 PE5 PE8 PEG PEU PG0 PG4 PG5 PG6 PGE PGQ XPE"
_DETERGENTS = "BNG BOG C8E CE1 D10 D12 DDQ DET HTG HTO LDA LMT OCT OLB OLC SDS UND"
_GLYCANS_AND_ANCHORS = "NAG NDG NGA BMA MAN FUC FUL XYP SIA FAR GER"

#: Residue names of buffers, precipitants, cryoprotectants, reducing agents and detergents; ions have too few atoms.
ADDITIVES = frozenset(" ".join((_BUFFERS, _SOLVENTS, _POLYETHERS, _DETERGENTS)).split())
#: Residue names of covalent modifications: saccharides of N- and O-glycans, and lipid anchors.
MODIFICATIONS = frozenset(_GLYCANS_AND_ANCHORS.split())


@dataclass(frozen=True, eq=False)
class LigandContacts:
    """Ligands of a protein, and the residues in contact with them.

    Parameters
    ----------
    ligands : Ligands
        The M molecules that count.
    contact : ndarray
        ``(N, M)`` bool, True if a heavy atom of the residue is near one of the ligand.
    """

    ligands: Ligands
    contact: np.ndarray

    @property
    def binds(self) -> np.ndarray:
        """``(N,)`` bool, residues in contact with any ligand."""
        return self.contact.any(axis=1)


def find_ligand_contacts(
    residues: Residues,
    *,
    cutoff: float = CUTOFF,
    min_atoms: int = LEAST_ATOMS,
    left_out: Collection[str] = ADDITIVES | MODIFICATIONS,
) -> LigandContacts:
    """Find the residues in contact with a ligand, by the rule of the datasets ``ligand_site`` and ``pdb_core``.

    Parameters
    ----------
    residues : Residues
        Output of ``clean(structure, ligands=True, nucleic=True)``. Modified residues are part of the protein. SAM, SAH
        and folates, which have N, CA and C but no peptide bond, are ligands, and so are nucleotides that are not bonded
        to another one, e.g. GDP.
    cutoff : float
        Å between heavy atoms.
    min_atoms : int
        Heavy atoms of the smallest ligand.
    left_out : collection of str
        Residue names that are no ligands.

    Raises
    ------
    LabelError
        The residues were read without their ligands.
    """
    ligands = residues.ligands
    if ligands is None:
        raise LabelError(f"{residues.name}: read without ligands. Use clean(structure, ligands=True, nucleic=True).")
    sizes = np.bincount(ligands.atom_molecule, minlength=len(ligands))
    is_ligand = (sizes >= min_atoms) & ~np.isin(ligands.res_name, list(left_out)) & ~_in_nucleic_acid(ligands)
    ligands = ligands.select(is_ligand)

    contact = np.zeros((len(residues), len(ligands)), dtype=bool)
    if len(ligands):
        near = cKDTree(residues.atom_pos.astype(np.float64)).query_ball_point(ligands.atom_pos, cutoff)
        for molecule, atoms in zip(ligands.atom_molecule.tolist(), near, strict=True):
            contact[residues.atom_residue[atoms], molecule] = True
    return LigandContacts(ligands, contact)


def _in_nucleic_acid(ligands: Ligands) -> np.ndarray:
    """Return ``(M,)`` bool, molecules with a sugar atom C1' that are bonded to another one, as in DNA and RNA."""
    has_sugar = np.zeros(len(ligands), dtype=bool)
    has_sugar[ligands.atom_molecule[ligands.atom_name == "C1'"]] = True
    linking = np.isin(ligands.atom_element, ("C", "N", "O", "P")) & has_sugar[ligands.atom_molecule]
    molecule = ligands.atom_molecule[linking]
    is_bonded = np.zeros(len(ligands), dtype=bool)
    if len(molecule):
        pairs = molecule[cKDTree(ligands.atom_pos[linking]).query_pairs(_BOND, output_type="ndarray")]
        is_bonded[pairs[pairs[:, 0] != pairs[:, 1]]] = True
    return is_bonded
