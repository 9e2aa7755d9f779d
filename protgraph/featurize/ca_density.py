"""Density of CA atoms around each residue in a radial basis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
import torch
from annotated_types import Ge, Gt
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn.functional import normalize

from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.coordinate_gradient import linked_rows
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["CaDensity"]
ENTRY_POINTS = {"protgraph.featurizers": {"ca_density": "CaDensity"}}

# Å; smaller distances are replaced by this one, where sin(n θ) / d has reached its limit n π / c.
_COINCIDENT = 1e-6

Array = TypeVar("Array", np.ndarray, Tensor)

register_field(
    FieldSpec(
        "ca_density",
        "node",
        "12x0e",
        unit="1/Å",
        doc="density of CA atoms about the residue in a radial basis: all around, then along its side chain",
    )
)


class CaDensity(StructureFeaturizer):
    """``c_n = Σ_j b_n(d_ij)`` and ``p_n = Σ_j b_n(d_ij) cos θ_ij`` over all other CA atoms j up to a cutoff.

    ``b_n(d) = sin(n π d / c) / d · (1 − (d / c)²)`` for n = 1 … B; θ is the angle between the side chain's direction
    and r_ij. The first functions measure the amount of protein in range. The next ones change sign and compare near
    with far shells, which distinguishes buried from exposed residues and a pocket from a bulge. Edges to nearest
    neighbors do not contain this information: 16 neighbors reach about 10 Å.

    Parameters
    ----------
    functions : int
        B.
    cutoff : float
        c, Å.

    Writes
    ------
    ca_density : (N, 2 B) float32, 0e, 1/Å
        c_1 … c_B, then p_1 … p_B; smooth in all positions.

    Notes
    -----
    These are the l = 0 part, and the l = 1 part along one axis, of an expansion of the neighbor density about an
    atom (Bartók et al.), in a Bessel basis (Gasteiger et al.); p_n is a smooth form of half-sphere exposure. The
    axis is that of Hamelryck's HSEα, away from the two neighbors along the chain: it needs CA atoms only and is
    equivariant under reflection. At a chain end it points away from the one neighbor; without neighbors p is 0.

    References
    ----------
    Bartók, Kondor & Csányi 2013, arXiv:1209.3140; Gasteiger, Groß & Günnemann 2020, arXiv:2003.03123, eq. 7;
    Hamelryck 2005, "An amino acid has two sides", doi:10.1002/prot.20379.
    """

    writes: ClassVar[tuple[str, ...]] = ("ca_density",)

    def __init__(self, *, functions: Annotated[int, Ge(1)] = 6, cutoff: Annotated[float, Gt(0)] = 30.0) -> None:
        super().__init__()
        self.functions, self.cutoff = functions, cutoff
        self.declare(ca_density=f"{2 * functions}x0e")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        pos, n = residues.pos.astype(np.float64), len(residues)
        pos = pos - pos.mean(0)
        i, j = cKDTree(pos).query_pairs(self.cutoff, output_type="ndarray").T  # each pair once
        vec = pos[j] - pos[i]  # (P, 3)
        distance = np.maximum(np.linalg.norm(vec, axis=1), _COINCIDENT)
        axis = _side_chain_axis(residues)
        cos_i = (vec * axis[i]).sum(1) / distance
        cos_j = -(vec * axis[j]).sum(1) / distance
        around, along = [], []
        for basis in self._basis(distance):
            around.append(np.bincount(i, basis, n) + np.bincount(j, basis, n))
            along.append(np.bincount(i, basis * cos_i, n) + np.bincount(j, basis * cos_j, n))
        return {"ca_density": np.stack(around + along, 1).astype(residues.pos.dtype)}

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the densities ``(N, 2 B)``, in torch."""
        pos, rows = f["pos"], linked_rows(f)
        i, j = self._pairs(f)
        vec = pos[j] - pos[i]  # (P, 3)
        distance = torch.linalg.vector_norm(vec, dim=1).clamp(min=_COINCIDENT)
        step = normalize(pos[rows + 1] - pos[rows], dim=1)
        axis = normalize(torch.zeros_like(pos).index_add(0, rows, -step).index_add(0, rows + 1, step), dim=1)
        cos_i = (vec * axis[i]).sum(1) / distance
        cos_j = -(vec * axis[j]).sum(1) / distance
        zero = torch.zeros_like(pos[:, 0])
        around, along = [], []
        for basis in self._basis(distance):
            around.append(zero.index_add(0, i, basis).index_add(0, j, basis))
            along.append(zero.index_add(0, i, basis * cos_i).index_add(0, j, basis * cos_j))
        return {"ca_density": torch.stack(around + along, 1)}

    def _pairs(self, f: Mapping[str, Any]) -> Tensor:
        """Return the pairs of nodes of the same protein up to the cutoff, each once, ``(2, P)``."""
        start, pairs = 0, []
        for pos in f["pos"].detach().cpu().split(list(f["proteins"].sizes)):
            found = cKDTree(pos.double().numpy()).query_pairs(self.cutoff, output_type="ndarray")  # (P, 2)
            pairs.append(found.T.astype(np.int64) + start)
            start += len(pos)
        return torch.from_numpy(np.concatenate(pairs, axis=1)).to(f["pos"].device)

    def _basis(self, distance: Array) -> Iterator[Array]:
        """Yield b_1 … b_B, each ``(P,)``, with sin(n θ) = 2 cos θ sin((n−1) θ) − sin((n−2) θ)."""
        library = torch if isinstance(distance, Tensor) else np
        theta = distance * (np.pi / self.cutoff)
        envelope = (1 - (distance / self.cutoff) ** 2) / distance
        before, sine, twice = library.zeros_like(theta), library.sin(theta), 2 * library.cos(theta)
        for _ in range(self.functions):
            yield sine * envelope
            before, sine = sine, twice * sine - before


def _side_chain_axis(residues: Residues) -> np.ndarray:
    """Return unit vectors away from the neighbors along the chain, ``(N, 3)``; 0 without neighbors."""
    step = np.diff(residues.pos.astype(np.float64), axis=0)  # (N - 1, 3)
    step = unit(step) * linked_to_next(residues)[:-1, None]
    axis = np.zeros((len(residues), 3))
    axis[:-1] -= step
    axis[1:] += step
    return unit(axis)
