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
        doc="CA atoms in the half spheres of growing radius towards and away from the side chain, over those of a full one",
    )
)


class HalfSphereExposure(StructureFeaturizer):
    """Other CA atoms within r of a residue's CA, on the side of its side chain and on the other, for several radii r.

    Small radii tell buried from exposed; large ones tell the floor of a pocket from a flat or bulging surface.

    Parameters
    ----------
    radii : sequence of float
        r, Å.

    Writes
    ------
    half_sphere_exposure : (N, 2·len(radii)) float32, 0e, dimensionless
        For each radius the count on the side chain's side, then on the other, divided by the number of residues
        that fill such a half sphere inside a protein. An atom on the plane counts half on each side.

    Notes
    -----
    The side chain's direction is that of the paper's HSEα: away from the two neighbours along the chain. It needs
    CA atoms only and takes a mirror image to its mirror image. At a chain end it points away from the one
    neighbour; without neighbours each atom counts half on each side.

    References
    ----------
    Hamelryck 2005, "An amino acid has two sides", doi:10.1002/prot.20379 (there one radius, 13 Å).
    """

    writes: ClassVar[tuple[str, ...]] = ("half_sphere_exposure",)

    def __init__(self, *, radii: Sequence[float] = (8.0, 12.0, 16.0, 20.0)) -> None:
        super().__init__()
        self.radii = tuple(radii)
        if not self.radii or not all(isinstance(r, int | float) and r > 0 for r in self.radii):
            raise OptionError(f"half_sphere_exposure takes radii above 0 Å, got {radii!r}")
        self.declare(half_sphere_exposure=f"{2 * len(self.radii)}x0e")

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        pos, n = residues.pos.astype(np.float64), len(residues)
        source, target = radius(residues.pos, max(self.radii))
        vec = pos[source] - pos[target]  # (E, 3)
        distance = np.linalg.norm(vec, axis=1)
        ahead = (np.sign((vec * _sidechain_side(residues)[target]).sum(1)) + 1) / 2  # (E,) 1, 0 or, on the plane, 1/2
        columns = []
        for r in self.radii:
            full = 2 / 3 * pi * r**3 / _RESIDUE_VOLUME
            for weight in (ahead, 1 - ahead):
                columns.append(np.bincount(target, weight * (distance <= r), n) / full)
        return {"half_sphere_exposure": np.stack(columns, 1).astype(np.float32)}


def _sidechain_side(residues: Residues) -> np.ndarray:
    """``(N, 3)`` away from the neighbours along the chain, not normalised."""
    step = np.diff(residues.pos.astype(np.float64), axis=0)  # (N - 1, 3)
    step = unit(step) * linked_to_next(residues)[:-1, None]
    direction = np.zeros((len(residues), 3))
    direction[:-1] -= step
    direction[1:] += step
    return direction
