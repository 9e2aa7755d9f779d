"""Test inputs of a component: some proteins, and the transforms, permutations and changes that the checks apply.

Inputs are float64 and on the CPU; :meth:`Inputs.argument` casts them to a device and a type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protgraph.testing.symmetry import RigidTransforms

__all__ = ["Inputs", "Permutation", "pair_permutation"]

#: Level → ``(rows,)`` int64: row r of the permuted output is row ``permutation[level][r]`` of the original one.
Permutation = Mapping[str, Tensor]


class Inputs(ABC):
    """Some proteins as a component reads them. Every method returns new inputs.

    ``sizes``: nodes of each protein.
    """

    if TYPE_CHECKING:  # a field of some subclasses, a property of others

        @property
        def sizes(self) -> tuple[int, ...]: ...

    def rows(self, level: str) -> tuple[int, ...]:
        """Return each protein's number of rows of a level; pairs are ordered pairs of its nodes."""
        return {"node": self.sizes, "graph": (1,) * len(self.sizes), "pair": tuple(n * n for n in self.sizes)}[level]

    @abstractmethod
    def argument(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> Any:
        """Return a fresh argument of the component's ``forward``."""

    @abstractmethod
    def moved(self, transforms: RigidTransforms) -> Inputs:
        """Return all proteins after the first transform, then all after the second, and so on."""

    @abstractmethod
    def single(self, protein: int) -> Inputs:
        """Return one protein alone."""

    @abstractmethod
    def permuted(self) -> tuple[Inputs, Permutation]:
        """Return the same proteins with their nodes in another order, and that order, ``(M,)`` int64 per level."""

    @abstractmethod
    def renamed(self) -> Inputs | None:
        """Return the same proteins with other author numbers and names; None if there are none."""

    @abstractmethod
    def last_perturbed(self) -> Inputs:
        """Change everything about the last protein except its numbers of nodes and edges."""


def pair_permutation(node: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return the order, ``(P,)`` int64, of all pairs (i, j) of each protein, row-major, for an order ``node (N,)``."""
    orders = []
    nodes, pairs = 0, 0  # before this protein
    for n in sizes:
        order = node[nodes : nodes + n] - nodes
        orders.append(pairs + (order[:, None] * n + order).flatten())
        nodes += n
        pairs += n * n
    return torch.cat(orders)
