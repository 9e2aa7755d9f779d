"""Many motions x ↦ Q x + t at once, done to fields and taken back."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import normalize

from protgraph.data.graph.fields import FieldSpec
from protgraph.structure import Residues
from protgraph.symmetry import random_reflections, random_rotations, representation

__all__ = ["Motions", "reflections", "rotations"]

_COORDINATES = ("pos", "backbone", "atom_pos")


class Motions:
    """M orthogonal maps, each with a translation.

    Parameters
    ----------
    elements : Tensor
        Q, ``(M, 3, 3)`` float64.
    shifts : Tensor
        t, ``(M, 3)`` float64, Å.
    """

    def __init__(self, elements: Tensor, shifts: Tensor) -> None:
        self.elements, self.shifts = elements, shifts
        self._matrices: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.elements)

    def at_rest(self) -> Motions:
        """As many motions that move nothing."""
        return Motions(torch.eye(3, dtype=torch.float64).expand_as(self.elements), torch.zeros_like(self.shifts))

    def first(self, count: int) -> Motions:
        """The first few of them."""
        return Motions(self.elements[:count], self.shifts[:count])

    def apply(self, value: Tensor, spec: FieldSpec) -> Tensor:
        """A field's values after each motion, ``(R, …)`` to ``(M, R, …)``."""
        wide = value.expand(len(self), *value.shape)
        if spec.irreps == "point":
            shifts = self.shifts.view(-1, *[1] * (value.dim() - 1), 3)
            return torch.einsum("mab,m...b->m...a", self.elements, wide) + shifts
        return self._turn(wide, spec, inverse=False)

    def undo(self, value: Tensor, spec: FieldSpec) -> Tensor:
        """The inverse of :meth:`apply` on values that were moved, ``(M, R, …)`` to ``(M, R, …)``."""
        if spec.irreps == "point":
            shifts = self.shifts.view(-1, *[1] * (value.dim() - 2), 3)
            return torch.einsum("mba,m...b->m...a", self.elements, value - shifts)
        return self._turn(value, spec, inverse=True)

    def move(self, residues: Residues) -> list[Residues]:
        """The protein after each motion."""
        point = FieldSpec("pos", "node", "point")
        moved = {n: self.apply(torch.from_numpy(getattr(residues, n)), point).numpy() for n in _COORDINATES}
        copies = [replace(residues, **{n: moved[n][m] for n in _COORDINATES}) for m in range(len(self))]
        if residues.ligands is None:
            return copies
        atoms = self.apply(torch.from_numpy(residues.ligands.atom_pos), point).numpy()
        return [replace(c, ligands=replace(c.ligands, atom_pos=a)) for c, a in zip(copies, atoms, strict=True)]

    def _turn(self, value: Tensor, spec: FieldSpec, *, inverse: bool) -> Tensor:
        if spec.irreps == "index" or (spec.is_scalar and "o" not in spec.irreps) or not value.is_floating_point():
            return value
        if spec.irreps not in self._matrices:
            self._matrices[spec.irreps] = torch.stack([representation(q, spec.irreps) for q in self.elements])
        matrices = self._matrices[spec.irreps]
        flat = value.flatten(2)  # (M, R, dim)
        return (flat @ (matrices if inverse else matrices.mT)).view(value.shape)


@cache
def rotations() -> Motions:
    """32 Haar-random rotations, each with a translation of 100 to 300 Å."""
    return _motions(random_rotations(32, seed=11))


@cache
def reflections() -> Motions:
    """8 random reflections −R, each with a translation of 100 to 300 Å."""
    return _motions(random_reflections(8, seed=12))


def _motions(elements: Tensor) -> Motions:
    generator = torch.Generator().manual_seed(13)
    direction = normalize(torch.randn(len(elements), 3, generator=generator, dtype=torch.float64), dim=-1)
    length = 100 + 200 * torch.rand(len(elements), 1, generator=generator, dtype=torch.float64)
    return Motions(elements, length * direction)
