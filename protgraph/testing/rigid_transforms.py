"""Batches of rigid transforms x ↦ Q x + t, applied to fields and structures and inverted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import normalize

from protgraph.data.graph.fields import FieldSpec
from protgraph.structure import Residues
from protgraph.testing.symmetry import random_reflections, random_rotations, representation

__all__ = ["RigidTransforms", "reflections", "rotations"]

_COORDINATES = ("pos", "backbone", "atom_pos")


class RigidTransforms:
    """M orthogonal matrices, each with a translation.

    ``matrices``: Q, ``(M, 3, 3)`` float64. ``translations``: t, ``(M, 3)`` float64, Å.
    """

    def __init__(self, matrices: Tensor, translations: Tensor) -> None:
        self.matrices, self.translations = matrices, translations
        self._representations: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return len(self.matrices)

    def identity(self) -> RigidTransforms:
        """Return as many identity transforms."""
        eye = torch.eye(3, dtype=torch.float64).expand_as(self.matrices)
        return RigidTransforms(eye, torch.zeros_like(self.translations))

    def __getitem__(self, rows: slice) -> RigidTransforms:
        return RigidTransforms(self.matrices[rows], self.translations[rows])

    def apply(self, value: Tensor, spec: FieldSpec) -> Tensor:
        """Transform a field's values, ``(R, …)`` to ``(M, R, …)``."""
        expanded = value.expand(len(self), *value.shape)
        if spec.irreps == "point":
            shifts = self.translations.view(-1, *[1] * (value.dim() - 1), 3)
            return torch.einsum("mab,m...b->m...a", self.matrices, expanded) + shifts
        return self._rotate(expanded, spec, inverse=False)

    def undo(self, value: Tensor, spec: FieldSpec) -> Tensor:
        """Apply the inverse transforms to transformed values, ``(M, R, …)`` to ``(M, R, …)``."""
        if spec.irreps == "point":
            shifts = self.translations.view(-1, *[1] * (value.dim() - 2), 3)
            return torch.einsum("mba,m...b->m...a", self.matrices, value - shifts)
        return self._rotate(value, spec, inverse=True)

    def move(self, residues: Residues) -> list[Residues]:
        """Return one transformed copy of the protein per transform, ligands included."""
        point = FieldSpec("pos", "node", "point")
        moved = {n: self.apply(torch.from_numpy(getattr(residues, n)), point).numpy() for n in _COORDINATES}
        copies = []
        for number in range(len(self)):
            positions = {name: moved[name][number] for name in _COORDINATES}
            copies.append(replace(residues, **positions))
        if residues.ligands is None:
            return copies
        atoms = self.apply(torch.from_numpy(residues.ligands.atom_pos), point).numpy()
        ligands = [replace(residues.ligands, atom_pos=pos) for pos in atoms]
        return [replace(moved_copy, ligands=bound) for moved_copy, bound in zip(copies, ligands, strict=True)]

    def _rotate(self, value: Tensor, spec: FieldSpec, *, inverse: bool) -> Tensor:
        if spec.irreps == "index" or (spec.is_scalar and "o" not in spec.irreps) or not value.is_floating_point():
            return value
        if spec.irreps not in self._representations:
            self._representations[spec.irreps] = torch.stack([representation(q, spec.irreps) for q in self.matrices])
        matrices = self._representations[spec.irreps]
        flat = value.flatten(2)  # (M, R, dim)
        return (flat @ (matrices if inverse else matrices.mT)).view(value.shape)


@cache
def rotations() -> RigidTransforms:
    """Return 32 Haar-random rotations, each with a translation of 100 to 300 Å."""
    return _with_translations(random_rotations(32, seed=11))


@cache
def reflections() -> RigidTransforms:
    """Return 8 random reflections −R, each with a translation of 100 to 300 Å."""
    return _with_translations(random_reflections(8, seed=12))


def _with_translations(matrices: Tensor) -> RigidTransforms:
    generator = torch.Generator().manual_seed(13)
    direction = normalize(torch.randn(len(matrices), 3, generator=generator, dtype=torch.float64), dim=-1)
    length = 100 + 200 * torch.rand(len(matrices), 1, generator=generator, dtype=torch.float64)
    return RigidTransforms(matrices, length * direction)
