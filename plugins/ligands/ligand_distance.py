"""The ligand of a complex and the residues around it: ``ligand_distance``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge
from scipy.spatial import cKDTree

from protgraph.data.graph import Conformity
from protgraph.errors import SelectionError, list_first
from protgraph.featurize import StructureFeaturizer
from protgraph.structure.residues import Ligands, LossReport, Residues, residue_kind

__all__ = ["LEAST_ATOMS", "LigandDistance", "select_ligand"]
ENTRY_POINTS = {"protgraph.featurizers": {"ligand_distance": "LigandDistance"}}

LEAST_ATOMS = 6
"""Heavy atoms of the smallest molecule that is a ligand without being named; ions and most additives have fewer."""

_BONDED = 2.0  # Å, longest distance of heavy atoms of two bonded molecules; S–S is 2.05
_COORDINATED = 4.0  # Å, from an ion to the ligand, as in PDBbind's pockets
_FARTHEST = 20.0  # Å, larger distances are set to it
_LISTED = 6


def select_ligand(residues: Residues, name: str = "") -> Ligands:
    """Return the ligand of a complex.

    Parameters
    ----------
    residues : Residues
        Read with ligands.
    name : str
        Residue name, e.g. "STI". By default, the molecule with most heavy atoms, without nucleotides of DNA and RNA,
        the first of several copies.

    Returns
    -------
    Ligands
        The molecule, with those bonded to it and ions at most 4 Å from it.

    Raises
    ------
    SelectionError
        The file has no such molecule or, without a name, none of at least 6 heavy atoms.
    """
    ligands = residues.ligands
    if ligands is None or not len(ligands):
        raise SelectionError(
            f"{residues.name}: no ligand. Give a file with its ligand, or join protein and ligand: protgraph data "
            "join-ligands."
        )
    sizes = np.bincount(ligands.atom_molecule, minlength=len(ligands))
    names = ", ".join(f"{molecule} {size}" for molecule, size in zip(ligands.res_name[:_LISTED], sizes, strict=False))
    if not name:
        is_nucleotide = np.array([residue_kind(str(molecule)) == "nucleic" for molecule in ligands.res_name])
        is_candidate = (sizes >= LEAST_ATOMS) & ~is_nucleotide
        wanted = f"no ligand of at least {LEAST_ATOMS} heavy atoms"
    else:
        is_candidate = ligands.res_name == name
        wanted = f"no ligand {name!r}"
    if not is_candidate.any():
        raise SelectionError(f"{residues.name}: {wanted}. Molecules and their heavy atoms: {names}. Name one of them.")
    chosen = int(np.argmax(np.where(is_candidate, sizes, -1)))

    # Molecules bonded to the ligand belong to it; ions beside it are kept.
    tree = cKDTree(ligands.atom_pos[ligands.atom_molecule == chosen])
    distance, _ = tree.query(ligands.atom_pos)
    nearest = np.full(len(ligands), np.inf)
    np.minimum.at(nearest, ligands.atom_molecule, distance)
    is_ion = sizes == 1
    return ligands.select((nearest <= _BONDED) | (is_ion & (nearest <= _COORDINATED)))


class LigandDistance(StructureFeaturizer):
    """Distance of each residue from the ligand, between nearest heavy atoms; graphs of atoms get atoms of ligands.

    With ``pocket``, models read the ligand and the residues around it alone: its *pocket*.

    Parameters
    ----------
    pocket : float
        Å; residues with a heavy atom within this distance of the ligand are the pocket. 0: the whole protein, with all
        of its ligands.
    ligand : str
        Residue name of the ligand. "": the molecule with most heavy atoms; see :func:`select_ligand`.

    Writes
    ------
    ligand_distance : (N, 1) float32, 1x0e, Å
        At most 20 Å; 20 without a ligand. 0 for atoms of ligands.

    Raises
    ------
    SelectionError
        With ``pocket``: there is no ligand, or none of the protein within this distance.
    """

    writes: ClassVar[tuple[str, ...]] = ("ligand_distance",)
    needs_ligands: ClassVar[bool] = True
    conformity: ClassVar[Conformity] = Conformity(offline={"pocket": 0.0})

    def __init__(self, *, pocket: Annotated[float, Ge(0)] = 0.0, ligand: str = "") -> None:
        super().__init__()
        self.pocket, self.ligand = pocket, ligand
        self.part = "pockets of ligands" if pocket else ""

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        ligands = residues.ligands
        if self.pocket:
            selected = select_ligand(residues, self.ligand)
            self._pocket_rows(residues, selected)  # raises if there are none
            ligands = selected
        if ligands is None or not len(ligands):
            return {"ligand_distance": np.full((len(residues), 1), _FARTHEST, np.float32)}
        distance = _distances(residues, ligands).clip(max=_FARTHEST)
        return {"ligand_distance": distance[:, None].astype(np.float32)}

    def parts(self, residues: Residues) -> list[Residues]:
        """Return the pocket with its ligand; the report counts the other molecules."""
        if not self.pocket:
            return [residues]
        ligands = select_ligand(residues, self.ligand)
        pocket = residues.select(self._pocket_rows(residues, ligands))
        return [replace(pocket, ligands=ligands, report=residues.report.merge(_left_out(residues, ligands)))]

    def _pocket_rows(self, residues: Residues, ligands: Ligands) -> np.ndarray:
        """Return ``(N,)`` bool, the residues of the pocket; raise if there are none."""
        distance = _distances(residues, ligands)
        inside = distance <= self.pocket
        if not inside.any():
            raise SelectionError(
                f"{residues.name}: ligand {list_first(ligands.ids, 1)} is {distance.min():.1f} Å from the protein. "
                f"Allowed: up to {self.pocket:g} Å. Check that both have the same frame, or name another ligand."
            )
        return inside


def _distances(residues: Residues, ligands: Ligands) -> np.ndarray:
    """Return the distance of each residue from the nearest atom of ligands, ``(N,)``, Å."""
    of_atoms, _ = cKDTree(ligands.atom_pos).query(residues.atom_pos)
    distance = np.full(len(residues), np.inf)
    np.minimum.at(distance, residues.atom_residue, of_atoms)
    return distance


def _left_out(residues: Residues, ligands: Ligands) -> LossReport:
    """Return a report that counts the molecules of a file that are not the ligand, by name."""
    assert residues.ligands is not None
    names, counts = np.unique(residues.ligands.res_name, return_counts=True)
    left_out = dict(zip(names.tolist(), counts.tolist(), strict=True))
    for name in ligands.res_name.tolist():
        left_out[name] -= 1
    return LossReport(ligands={name: count for name, count in left_out.items() if count})
