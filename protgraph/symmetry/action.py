"""Action of O(3) on field values, by the irreps of the field table."""

from __future__ import annotations

import torch
from e3nn import o3
from torch import Tensor

from protgraph.errors import FieldError

__all__ = ["act", "representation"]


def act(
    element: Tensor, value: Tensor, irreps: str, *, shape: tuple[int, ...] | None = None, shift: Tensor | None = None
) -> Tensor:
    """Transform field values for a protein moved by x ↦ Q x + t.

    Parameters
    ----------
    element : Tensor
        Q, ``(3, 3)`` orthogonal; float64 for exact results.
    value : Tensor
        ``(M, *shape)``.
    irreps : str
        As in :class:`protgraph.data.FieldSpec`: e3nn irreps in e3nn's flat order, ``"point"`` (Q x + t),
        ``"index"`` or ``"object"`` (unchanged).
    shape : tuple of int, optional
        Trailing shape of one value, e.g. ``(V, 3)`` for V vectors; its entries in row-major order are the irreps.
        Default: all dimensions except the first.
    shift : Tensor, optional
        t, ``(3,)``, Å; applied to points only.

    Returns
    -------
    Tensor
        Shape of ``value``; integers and booleans (categories, masks) are returned unchanged.

    Raises
    ------
    FieldError
        The shape of ``value`` does not fit ``irreps``.

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

    Parameters
    ----------
    element : Tensor
        Q, ``(3, 3)`` orthogonal.
    irreps : str
        e3nn irreps.

    Returns
    -------
    Tensor
        ``(dim, dim)``, dtype of ``element``.
    """
    improper = bool(torch.linalg.det(element) < 0)
    rotation = -element if improper else element
    blocks: list[Tensor] = []
    for mul, ir in o3.Irreps(irreps):
        block = _wigner_d(rotation, ir.l)
        blocks += mul * [ir.p * block if improper else block]
    return torch.block_diag(*blocks)


def _wigner_d(rotation: Tensor, l: int) -> Tensor:  # noqa: E741
    """Return ``D^l(R)``, ``(2l+1, 2l+1)``, by coupling D^(l-1) with D^1 = R.

    Not e3nn: ``D_from_matrix`` uses Euler angles and generators in the default dtype, with errors of 1e-7 in float64
    (e3nn 0.6.0, 2026-11-22).
    """
    if l == 0:
        return torch.ones_like(rotation[:1, :1])
    d = rotation
    for k in range(2, l + 1):
        c = o3.wigner_3j(k - 1, 1, k, dtype=rotation.dtype, device=rotation.device)
        d = (2 * k + 1) * torch.einsum("abm,ac,bd,cdn->mn", c, d, rotation, c)
    return d
