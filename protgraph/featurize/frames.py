"""Residue frames from N, CA, C, and the position and orientation of neighbors in them; on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.linalg import cross, vector_norm

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, register_field
from protgraph.featurize.base import TensorFeaturizer
from protgraph.ops import unit_or_zero
from protgraph.structure.descriptors.backbone_geometry import CB_C, CB_CROSS, CB_N

__all__ = ["EdgeFrame", "EdgeQuaternion", "EdgeTrRosetta", "ResidueFrame", "axes"]
ENTRY_POINTS = {
    "protgraph.featurizers": {
        "edge_frame": "EdgeFrame",
        "edge_quaternion": "EdgeQuaternion",
        "edge_trrosetta": "EdgeTrRosetta",
        "residue_frame": "ResidueFrame",
    }
}


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

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
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
        direction = unit_or_zero(edges.source(pos) - edges.target(pos))
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
    e1 = unit_or_zero(first)
    e2 = unit_or_zero((second - e1 * (e1 * second).sum(-1, keepdim=True)) * defined)
    return torch.stack([e1, e2, cross(e1, e2, dim=-1)], 1) * defined[..., None]


for _spec in (
    FieldSpec(
        "edge_quaternion",
        "edge",
        "1x0e+2x0o+1x0e",
        doc="rotation from the frame of j to that of i as w, x, y, z with w not negative; 0 without frames",
    ),
    FieldSpec(
        "edge_trrosetta",
        "edge",
        "7x0e+3x0o",
        chiral=True,
        doc="cosines of omega, theta, theta', phi, phi', sines of phi, phi', omega, theta, theta'; 0 where undefined",
    ),
    FieldSpec(
        "edge_trrosetta_mask",
        "edge",
        "5x0e",
        "bool",
        chiral=True,
        doc="which of omega, theta, theta', phi, phi' are defined",
    ),
):
    register_field(_spec)


class EdgeQuaternion(TensorFeaturizer):
    """Unit quaternion q of the rotation from the frame of j to the frame of i.

    Reads
    -----
    frame : (N, 3, 3), 2x1o+1x1e
    edges : the edges j → i

    Writes
    ------
    edge_quaternion : (E, 4), 1x0e+2x0o+1x0e, dimensionless
        w, x, y, z; 0 where a residue has no frame. Reflection changes the sign of x and y, because the third axis of a
        frame is a cross product.

    Notes
    -----
    q and −q are the same rotation. The one with w ≥ 0 is used, which makes the sign of
    x, y, z discontinuous at half turns (w = 0). ``edge_rotation`` of ``edge_frame`` is the same rotation and
    continuous.

    References
    ----------
    Ingraham et al. 2019, "Generative models for graph-based protein design", NeurIPS 32, eq. 3; Gao, Tan & Li 2022,
    arXiv:2209.12643 (PiFold). The frames are those of ``residue_frame``, not the frames from three CA of these papers.
    """

    reads: ClassVar[tuple[str, ...]] = ("frame", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_quaternion",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        target_frame, source_frame = f["edges"].target(f["frame"]), f["edges"].source(f["frame"])  # (E, 3, 3)
        framed = target_frame.flatten(1).any(1) & source_frame.flatten(1).any(1)
        return {
            "edge_quaternion": _quaternion(torch.einsum("ekx,elx->ekl", target_frame, source_frame)) * framed[:, None]
        }


class EdgeTrRosetta(TensorFeaturizer):
    """trRosetta angles between the side chains of two residues: ω, and θ and φ in both directions.

    ω is the dihedral CA_i, CB_i, CB_j, CA_j; θ the dihedral N_i, CA_i, CB_i, CB_j; φ the angle CA_i, CB_i, CB_j.

    Reads
    -----
    backbone : (N, 4, 3), point, Å
    backbone_mask : (N, 4)
    edges : the edges j → i

    Writes
    ------
    edge_trrosetta : (E, 10), 7x0e+3x0o under rotations (chiral), dimensionless
        cos ω, cos θ, cos θ′, cos φ, cos φ′, sin φ, sin φ′, sin ω, sin θ, sin θ′; θ, φ from i to j, θ′, φ′ from j to
        i. 0 where undefined.
    edge_trrosetta_mask : (E, 5) bool
        Which of ω, θ, θ′, φ, φ′ are defined: N, CA and C of both residues are present and no three atoms are collinear.

    Notes
    -----
    Every residue has a virtual CB, glycine or not, so that the angles are independent of the residue type
    (:func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`). Its formula is that of L-amino acids, hence
    chiral. There is no distance limit; the paper uses 20 Å.

    References
    ----------
    Yang et al. 2020, doi:10.1073/pnas.1914677117, figure 1A.
    """

    reads: ClassVar[tuple[str, ...]] = ("backbone", "backbone_mask", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_trrosetta", "edge_trrosetta_mask")
    conformity = Conformity(tolerance=3e-4)  # coordinates of 300 Å are rounded to 1.5e-5 Å

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        edges, is_complete = f["edges"], f["backbone_mask"][:, :3].all(1)
        n, ca, c = f["backbone"][:, :3].masked_fill(~is_complete[:, None, None], 0.0).unbind(1)  # NaN would propagate
        b, a = ca - n, c - ca
        cb = ca + CB_CROSS * cross(b, a, dim=-1) + CB_N * b + CB_C * a  # as in virtual_cb
        n_i, ca_i, cb_i = edges.target(n), edges.target(ca), edges.target(cb)
        n_j, ca_j, cb_j = edges.source(n), edges.source(ca), edges.source(cb)
        omega = _dihedral(ca_i, cb_i, cb_j, ca_j)
        theta, theta_j = _dihedral(n_i, ca_i, cb_i, cb_j), _dihedral(n_j, ca_j, cb_j, cb_i)
        phi, phi_j = _angle(ca_i, cb_i, cb_j), _angle(ca_j, cb_j, cb_i)
        mask = torch.stack([angle[2] for angle in (omega, theta, theta_j, phi, phi_j)], 1)
        mask = mask & (edges.source(is_complete) & edges.target(is_complete))[:, None]
        cosines = torch.stack([angle[0] for angle in (omega, theta, theta_j, phi, phi_j)], 1) * mask
        sines = torch.stack([angle[1] for angle in (phi, phi_j, omega, theta, theta_j)], 1)
        sines = sines * mask[:, [3, 4, 0, 1, 2]]
        return {"edge_trrosetta": torch.cat([cosines, sines], 1), "edge_trrosetta_mask": mask}


def _quaternion(m: Tensor) -> Tensor:
    """Return unit quaternions ``(E, 4)`` with w ≥ 0 of rotation matrices ``(E, 3, 3)``.

    Each row of 4 q qᵀ is a multiple of q; the one with the largest diagonal element is used (Shepperd 1978,
    doi:10.2514/3.55767b).
    """
    x, y, z = m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]
    wx, wy, wz = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    xy, xz, yz = m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2]
    rows = torch.stack([1 + x + y + z, wx, wy, wz, wx, 1 + x - y - z, xy, xz], 1)
    rows = torch.cat([rows, torch.stack([wy, xy, 1 - x + y - z, yz, wz, xz, yz, 1 - x - y + z], 1)], 1).view(-1, 4, 4)
    best = rows.diagonal(dim1=1, dim2=2).argmax(1)
    q = rows[torch.arange(len(rows), device=m.device), best]  # (E, 4)
    return torch.where(q[:, :1] < 0, -q, q) / vector_norm(q, dim=1, keepdim=True)


def _dihedral(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return cosine and sine ``(E,)`` of the dihedral angle of four points, and the mask of defined rows."""
    b1, b2, b3 = b - a, c - b, d - c
    n1, n2 = cross(b1, b2, dim=-1), cross(b2, b3, dim=-1)
    l1, l2, l3 = (_length(v) for v in (b1, b2, b3))
    defined = (_length(n1) > _STRAIGHT * l1 * l2) & (_length(n2) > _STRAIGHT * l2 * l3)
    size = _safe(n1, defined) * _safe(n2, defined)
    return (n1 * n2).sum(-1) / size, _safe(b2, defined) * (b1 * n2).sum(-1) / size, defined


def _angle(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return cosine and sine ``(E,)`` of the angle at b, and the mask of defined rows."""
    u, v = a - b, c - b
    across = cross(u, v, dim=-1)
    apart = (_length(u) > 0) & (_length(v) > 0)
    bent = apart & (_length(across) > 0)
    size = _safe(u, apart) * _safe(v, apart)
    return (u * v).sum(-1) / size, _safe(across, bent) * bent / size, apart


def _length(v: Tensor) -> Tensor:
    return vector_norm(v.detach(), dim=-1)


def _safe(v: Tensor, defined: Tensor) -> Tensor:
    """Return lengths ``(E,)`` of defined rows, else 1 with gradient 0."""
    return torch.where(defined, v.square().sum(-1), torch.ones_like(v[:, 0])).sqrt()
