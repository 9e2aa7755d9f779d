"""Residue frames from N, CA, C, and the position and orientation of neighbors in them; on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

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
        n, ca, c = _complete_backbone(f)
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
    is_defined = _has_plane(first, second)[:, None]  # (N, 1)
    e1 = unit_or_zero(first)
    along_e1 = (e1 * second).sum(-1, keepdim=True) * e1
    e2 = unit_or_zero((second - along_e1) * is_defined)
    e3 = cross(e1, e2, dim=-1)
    return torch.stack([e1, e2, e3], dim=1) * is_defined[..., None]


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
        frame, edges = f["frame"], f["edges"]
        target_frame, source_frame = edges.target(frame), edges.source(frame)  # (E, 3, 3)
        rotation = torch.einsum("ekx,elx->ekl", target_frame, source_frame)
        has_frame = frame.flatten(1).any(1)
        has_frames = edges.target(has_frame) & edges.source(has_frame)
        return {"edge_quaternion": _quaternion(rotation) * has_frames[:, None]}


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
        n, ca, c = _complete_backbone(f)
        is_complete = f["backbone_mask"][:, :3].all(1)
        b = ca - n
        a = c - ca
        cb = ca + CB_CROSS * cross(b, a, dim=-1) + CB_N * b + CB_C * a  # as in virtual_cb

        edges = f["edges"]
        n_i, ca_i, cb_i = edges.target(n), edges.target(ca), edges.target(cb)
        n_j, ca_j, cb_j = edges.source(n), edges.source(ca), edges.source(cb)
        omega = _dihedral(ca_i, cb_i, cb_j, ca_j)
        theta = _dihedral(n_i, ca_i, cb_i, cb_j)
        theta_j = _dihedral(n_j, ca_j, cb_j, cb_i)
        phi = _angle(ca_i, cb_i, cb_j)
        phi_j = _angle(ca_j, cb_j, cb_i)

        angles = (omega, theta, theta_j, phi, phi_j)
        has_atoms = edges.source(is_complete) & edges.target(is_complete)
        mask = torch.stack([angle.is_defined for angle in angles], dim=1) & has_atoms[:, None]  # (E, 5)
        cosines = torch.stack([angle.cosine for angle in angles], dim=1) * mask
        sines = torch.stack([angle.sine for angle in angles], dim=1) * mask
        sines = sines[:, [3, 4, 0, 1, 2]]  # φ and φ′ first: their sines do not change in a reflection
        return {"edge_trrosetta": torch.cat([cosines, sines], dim=1), "edge_trrosetta_mask": mask}


def _complete_backbone(f: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Return N, CA and C of each residue, ``(N, 3)``; 0 if one is missing, because NaN would propagate in gradients."""
    is_complete = f["backbone_mask"][:, :3].all(1)
    positions = f["backbone"][:, :3].masked_fill(~is_complete[:, None, None], 0.0)
    return positions[:, 0], positions[:, 1], positions[:, 2]


def _quaternion(m: Tensor) -> Tensor:
    """Return unit quaternions ``(E, 4)`` with w ≥ 0 of rotation matrices ``(E, 3, 3)``.

    Each row of 4 q qᵀ is a multiple of q; the one with the largest diagonal element is used (Shepperd 1978,
    doi:10.2514/3.55767b).
    """
    x, y, z = m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]
    wx, wy, wz = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    xy, xz, yz = m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2]
    row_w = torch.stack([1 + x + y + z, wx, wy, wz], dim=1)
    row_x = torch.stack([wx, 1 + x - y - z, xy, xz], dim=1)
    row_y = torch.stack([wy, xy, 1 - x + y - z, yz], dim=1)
    row_z = torch.stack([wz, xz, yz, 1 - x - y + z], dim=1)
    multiples = torch.stack([row_w, row_x, row_y, row_z], dim=1)  # (E, 4, 4): 4 q qᵀ

    largest = multiples.diagonal(dim1=1, dim2=2).argmax(1)
    edge = torch.arange(len(m), device=m.device)
    q = multiples[edge, largest]  # (E, 4)
    q = torch.where(q[:, :1] < 0, -q, q)
    return q / vector_norm(q, dim=1, keepdim=True)


class _Angle(NamedTuple):
    """Cosine and sine ``(E,)`` of an angle, and where it is defined."""

    cosine: Tensor
    sine: Tensor
    is_defined: Tensor


def _dihedral(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> _Angle:
    """Return the dihedral angle of four points."""
    b1, b2, b3 = b - a, c - b, d - c
    n1 = cross(b1, b2, dim=-1)
    n2 = cross(b2, b3, dim=-1)
    is_defined = _has_plane(b1, b2) & _has_plane(b2, b3)
    size = _length_or_one(n1, is_defined) * _length_or_one(n2, is_defined)
    cosine = (n1 * n2).sum(-1) / size
    sine = _length_or_one(b2, is_defined) * (b1 * n2).sum(-1) / size
    return _Angle(cosine, sine, is_defined)


def _angle(a: Tensor, b: Tensor, c: Tensor) -> _Angle:
    u, v = a - b, c - b
    normal = cross(u, v, dim=-1)
    is_defined = (_length(u) > 0) & (_length(v) > 0)
    is_bent = is_defined & (_length(normal) > 0)
    size = _length_or_one(u, is_defined) * _length_or_one(v, is_defined)
    cosine = (u * v).sum(-1) / size
    sine = _length_or_one(normal, is_bent) * is_bent / size
    return _Angle(cosine, sine, is_defined)


def _has_plane(u: Tensor, v: Tensor) -> Tensor:
    """Return False where two vectors are parallel to rounding, or one is 0, ``(E,)``."""
    normal = cross(u.detach(), v.detach(), dim=-1)
    return _length(normal) > _STRAIGHT * _length(u) * _length(v)


def _length(v: Tensor) -> Tensor:
    return vector_norm(v.detach(), dim=-1)


def _length_or_one(v: Tensor, is_defined: Tensor) -> Tensor:
    """Return lengths ``(E,)`` of defined rows, else 1 with gradient 0."""
    squares = torch.where(is_defined, v.square().sum(-1), torch.ones_like(v[:, 0]))
    return squares.sqrt()
