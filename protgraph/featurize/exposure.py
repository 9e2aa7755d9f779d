"""Burial and exposure of residues: neighbor counts, density of CA atoms, solvent-accessible area."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
import torch
from annotated_types import Ge, Gt
from scipy.spatial import cKDTree
from torch import Tensor
from torch.nn.functional import normalize

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.coordinate_gradient import linked_rows
from protgraph.structure.descriptors.ca_trace import sidechain_direction
from protgraph.structure.descriptors.sasa import MAX_SASA, PROBE, residue_sasa
from protgraph.structure.descriptors.solvent_exposure import (
    cb_direction,
    contact_number,
    half_sphere_exposure,
    protrusion,
)
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["CaDensity", "ContactNumber", "HalfSphereExposure", "Protrusion", "Sasa"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "ca_density": "CaDensity",
        "contact_number": "ContactNumber",
        "half_sphere_exposure": "HalfSphereExposure",
        "protrusion": "Protrusion",
        "sasa": "Sasa",
    }
}


for _spec in (
    FieldSpec("contact_number", "node", "1x0e", unit="CA atoms", doc="CA within 10 Å"),
    FieldSpec("half_sphere_ca", "node", "2x0e", unit="CA atoms", doc="half-sphere exposure HSE-alpha, up and down"),
    FieldSpec("half_sphere_ca_mask", "node", "1x0e", "bool", doc="True if both neighbors in the chain are present"),
    FieldSpec(
        "half_sphere_cb",
        "node",
        "2x0e",
        unit="CA atoms",
        chiral=True,
        doc="half-sphere exposure HSE-beta, up and down (chiral where CB is a virtual one)",
    ),
    FieldSpec("half_sphere_cb_mask", "node", "1x0e", "bool", doc="True if CB, or both N and C, are present"),
    FieldSpec("protrusion", "node", "2x0e", doc="index CX of the residue's heavy atoms, mean and maximum"),
):
    register_field(_spec)


class ContactNumber(StructureFeaturizer):
    """Number of other CA atoms within a radius of the CA of each residue.

    Parameters
    ----------
    radius : float
        Å, inclusive.

    Writes
    ------
    contact_number : (N, 1) float32, 1x0e, CA atoms
        All chains of the structure count.

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.contact_number`.
    """

    writes: ClassVar[tuple[str, ...]] = ("contact_number",)
    zero_gradient: ClassVar[bool] = True

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 10.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        return {"contact_number": contact_number(residues, radius=self.radius)[:, None].astype(np.float32)}


class HalfSphereExposure(StructureFeaturizer):
    """Half-sphere exposure: numbers of CA atoms on the side of the side chain and on the opposite side.

    Parameters
    ----------
    radius : float
        Å, inclusive.

    Writes
    ------
    half_sphere_ca : (N, 2) float32, 2x0e, CA atoms
        HSEα, up and down: the side chain's direction from the CA before and after. 0 where one is missing.
    half_sphere_ca_mask : (N, 1) bool
    half_sphere_cb : (N, 2) float32, 2x0e under rotations (chiral), CA atoms
        HSEβ, up and down: from CA to CB, or to the virtual CB (glycine, hidden side chains). 0 where neither
        exists.
    half_sphere_cb_mask : (N, 1) bool

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.half_sphere_exposure`.
    """

    writes: ClassVar[tuple[str, ...]] = (
        *("half_sphere_ca", "half_sphere_ca_mask"),
        *("half_sphere_cb", "half_sphere_cb_mask"),
    )
    zero_gradient: ClassVar[bool] = True

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 13.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        written: dict[str, np.ndarray] = {}
        sides = {"half_sphere_ca": sidechain_direction(residues), "half_sphere_cb": cb_direction(residues)}
        for name, side in sides.items():
            mask = np.asarray(side.any(1, keepdims=True))  # (N, 1)
            written[name] = (half_sphere_exposure(residues, side, radius=self.radius) * mask).astype(np.float32)
            written[f"{name}_mask"] = mask
        return written


class Protrusion(StructureFeaturizer):
    """Protrusion index CX: free over occupied volume around the heavy atoms of a residue.

    Parameters
    ----------
    radius : float
        Of the sphere about each atom, Å.

    Writes
    ------
    protrusion : (N, 2) float32, 2x0e, dimensionless
        Mean and maximum CX over the heavy atoms of the residue; about 0 to 1 inside, up to 15 at protruding ends. If
        side chains are hidden, only backbone atoms count and fill the spheres.

    References
    ----------
    See :func:`protgraph.structure.descriptors.solvent_exposure.protrusion`.
    """

    writes: ClassVar[tuple[str, ...]] = ("protrusion",)
    conformity = Conformity(tolerance=1e-2)  # rounding of coordinates moves single atoms across the sphere

    def __init__(self, *, radius: Annotated[float, Gt(0)] = 10.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        index, owner = protrusion(residues, radius=self.radius), residues.atom_residue
        mean = np.bincount(owner, index, len(residues)) / np.maximum(np.bincount(owner, minlength=len(residues)), 1)
        greatest = np.full(len(residues), -np.inf)
        np.maximum.at(greatest, owner, index)
        greatest[np.isinf(greatest)] = 0.0  # a residue without atoms
        return {"protrusion": np.stack([mean, greatest], 1).astype(np.float32)}


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


register_field(FieldSpec("sasa", "node", "1x0e", unit="Å²", doc="solvent-accessible surface area of the residue"))
register_field(FieldSpec("relative_sasa", "node", "1x0e", doc="sasa over the maximum of the residue type, Tien 2013"))


class Sasa(StructureFeaturizer):
    """Solvent-accessible surface area (Shrake & Rupley 1973) with the ProtOr radii of Tsai et al. 1999.

    Parameters
    ----------
    points : int
        Test points per atom; the root-mean-square error per residue is 0.4 Å² with 1000 and 2.5 Å² with 100.
    probe : float
        Radius of the solvent molecule, Å.

    Writes
    ------
    sasa : (N, 1) float32, 1x0e, Å²
        All chains of the structure shield each other; ligands, waters and nucleic acids are ignored. If side chains are
        hidden, the area is that of the bare backbone.
    relative_sasa : (N, 1) float32, 1x0e, dimensionless
        Relative to the theoretical maximum of the residue type in Gly-X-Gly; for X, to the mean over types. Values at
        chain ends and gaps can exceed 1.

    Notes
    -----
    Rounding of float32 coordinates can move single test points across a sphere surface.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9; Tsai et al. 1999, doi:10.1006/jmbi.1999.2829; Tien et al.
    2013, doi:10.1371/journal.pone.0080635.
    """

    writes: ClassVar[tuple[str, ...]] = ("sasa", "relative_sasa")
    conformity = Conformity(tolerance=5e-3)  # rounding of coordinates moves a few of thousands of points

    def __init__(self, *, points: Annotated[int, Ge(1)] = 1000, probe: Annotated[float, Ge(0)] = PROBE) -> None:
        super().__init__()
        self.points, self.probe = points, probe

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        area = residue_sasa(residues, points=self.points, probe=self.probe)
        relative = area / MAX_SASA[residues.aatype]
        return {"sasa": area[:, None].astype(np.float32), "relative_sasa": relative[:, None].astype(np.float32)}
