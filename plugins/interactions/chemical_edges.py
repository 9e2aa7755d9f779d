"""Edges along covalent bonds and between residues with a chemical interaction."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt
from protgraph_plugins.interactions.bonds import (
    DISULFIDE,
    covalent_bonds,
    disulfide_bonds,
    has_guessed_bonds,
    ligand_bonds,
    ligand_links,
    peptide_bonds,
)
from protgraph_plugins.interactions.contacts import vdw_contacts
from protgraph_plugins.interactions.functional_groups import (
    ANIONS,
    CATIONS,
    HYDROPHOBIC,
    aromatic_rings,
    atom_mask,
    atoms_by_name,
    close_atom_pairs,
    sidechain_mask,
)
from protgraph_plugins.interactions.hbond import hydrogen_bonds

from protgraph.data.graph import Conformity
from protgraph.errors import OptionError
from protgraph.featurize import EdgeFeaturizer, EdgeList
from protgraph.structure import neighbors
from protgraph.structure.chemistry import backbone_hbonds
from protgraph.structure.descriptors import squared, unit
from protgraph.structure.neighbors import close_pairs_between
from protgraph.structure.residues import NodeAtoms, Residues, linked_to_next

__all__ = [
    "Aromatic",
    "AromaticSulfur",
    "AtomPairs",
    "CationPi",
    "Clash",
    "CovalentBond",
    "Disulfide",
    "DsspHydrogenBond",
    "HydrogenBond",
    "Hydrophobic",
    "Ionic",
    "PeptideBond",
    "PiStacking",
    "SaltBridge",
    "VanDerWaals",
    "residue_edges",
]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "aromatic": "Aromatic",
        "aromatic_sulfur": "AromaticSulfur",
        "cation_pi": "CationPi",
        "clash": "Clash",
        "covalent_bond": "CovalentBond",
        "disulfide": "Disulfide",
        "dssp_hydrogen_bond": "DsspHydrogenBond",
        "hydrogen_bond": "HydrogenBond",
        "hydrophobic": "Hydrophobic",
        "ionic": "Ionic",
        "peptide_bond": "PeptideBond",
        "pi_stacking": "PiStacking",
        "salt_bridge": "SaltBridge",
        "van_der_waals": "VanDerWaals",
    }
}


class AtomPairs(EdgeFeaturizer):
    """Base class of symmetric edges from atom pairs: two residues are joined if any two of their atoms are."""

    conformity = Conformity(proteins="packed")

    @abstractmethod
    def pairs(self, residues: Residues) -> np.ndarray:
        """Return atom pairs, ``(2, P)`` int64, each once or in both orders; pairs within a residue are allowed."""

    def __call__(self, residues: Residues) -> EdgeList:
        return residue_edges(residues, residues.atom_residue[self.pairs(residues)])

    def among(self, residues: Residues, nodes: NodeAtoms) -> EdgeList:
        """Return the pairs whose atoms are both nodes, in both directions, each once."""
        pairs = np.unique(np.sort(self._ends(residues, nodes), axis=0), axis=1)
        return EdgeList(*neighbors.to_undirected(nodes.pos, pairs))

    def _ends(self, residues: Residues, nodes: NodeAtoms) -> np.ndarray:
        """Return the pairs whose atoms are both nodes, as nodes, ``(2, P)`` int64."""
        ends = nodes.of_atoms(self.pairs(residues))
        return ends[:, (ends >= 0).all(0)]


def residue_edges(residues: Residues, pairs: np.ndarray) -> EdgeList:
    """Return symmetric edges of residue pairs, ``(2, P)`` int64, without duplicates and pairs within one residue."""
    n, ends = len(residues), np.sort(pairs, axis=0)
    codes = np.unique((ends[0] * n + ends[1])[ends[0] != ends[1]])
    return EdgeList(*neighbors.to_undirected(residues.pos, np.stack(np.divmod(codes, n))))


class PeptideBond(AtomPairs):
    """Edges between consecutive residues of a chain without a gap; symmetric.

    Notes
    -----
    C and N at most 2.5 Å apart are bonded; in CA traces, CA at most 4.3 Å apart
    (:func:`protgraph.structure.residues.chain_breaks.linked_to_next`).
    """

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the atoms C and N of each peptide bond, ``(2, P)`` int64."""
        return peptide_bonds(residues)

    def __call__(self, residues: Residues) -> EdgeList:
        i = np.flatnonzero(linked_to_next(residues))
        return EdgeList(*neighbors.to_undirected(residues.pos, np.stack([i, i + 1])))


class CovalentBond(AtomPairs):
    """Edges along covalent bonds; symmetric. Between residues these are peptide bonds and disulfides.

    Notes
    -----
    Between atoms, the bonds of the Chemical Component Dictionary are added and, if ligands are nodes, their bonds to
    the protein and to each other: :func:`protgraph_plugins.interactions.bonds.covalent_bonds`,
    :func:`~protgraph_plugins.interactions.bonds.ligand_links`.
    """

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the atoms of each covalent bond of the protein, ``(2, P)`` int64."""
        return covalent_bonds(residues)

    def notes(self, residues: Residues, node_type: str) -> list[str]:
        """Return the names of ligands whose bonds are guessed from distances."""
        ligands = residues.ligands
        if node_type != "atom" or ligands is None:
            return []
        guessed = ligands.res_name[has_guessed_bonds(ligands)]
        return [f"bonds of ligand {name} are guessed from distances" for name in np.unique(guessed).tolist()]

    def _ends(self, residues: Residues, nodes: NodeAtoms) -> np.ndarray:
        ends, ligands = super()._ends(residues, nodes), residues.ligands
        if ligands is None or not nodes.is_ligand.any():
            return ends
        ligand_nodes = np.flatnonzero(nodes.is_ligand)
        all_nodes = np.concatenate([nodes.of_atoms(np.arange(len(residues.atom_name))), ligand_nodes])
        return np.concatenate([ends, ligand_nodes[ligand_bonds(ligands)], all_nodes[ligand_links(residues)]], axis=1)


class Disulfide(AtomPairs):
    """Edges between cysteines whose SG are at most ``cutoff`` apart; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    References
    ----------
    Tina, Bhadra & Srinivasan 2007, doi:10.1093/nar/gkm423 (2.2 Å), as in Graphein's ``add_disulfide_interactions``.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0)] = DISULFIDE) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the SG atoms of each disulfide bond, ``(2, P)`` int64."""
        return disulfide_bonds(residues, self.cutoff)


_OVERLAP = 0.4  # Å, minimum overlap of a clash


class _Donated(AtomPairs):
    """Base class of hydrogen-bond edges; pairs are (donor, acceptor).

    ``is_directed``: only edges from donor to acceptor, instead of both directions.
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
    donors, acceptors and rotatable hydrogens see :func:`protgraph_plugins.interactions.hbond.hydrogen_bonds`.

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


_PI = ("PHE", "TYR", "TRP")
_STACKED, _UPRIGHT, _OVER = np.cos(np.radians([30.0, 60.0, 45.0]))


class _RingPairs(EdgeFeaturizer):
    """Base class of symmetric edges between pairs of residues."""

    conformity = Conformity(proteins="packed")

    @abstractmethod
    def pairs(self, residues: Residues) -> np.ndarray:
        """Return residue pairs, ``(2, P)`` int64; duplicates and pairs within one residue are allowed."""

    def __call__(self, residues: Residues) -> EdgeList:
        return residue_edges(residues, self.pairs(residues))


class Aromatic(_RingPairs):
    """Edges between residues with aromatic rings whose centers are ``low`` to ``high`` apart; symmetric.

    Parameters
    ----------
    low, high : float
        Å, inclusive.

    Notes
    -----
    Rings of Phe, Tyr and His, and both rings of Trp. Graphein's ``add_aromatic_interactions`` uses only the
    six-membered ring of Trp.

    References
    ----------
    Burley & Petsko 1985, doi:10.1126/science.3892686 (4.5–7 Å); Tina et al. 2007, doi:10.1093/nar/gkm423.
    """

    def __init__(self, *, low: float = 4.5, high: float = 7.0) -> None:
        super().__init__()
        if not (isinstance(low, int | float) and isinstance(high, int | float) and 0 <= low < high < 100):
            raise OptionError(f"aromatic: invalid low={low!r}, high={high!r}. Use 0 ≤ low < high < 100 Å.")
        self.low, self.high = low, high

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the residues of rings whose centers are ``low`` to ``high`` apart, ``(2, P)`` int64."""
        rings = aromatic_rings(residues)
        i, j = close_pairs_between(rings.center, rings.center, self.high)
        far = squared(rings.center[i] - rings.center[j]) >= self.low * self.low
        return rings.residue[np.stack([i[far], j[far]])]


class PiStacking(_RingPairs):
    """Edges between residues with stacked aromatic rings of Phe, Tyr or Trp; symmetric.

    Parameters
    ----------
    shape : {"any", "parallel", "t_shaped"}
        Parallel: normals less than 30° apart, and both less than 45° from the line of centers. T-shaped: normals more
        than 60° apart, and one of them less than 45° from the line of centers.
    cutoff : float
        Å between centers, inclusive.

    Notes
    -----
    Graphein's ``add_t_stacking`` requires *both* normals within 45° of the line of centers, which an upright T (0°
    and 90°) does not fulfill. Its ``add_pi_stacking_interactions`` equals "parallel", except for normals that point
    away from each other, because it does not remove their sign.

    References
    ----------
    McGaughey, Gagné & Rappé 1998, doi:10.1074/jbc.273.25.15458; angles and 7 Å as in Graphein (Jamasb et al. 2022,
    NeurIPS 35).
    """

    def __init__(
        self, *, shape: Literal["any", "parallel", "t_shaped"] = "any", cutoff: Annotated[float, Gt(0), Lt(100)] = 7.0
    ) -> None:
        super().__init__()
        self.shape, self.cutoff = shape, cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the residues of stacked rings of the chosen shape, ``(2, P)`` int64."""
        rings = aromatic_rings(residues, _PI)
        i, j = close_pairs_between(rings.center, rings.center, self.cutoff)
        i, j = i[i < j], j[i < j]
        line = unit(rings.center[j] - rings.center[i])
        tilt = np.abs((rings.normal[i] * rings.normal[j]).sum(1))  # cosines; the sign of a normal is arbitrary
        over = np.abs(np.stack([(rings.normal[k] * line).sum(1) for k in (i, j)])) > _OVER
        parallel, upright = (tilt > _STACKED) & over.all(0), (tilt < _UPRIGHT) & over.any(0)
        is_stacked = {"any": parallel | upright, "parallel": parallel, "t_shaped": upright}[self.shape]
        return rings.residue[np.stack([i[is_stacked], j[is_stacked]])]


class CationPi(_RingPairs):
    """Edges between Lys or Arg and Phe, Tyr or Trp with NZ or CZ at most ``cutoff`` from a ring's center; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    Notes
    -----
    Graphein's ``add_cation_pi_interactions`` measures between any side-chain atoms.

    References
    ----------
    Gallivan & Dougherty 1999, doi:10.1073/pnas.96.17.9459; 6 Å as in Tina et al. 2007, doi:10.1093/nar/gkm423.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0), Lt(100)] = 6.0) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the residues of cations (NZ of Lys, CZ of Arg) near rings, ``(2, P)`` int64."""
        return _to_rings(residues, {"LYS": ("NZ",), "ARG": ("CZ",)}, self.cutoff)


class AromaticSulfur(_RingPairs):
    """Edges between Cys or Met and Phe, Tyr or Trp with S at most ``cutoff`` from a ring's center; symmetric.

    Parameters
    ----------
    cutoff : float
        Å, inclusive.

    References
    ----------
    Reid, Lindley & Thornton 1985, FEBS Letters 190, 209; 5.3 Å as in Tina et al. 2007,
    doi:10.1093/nar/gkm423.
    """

    def __init__(self, *, cutoff: Annotated[float, Gt(0), Lt(100)] = 5.3) -> None:
        super().__init__()
        self.cutoff = cutoff

    def pairs(self, residues: Residues) -> np.ndarray:
        """Return the residues of sulfurs (SG of Cys, SD of Met) near rings, ``(2, P)`` int64."""
        return _to_rings(residues, {"CYS": ("SG",), "MET": ("SD",)}, self.cutoff)


def _to_rings(residues: Residues, names: dict[str, tuple[str, ...]], cutoff: float) -> np.ndarray:
    """Return residues of atoms and of rings with centers within the cutoff, ``(2, P)``."""
    rings, atoms = aromatic_rings(residues, _PI), np.flatnonzero(atom_mask(residues, names))
    i, j = close_pairs_between(residues.atom_pos[atoms], rings.center, cutoff)
    return np.stack([residues.atom_residue[atoms[i]], rings.residue[j]])
