"""Edges for interactions with aromatic rings, from ring centers and planes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Lt

from protgraph.data.graph.conformity import Conformity
from protgraph.errors import OptionError
from protgraph.featurize.base import EdgeFeaturizer, EdgeList
from protgraph.featurize.bond_edges import residue_edges
from protgraph.structure.chemistry.functional_groups import aromatic_rings, atom_mask
from protgraph.structure.neighbors.search import close_pairs_between
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import squared, unit

__all__ = ["Aromatic", "AromaticSulfur", "CationPi", "PiStacking"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "aromatic": "Aromatic",
        "aromatic_sulfur": "AromaticSulfur",
        "cation_pi": "CationPi",
        "pi_stacking": "PiStacking",
    },
}

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

    def __init__(self, *, shape: Literal["any", "parallel", "t_shaped"] = "any", cutoff: Annotated[float, Gt(0), Lt(100)] = 7.0) -> None:
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
