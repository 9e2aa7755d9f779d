"""Surroundings of a mutated residue in a complex in few bounded numbers: ``interface_context``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity

__all__ = ["InterfaceContext"]
ENTRY_POINTS = {"protgraph.layers": {"interface_context": "InterfaceContext"}}

_LOST = slice(72, 75)  # columns of interface_site
_DISTANCE = 56
_NEAR, _INSIDE, _WIDTH = 6.0, 8.0, 1.0  # Å, centers and width of two steps of the distance
_LIMIT = 2.5
#: Columns of both fields: heavy atoms within 4 and 6 Å of CB, and of a point 2.8 Å beyond it; sums of charges, − and +.
#: Each with mean and standard deviation, rounded, of the mutated residues of train and val of the dataset ddg_binding.
_ACROSS = ((0, 0.12, 0.24), (4, 0.31, 0.44), (9, 0.37, 0.56), (13, 0.47, 0.59), (18, 1.4, 0.9), (19, 1.3, 0.85))
_POTENTIALS = ((66, 0.96, 0.83), (67, 0.79, 0.71))  # of interface_site alone, of negative and positive side chains
_PACKING = ((0, 0.7, 0.29), (4, 1.5, 0.45), (9, 0.76, 0.61), (13, 1.1, 0.6), (18, 3.0, 1.4), (19, 2.6, 1.3))


class InterfaceContext(GraphLayer):
    """Burial on binding, nearness, packing and potentials at the place of a side chain, without learned parameters.

    Parameters
    ----------
    fields : mapping of str to FieldSpec

    Notes
    -----
    Reads: ``interface_site`` ``(N, 75)`` and ``site_packing`` ``(N, 83)``. Writes: ``h`` ``(N, 19)``, all multiplied by
    the step 1 / (1 + exp(d − 8)) of the least distance d in Å from CB to an atom of another partner, so that residues
    far from the interface have 0, as those without another partner: 1; the parts of three spheres that binding covers
    (3); the step 1 / (1 + exp(d − 6)) (1); then in standard deviations, at most 2.5 of either sign, heavy atoms and
    charges of the other partners around the side chain's place (6), potentials of their charged side chains (2), and
    heavy atoms and charges of all other residues around it (6).
    """

    reads: ClassVar[tuple[str, ...]] = ("interface_site", "site_packing")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(inputs={"interface_site": "75x0e", "site_packing": "83x0e"})

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        for name, table in (("across", _ACROSS + _POTENTIALS), ("packing", _PACKING)):
            columns, mean, scale = zip(*table, strict=True)
            self.register_buffer(f"{name}_columns", torch.tensor(columns), persistent=False)
            self.register_buffer(f"{name}_mean", torch.tensor(mean), persistent=False)
            self.register_buffer(f"{name}_scale", torch.tensor(scale), persistent=False)
        chiral = any(fields[name].chiral for name in self.reads)
        self.declare(h=FieldSpec("h", "node", "19x0e", chiral=chiral))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h`` ``(N, 19)``; see Notes."""
        site, packing = f["interface_site"], f["site_packing"]
        distance = 10 * site[:, _DISTANCE, None]  # Å; 0 without another partner
        inside = torch.sigmoid((_INSIDE - distance) / _WIDTH) * (distance > 0)
        near = torch.sigmoid((_NEAR - distance) / _WIDTH)

        # Atoms, charges and potentials in standard deviations.
        across = (site[:, self.across_columns] - self.across_mean) / self.across_scale
        around = (packing[:, self.packing_columns] - self.packing_mean) / self.packing_scale
        bounded = torch.cat([across, around], 1).clamp(-_LIMIT, _LIMIT)

        one = torch.ones_like(near)
        features = torch.cat([one, site[:, _LOST], near, bounded], 1)
        return {"h": inside * features}
