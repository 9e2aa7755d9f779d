"""Edges for non-covalent interactions between residues: hydrogen bonds, charges, packing."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Lt

from protgraph.featurize.base import EdgeList
from protgraph.featurize.bond_edges import AtomPairs
from protgraph.structure.chemistry.dssp_hbond import backbone_hbonds
from protgraph.structure.chemistry.functional_groups import (
    ANIONS,
    CATIONS,
    HYDROPHOBIC,
    atom_mask,
    atoms_by_name,
    close_atom_pairs,
    sidechain_mask,
)
from protgraph.structure.chemistry.hbond import hydrogen_bonds
from protgraph.structure.chemistry.vdw import vdw_contacts
from protgraph.structure.neighbors import search as neighbors
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = ["Clash", "DsspHydrogenBond", "HydrogenBond", "Hydrophobic", "Ionic", "SaltBridge", "VanDerWaals"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "clash": "Clash",
        "dssp_hydrogen_bond": "DsspHydrogenBond",
        "hydrogen_bond": "HydrogenBond",
        "hydrophobic": "Hydrophobic",
        "ionic": "Ionic",
        "salt_bridge": "SaltBridge",
        "van_der_waals": "VanDerWaals",
    },
}

_OVERLAP = 0.4  # Å, minimum overlap of a clash


class _Donated(AtomPairs):
    """Base class of hydrogen-bond edges; pairs are (donor, acceptor).

    Parameters
    ----------
    is_directed : bool
        Only edges from donor to acceptor, instead of both directions.
    """

    def __init__(self, *, is_directed: bool = False) -> None:
        super().__init__()
        self.is_directed = is_directed

    def __call__(self, residues: Residues) -> EdgeList:
        if not self.is_directed:
            return super().__call__(residues)
        ends = np.unique(residues.atom_residue[self.pairs(residues)], axis=1)
        return EdgeList(*neighbors.sort_edges(residues.pos, ends[:, ends[0] != ends[1]]))

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        if not self.is_directed:
            return super().among(residues, nodes)
        return EdgeList(*neighbors.sort_edges(nodes.pos, np.unique(self._ends(residues, nodes), axis=1)))


class HydrogenBond(_Donated):
    """Edges between residues joined by a hydrogen bond D–H…A: H…A < 2.5 Å and an angle at H above 120°.

    Parameters
    ----------
    is_directed : bool
        Only edges from donor to acceptor, instead of both directions.

    Notes
    -----
    Between backbones and side chains. Hydrogens are placed from the heavy atoms; those of the file are ignored. For
    donors, acceptors and rotatable hydrogens see :func:`protgraph.structure.chemistry.hbond.hydrogen_bonds`.

    References
    ----------
    Baker & Hubbard 1984, doi:10.1016/0079-6107(84)90007-5.
    """

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return donor and acceptor atom of each hydrogen bond by geometry, ``(2, P)`` int64."""
        return hydrogen_bonds(residues)


class DsspHydrogenBond(_Donated):
    """Edges between residues whose backbones are hydrogen-bonded by DSSP: electrostatic energy below −0.5 kcal/mol.

    Parameters
    ----------
    is_directed : bool
        Only edges from donor (N–H) to acceptor (C=O), instead of both directions.
    best : int, optional
        Number of strongest bonds of each donor that are kept, as in the DSSP program; None keeps all.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211. See
    :func:`protgraph.structure.chemistry.dssp_hbond.backbone_hbonds`.
    """

    def __init__(self, *, is_directed: bool = False, best: Annotated[int, Ge(1)] | None = 2) -> None:
        super().__init__(is_directed=is_directed)
        self.best = best

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return N and O of each hydrogen bond by DSSP energy, ``(2, P)`` int64."""
        bonds = backbone_hbonds(residues, best=self.best)
        n, o = atoms_by_name(residues, np.arange(len(residues)), ("N", "O")).T
        pairs = np.stack([n[bonds.donor], o[bonds.acceptor]])
        return pairs[:, (pairs >= 0).all(0)]


class SaltBridge(AtomPairs):
    """Edges between Asp or Glu and Lys, Arg or His with a charged O and N at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive, between side-chain oxygens and nitrogens.
    histidine : bool
        Treat histidine, whose protonation is unknown, as charged.

    Notes
    -----
    Graphein's ``add_salt_bridges`` excludes His and the NE of Arg.

    References
    ----------
    Barlow & Thornton 1983, doi:10.1016/S0022-2836(83)80079-5 (4.0 Å, with histidine).
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0), Lt(100)] = 4.0, histidine: bool = True) -> None:
        super().__init__()
        self.cutoff, self.histidine = cutoff, histidine

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return oppositely charged atoms within the cutoff, anion first, ``(2, P)`` int64."""
        cations = {name: atoms for name, atoms in CATIONS.items() if self.histidine or name != "HIS"}
        return close_atom_pairs(residues, atom_mask(residues, ANIONS), atom_mask(residues, cations), self.cutoff)


class Ionic(AtomPairs):
    """Edges between Asp or Glu and Lys, Arg or His with any side-chain atoms at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    References
    ----------
    Tina, Bhadra & Srinivasan 2007, doi:10.1093/nar/gkm423 (6 Å), as in Graphein's ``add_ionic_interactions``.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0), Lt(100)] = 6.0) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return side-chain atoms of oppositely charged residues within the cutoff, anion first, ``(2, P)`` int64."""
        anions, cations = sidechain_mask(residues, ANIONS), sidechain_mask(residues, CATIONS)
        return close_atom_pairs(residues, anions, cations, self.cutoff)


class Hydrophobic(AtomPairs):
    """Edges between residues of AVLIMFWPY with any side-chain atoms at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    References
    ----------
    Tina, Bhadra & Srinivasan 2007, doi:10.1093/nar/gkm423 (5 Å), as in Graphein's ``add_hydrophobic_interactions``.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0), Lt(100)] = 5.0) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return side-chain atoms of hydrophobic residues within the cutoff, ``(2, P)`` int64."""
        hydrophobic = sidechain_mask(residues, HYDROPHOBIC)
        return close_atom_pairs(residues, hydrophobic, hydrophobic, self.cutoff)


class VanDerWaals(AtomPairs):
    """Edges between residues with touching atoms, ``−0.4 Å < d − (r_a + r_b) ≤ tolerance``; symmetric.

    Parameters
    ----------
    tolerance : float
        Å, the largest gap between the spheres.

    Notes
    -----
    Heavy atoms more than three bonds apart. Radii are those of Bondi; atoms that overlap more form a ``clash``.
    Graphein's ``add_vdw_interactions`` (also 0.5 Å) includes bonded and overlapping atoms.

    References
    ----------
    Bondi 1964, doi:10.1021/j100785a001 (radii).
    """

    def __init__(self, *, tolerance: Annotated[float, Ge(0), Lt(100)] = 0.5) -> None:
        super().__init__()
        self.tolerance = tolerance

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return atoms whose spheres are in contact, ``(2, P)`` int64."""
        return vdw_contacts(residues, -_OVERLAP, self.tolerance)


class Clash(AtomPairs):
    """Edges between residues with atoms that overlap by at least ``overlap``, ``d ≤ r_a + r_b − overlap``; symmetric.

    Parameters
    ----------
    overlap : float
        Å.

    Notes
    -----
    Heavy atoms more than three bonds apart, with Bondi radii. MolProbity includes hydrogens and uses its own radii.
    Hydrogen-bonded N and O overlap by about 0.2 Å and do not count as clashes.

    References
    ----------
    Word et al. 1999, doi:10.1006/jmbi.1998.2400 (0.4 Å); Bondi 1964, doi:10.1021/j100785a001 (radii).
    """

    def __init__(self, *, overlap: Annotated[float, Ge(0), Lt(4)] = _OVERLAP) -> None:
        super().__init__()
        self.overlap = overlap

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return atoms whose spheres overlap by ``overlap`` or more, ``(2, P)`` int64."""
        return vdw_contacts(residues, -np.inf, -self.overlap)
