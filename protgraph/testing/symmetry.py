"""Rotations and reflections of field values, batches of rigid transforms x ↦ Q x + t, and relative errors."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from e3nn import o3
from torch import Tensor
from torch.nn.functional import normalize

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import FieldError, ProtgraphError
from protgraph.structure import Residues

__all__ = [
    "ComparisonError",
    "RigidTransforms",
    "act",
    "random_reflections",
    "random_rotations",
    "reflections",
    "relative_error",
    "representation",
    "rotations",
]


def act(
    element: Tensor, value: Tensor, irreps: str, *, shape: tuple[int, ...] | None = None, shift: Tensor | None = None
) -> Tensor:
    """Transform field values for a protein moved by x ↦ Q x + t.

    ``element``: Q, ``(3, 3)`` orthogonal; float64 for exact results. ``value``: ``(M, *shape)``. ``irreps``: as in
    :class:`protgraph.data.FieldSpec`: e3nn irreps in e3nn's flat order, ``"point"`` (Q x + t), ``"index"`` or
    ``"object"`` (unchanged). ``shape``: trailing shape of one value, e.g. ``(V, 3)`` for V vectors; its entries in
    row-major order are the irreps. Default: all dimensions except the first. ``shift``: t, ``(3,)``, Å; applied to
    points only. Returns the shape of ``value``; integers and booleans (categories, masks) are returned unchanged.
    Raises :class:`FieldError` if the shape of ``value`` does not fit ``irreps``.

    Examples
    --------
    >>> quarter = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> act(quarter, torch.tensor([[1.0, 0.0, 0.0, 7.0]]), "1x1o+1x0e").tolist()
    [[0.0, 1.0, 0.0, 7.0]]
    """
    if irreps in ("index", "object") or not value.is_floating_point():
        return value
    shape = tuple(value.shape[1:]) if shape is None else shape
    if irreps == "point":
        moved = value @ element.to(value).T
        return moved if shift is None else moved + shift.to(value)
    if value.shape[1:] != torch.Size(shape) or torch.Size(shape).numel() != o3.Irreps(irreps).dim:
        raise FieldError(
            f"values of shape {tuple(value.shape)} do not fit irreps {irreps} with shape (M, *{tuple(shape)})"
        )
    matrix = representation(element, irreps).to(value)
    return (value.reshape(len(value), -1) @ matrix.T).reshape(value.shape)


def representation(element: Tensor, irreps: str) -> Tensor:
    """Return the block-diagonal matrix D(Q) that acts on irreps.

    ``element``: Q, ``(3, 3)`` orthogonal. ``irreps``: e3nn irreps. Returns ``(dim, dim)``, dtype of ``element``.
    """
    improper = bool(torch.linalg.det(element) < 0)
    rotation = -element if improper else element
    blocks: list[Tensor] = []
    for mul, ir in o3.Irreps(irreps):
        block = _wigner_d(rotation, ir.l)
        blocks += mul * [ir.p * block if improper else block]
    return torch.block_diag(*blocks)


def _wigner_d(rotation: Tensor, l: int) -> Tensor:  # noqa: E741
    """Return ``D^l(R)``, ``(2l+1, 2l+1)``, by coupling D^(l-1) with D^1 = R."""
    # Not e3nn's D_from_matrix: errors of 1e-7 in float64, by generators in the default dtype (e3nn 0.6.0, 2026-11-22).
    if l == 0:
        return torch.ones_like(rotation[:1, :1])
    d = rotation
    for k in range(2, l + 1):
        c = o3.wigner_3j(k - 1, 1, k, dtype=rotation.dtype, device=rotation.device)
        d = (2 * k + 1) * torch.einsum("abm,ac,bd,cdn->mn", c, d, rotation, c)
    return d


def random_rotations(count: int, *, seed: int = 0) -> Tensor:
    """Sample rotations R, uniform under the Haar measure of SO(3).

    Normalized Gaussian quaternions are uniform on the 3-sphere, which covers SO(3) twice.

    ``count``: number of matrices. ``seed``: seed; the global generator is not used. Returns ``(count, 3, 3)`` float64,
    orthogonal with determinant +1.

    References
    ----------
    Shoemake 1992, "Uniform random rotations", Graphics Gems III, pp. 124–132.

    Examples
    --------
    >>> r = random_rotations(1)[0]
    >>> torch.allclose(r @ r.T, torch.eye(3, dtype=torch.float64))
    True
    """
    generator = torch.Generator("cpu").manual_seed(seed)  # another default device has no effect
    q = torch.randn(count, 4, generator=generator, dtype=torch.float64, device="cpu")
    w, x, y, z = (q / q.norm(dim=-1, keepdim=True)).unbind(-1)
    rows = [
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack([torch.stack(row, -1) for row in rows], -2)  # (count, 3, 3)


def random_reflections(count: int, *, seed: int = 0) -> Tensor:
    """Sample improper rotations −R, uniform over the part of O(3) with determinant −1.

    ``count``: number of matrices. ``seed``: seed; the global generator is not used. Returns ``(count, 3, 3)`` float64,
    orthogonal with determinant −1.
    """
    return -random_rotations(count, seed=seed)


class ComparisonError(ProtgraphError, ArithmeticError):
    """Two tensors cannot be compared: shapes differ, values are not finite, or all are zero."""


def relative_error(actual: Tensor, expected: Tensor, *, irreps: str | None = None) -> float:
    """Return ``max |actual − expected| / max |expected|``; with irreps, the largest over their blocks.

    NaN and zeros are invariant under any rotation, so they raise instead of passing a symmetry test.

    ``actual``, ``expected``: floating-point tensors of any shape, the same for both. ``irreps``: e3nn irreps of the
    flattened trailing dimensions. Each block, e.g. ``16x1o``, has its own scale, so that large scalars do not hide
    errors of small vectors. The error is dimensionless. Raises :class:`ComparisonError` if shapes differ, a value
    is NaN or infinite, or ``expected`` (or a block of it) is empty or zero.

    Examples
    --------
    >>> relative_error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    0.5
    """
    if actual.shape != expected.shape:
        raise ComparisonError(f"different shapes: {tuple(actual.shape)} and {tuple(expected.shape)}")
    actual, expected = actual.detach(), expected.detach()
    if irreps is None:
        return _block_error(actual, expected)
    actual, expected = actual.flatten(1), expected.flatten(1)
    errors = []
    for block in o3.Irreps(irreps).slices():
        if block.start < block.stop:
            errors.append(_block_error(actual[:, block], expected[:, block]))
    return max(errors)


def _block_error(actual: Tensor, expected: Tensor) -> float:
    if not (torch.isfinite(actual).all() and torch.isfinite(expected).all()):
        raise ComparisonError("a value is NaN or infinite")
    scale = expected.abs().max() if expected.numel() else 0.0
    if scale == 0:
        raise ComparisonError("all values are zero, or there are none; zeros are invariant under every rotation")
    return float((actual - expected).abs().max() / scale)


# --- batches of rigid transforms -------------------------------------------------------------------------------------


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
