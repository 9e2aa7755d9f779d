"""How deep a residue lies and to which side it is open: half-sphere exposure."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import ClassVar

import numpy as np

from protgraph.data.fields import FieldSpec, register_field
from protgraph.errors import OptionError
from protgraph.featurize.base import StructureFeaturizer
from protgraph.structure.geometry import linked_to_next, unit
from protgraph.structure.neighbors import radius
from protgraph.structure.residue import Residues

__all__ = ["HalfSphereExposure"]

# Volume of a residue inside a protein, Å³: 110 Da of mean mass times 0.73 cm³/g of partial specific volume.
_RESIDUE_VOLUME = 133.0

register_field(
    FieldSpec(
        "half_sphere_exposure",
        "node",
        "8x0e",
        doc="how full of CA atoms the half spheres towards and away from the side chain are, for growing radii",
    )
)


class HalfSphereExposure(StructureFeaturizer):
    """``Σ_j w(d_ij / r) (1 ± cos θ_ij) / 2`` over other CA atoms j: how full space is on a residue's two sides.

    θ is the angle between the side chain's direction and r_ij, and ``w(x) = (1 − x²)²`` up to x = 1. Small radii tell
    buried from exposed, large ones the floor of a pocket from a flat or bulging surface.

    Parameters
    ----------
    radii : sequence of float
        r, Å.

    Writes
    ------
    half_sphere_exposure : (N, 2·len(radii)) float32, 0e, dimensionless
        For each radius the sum for the side chain's side (+), then for the other (−), each divided by what it is
        in a half sphere filled as the inside of a protein is.

    Notes
    -----
    The paper counts atoms within one radius, 13 Å, on either side of a plane. The weights here are its smooth form:
    without a jump where an atom crosses the sphere or the plane, so that rounding never shows. The direction is that
    of its HSEα, away from the two neighbours along the chain: it needs CA atoms only and takes a mirror image to its
    mirror image. At a chain end it points away from the one neighbour; without neighbours cos θ counts as 0.

    References
    ----------
    Hamelryck 2005, "An amino acid has two sides", doi:10.1002/prot.20379.
    """

    writes: ClassVar[tuple[str, ...]] = ("half_sphere_exposure",)

    def __init__(self, *, radii: Sequence[float] = (12.0, 16.0, 20.0, 24.0)) -> None:
        super().__init__()
        self.radii = tuple(radii)
        if not self.radii or not all(isinstance(r, int | float) and r > 0 for r in self.radii):
            raise OptionError(f"half_sphere_exposure takes radii above 0 Å, got {radii!r}")
        self.declare(half_sphere_exposure=f"{2 * len(self.radii)}x0e")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        pos, n = residues.pos.astype(np.float64), len(residues)
        source, target = radius(residues.pos, max(self.radii))
        vec = pos[source] - pos[target]  # (E, 3)
        cosine = (unit(vec) * _sidechain_side(residues)[target]).sum(1)  # (E,)
        square = (vec * vec).sum(1)
        columns = []
        for r in self.radii:
            weight = np.clip(1 - square / r**2, 0, None) ** 2
            full = 2 * pi * r**3 * (8 / 105) / _RESIDUE_VOLUME  # ∫ w over a half sphere is 2 π r³ (1/3 − 2/5 + 1/7)
            for side in (1, -1):
                columns.append(np.bincount(target, weight * (1 + side * cosine) / 2, n) / full)
        return {"half_sphere_exposure": np.stack(columns, 1).astype(np.float32)}


def _sidechain_side(residues: Residues) -> np.ndarray:
    """``(N, 3)`` unit vectors away from the neighbours along the chain; 0 without neighbours."""
    step = np.diff(residues.pos.astype(np.float64), axis=0)  # (N - 1, 3)
    step = unit(step) * linked_to_next(residues)[:-1, None]
    direction = np.zeros((len(residues), 3))
    direction[:-1] -= step
    direction[1:] += step
    return unit(direction)
