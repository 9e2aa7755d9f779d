"""Featurizer: from a structure to named arrays."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.spatial import KDTree

import protgraph as pg

__all__ = ["TemplateCrowding"]

pg.register_field(
    pg.FieldSpec("template_crowding", "node", "1x0e", doc="logarithm of 1 + the number of CA atoms near this one")
)


class TemplateCrowding(pg.StructureFeaturizer):
    """``ln(1 + n_i)``, with n_i the number of other CA atoms within ``radius`` of residue i's: a measure of burial.

    Parameters
    ----------
    radius : float
        Maximum distance, Å.

    Notes
    -----
    Writes: template_crowding ``(N, 1)`` float32, dimensionless, ``1x0e``.
    """

    writes: ClassVar[tuple[str, ...]] = ("template_crowding",)

    def __init__(self, *, radius: float = 10.0) -> None:
        super().__init__()
        self.radius = radius

    def __call__(self, residues: pg.Residues) -> dict[str, np.ndarray]:
        tree = KDTree(residues.pos)
        near = tree.query_ball_point(residues.pos, self.radius, return_length=True)  # (N,), with itself
        return {"template_crowding": np.log(near).astype(np.float32)[:, None]}  # (N, 1)
