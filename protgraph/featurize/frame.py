"""Residue frames from N, CA, C, and neighbors in the frame of a residue; computed on the device, without parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.linalg import cross, vector_norm

from protgraph.featurize.base import TensorFeaturizer

__all__ = ["EdgeFrame", "ResidueFrame", "axes"]
ENTRY_POINTS = {"protgraph.featurizers": {"edge_frame": "EdgeFrame", "residue_frame": "ResidueFrame"}}

_STRAIGHT = 1e-4  # smaller sines are rounding errors of float32 coordinates of three collinear atoms


class ResidueFrame(TensorFeaturizer):
    """Local axes of each residue: e₁ along C − CA, e₂ toward N in the plane of N, CA, C, e₃ = e₁ × e₂.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)

    Writes
    ------
    frame : (N, 3, 3), 2x1o+1x1e, dimensionless
        Row k is the axis e_k: ``frame[i] @ v`` are the components of a vector v in the frame of residue i, and the rows
        rotate with the protein. 0 if N, CA or C is missing, or the three are collinear or coincide.

    Notes
    -----
    The rotation matrix R of the paper has the axes as columns; it is the transpose. e₃ is a cross product and has
    even parity, e₁ and e₂ have odd parity. Functions that mix the axes are therefore equivariant under rotations only.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 21 (rigidFrom3Points).
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask")
    writes: ClassVar[tuple[str, ...]] = ("frame",)

    def __call__(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        is_complete = f["backbone_mask"][:, :3].all(1)[:, None, None]
        n, ca, c = f["backbone"][:, :3].masked_fill(~is_complete, 0.0).unbind(1)  # NaN would propagate in gradients
        return {"frame": axes(c - ca, n - ca)}


class EdgeFrame(TensorFeaturizer):
    """Position and orientation of neighbor j in the frame of i.

    Reads
    -----
    frame : (N, 3, 3)
    pos : (N, 3), point, Å
    edges : the edges j → i

    Writes
    ------
    edge_local : (E, 3), 2x0e+1x0o, dimensionless
        ``e_k(i) · (x_j - x_i) / |x_j - x_i|``; 0 for coincident nodes.
    edge_rotation : (E, 9), 0e and 0o, dimensionless
        ``e_k(i) · e_l(j)``, row-major; odd where one of k, l is 3.

    References
    ----------
    Ingraham et al. 2019, "Generative models for graph-based protein design", NeurIPS 32, eq. 3, with the rotation
    matrix instead of its quaternion, whose sign is arbitrary.
    """

    reads: ClassVar[tuple[str, ...]] = ("frame", "pos", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_local", "edge_rotation")

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        frame, pos, edges = f["frame"], f["pos"], f["edges"]
        target_frame, source_frame = edges.target(frame), edges.source(frame)  # (E, 3, 3)
        direction = _unit(edges.source(pos) - edges.target(pos))
        return {
            "edge_local": torch.einsum("ekx,ex->ek", target_frame, direction),
            "edge_rotation": torch.einsum("ekx,elx->ekl", target_frame, source_frame).flatten(1),  # (E, 9)
        }


def axes(first: Tensor, second: Tensor) -> Tensor:
    """Return right-handed axes with e₁ along ``first`` and e₂ in the plane of both, by Gram–Schmidt.

    Parameters
    ----------
    first, second : Tensor
        ``(N, 3)``.

    Returns
    -------
    Tensor
        ``(N, 3, 3)``, rows e₁, e₂, e₃; all 0, with gradient 0, if the two are parallel.

    Examples
    --------
    >>> axes(torch.tensor([[2.0, 0, 0]]), torch.tensor([[1.0, 3, 0]]))[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    spread = vector_norm(cross(first, second, dim=-1).detach(), dim=-1, keepdim=True)
    length = vector_norm(first.detach(), dim=-1, keepdim=True) * vector_norm(second.detach(), dim=-1, keepdim=True)
    defined = spread > _STRAIGHT * length  # (N, 1)
    e1 = _unit(first)
    e2 = _unit((second - e1 * (e1 * second).sum(-1, keepdim=True)) * defined)
    return torch.stack([e1, e2, cross(e1, e2, dim=-1)], 1) * defined[..., None]


def _unit(v: Tensor) -> Tensor:
    """Return ``v / |v|`` along the last axis; 0, with gradient 0, where v is 0."""
    squared = v.square().sum(-1, keepdim=True)
    is_zero = squared == 0
    return (v / squared.masked_fill(is_zero, 1.0).sqrt()).masked_fill(is_zero, 0.0)
