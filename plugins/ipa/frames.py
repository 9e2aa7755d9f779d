"""Layers for residue frames: backbone update, and backbone atoms from frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from protgraph.data.graph import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.nn import GraphLayer

__all__ = ["BackboneUpdate", "PlaceBackbone", "rigid_irreps"]
ENTRY_POINTS = {"protgraph.layers": {"backbone_update": "BackboneUpdate", "place_backbone": "PlaceBackbone"}}

#: N, CA and C in the frame of a residue, Å: alanine of the Jumper et al. 2021 supplement, table 2 (rigid groups).
_RIGID = ((-0.525, 1.363, 0.0), (0.0, 0.0, 0.0), (1.526, 0.0, 0.0))
#: Distances of O from C along the bond CA–C and perpendicular to it, Å (same table: 0.627 and 1.062).
_ALONG, _ACROSS = 0.627, 1.062


def rigid_irreps(layer: GraphLayer) -> tuple[str, str]:
    """Return the irreps of the frames and points that a layer computes from its ``frame`` and ``pos``.

    A model without input coordinates places residues in a coordinate system of its own: its frames (``9x0e``) and
    points (``3x0e``) are invariant to rotations of the input.
    """
    of_model = ("9x0e", "3x0e")
    frame, pos = layer.fields.get("frame"), layer.fields.get("pos")
    if frame is None and pos is None:
        return of_model
    if frame is not None and pos is not None and (frame.trailing_shape, pos.trailing_shape) == ((3, 3), (3,)):
        if (frame.irreps, pos.irreps) == of_model:
            return of_model
        if not frame.is_scalar and pos.irreps == "point":
            return "3x1o", "point"
    raise WiringError(
        f"{type(layer).__name__} reads frames (N, 3, 3) and points (N, 3), both in space (featurizer 'residue_frame', "
        f"'pos')\nor both of layer 'backbone_update'; got frame: {frame and frame.irreps}, pos: {pos and pos.irreps}"
    )


class BackboneUpdate(GraphLayer):
    """Rotation and translation of each residue in its own frame (Jumper et al. 2021).

    ``T'_i = T_i ∘ (R(q), t)`` with the quaternion ``q ∝ (1, b, c, d)`` and ``[b c d t] = W h_i + w``.

    Parameters
    ----------
    unit : float
        Unit of length of t, Å.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars. Optional: ``frame`` ``(N, 3, 3)``, axes as rows, and ``pos`` ``(N, 3)``, Å; without
    them all residues start at the origin with the identity.
    Writes: ``frame`` ``(N, 3, 3)`` and ``pos`` ``(N, 3)``; ``motion`` ``(N, 3)``, ``1x1o``, Å: the new pos minus the
    old one, without the rounding error of a difference.

    All outputs are chiral: a rotation mixes axes of different parity. Outputs of a model without input coordinates have
    scalar irreps (:func:`rigid_irreps`). A residue without a frame does not move. W is initialized near 0 (paper: 0),
    so that residues hardly move at first.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 23; composed as in algorithm 20, line 10.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    optional: ClassVar[tuple[str, ...]] = ("frame", "pos")
    writes: ClassVar[tuple[str, ...]] = ("frame", "pos", "motion")

    def __init__(self, fields: Mapping[str, FieldSpec], *, unit: float = 10.0) -> None:
        super().__init__(fields)
        self.unit = unit
        self.linear = nn.Linear(self.scalar_width("h"), 6)
        nn.init.normal_(self.linear.weight, std=0.02)
        nn.init.zeros_(self.linear.bias)
        frame, pos = rigid_irreps(self)
        self.declare(
            frame=FieldSpec("frame", "node", frame, shape=(3, 3), chiral=True),
            pos=FieldSpec("pos", "node", pos, unit="Å", chiral=True),
            motion=FieldSpec("motion", "node", "1x1o" if pos == "point" else pos, unit="Å", chiral=True),
        )

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Turn and move each frame: ``frame (N, 3, 3)``, ``pos (N, 3)`` and ``motion (N, 3)``, Å."""
        imaginary, shift = self.linear(f["h"]).chunk(2, -1)  # (N, 3) each
        turn = _rotation(imaginary)  # (N, 3, 3)
        if "frame" not in f:
            return {"frame": turn.mT.contiguous(), "pos": self.unit * shift, "motion": self.unit * shift}
        frame = torch.einsum("nlk,nlx->nkx", turn, f["frame"])  # rows of (R U)ᵀ = Uᵀ Rᵀ
        motion = self.unit * torch.einsum("nk,nkx->nx", shift, f["frame"])
        return {"frame": frame, "pos": f["pos"] + motion, "motion": motion}


class PlaceBackbone(GraphLayer):
    """Backbone atoms from residue frames: ``x_ia = T_i ∘ r_a`` for N, CA, C, and O.

    O is rotated about the bond CA–C by the angle ψ predicted from h.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``frame`` ``(N, 3, 3)``, axes as rows; ``pos`` ``(N, 3)``, Å.
    Writes: ``backbone`` ``(N, 4, 3)`` points, Å; ``12x0e`` if pos is in a coordinate system of the model.

    Chiral: always an L amino acid. Bond lengths and angles are those of alanine. A residue without a frame has all
    atoms at its CA.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithms 24 and 25, backbone part.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "frame", "pos")
    writes: ClassVar[tuple[str, ...]] = ("backbone",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        self.angle = nn.Linear(self.scalar_width("h"), 2)
        self.register_buffer("rigid", torch.tensor(_RIGID), persistent=False)
        _, pos = rigid_irreps(self)
        spec = field("backbone").as_("backbone", chiral=True)
        if pos != "point":
            spec = spec.as_("backbone", irreps="12x0e")
        self.declare(backbone=spec)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Place N, CA, C and O in the frame of each residue, ``backbone (N, 4, 3)``, Å."""
        cosine, sine = normalize(self.angle(f["h"]), dim=-1, eps=1e-6).unbind(-1)  # of ψ
        carbon_x = _RIGID[2][0]
        along = torch.full_like(cosine, carbon_x + _ALONG)
        oxygen = torch.stack([along, -_ACROSS * cosine, -_ACROSS * sine], -1)  # (N, 3), opposite to the next N
        rigid = self.rigid.expand(len(oxygen), -1, -1)
        local = torch.cat([rigid, oxygen[:, None]], 1)  # (N, 4, 3)
        return {"backbone": f["pos"][:, None] + local @ f["frame"]}


def _rotation(imaginary: Tensor) -> Tensor:
    """Compute the rotation of the unit quaternion ∝ (1, b, c, d), ``(N, 3)`` to ``(N, 3, 3)``, as in algorithm 23."""
    real = torch.ones_like(imaginary[:, :1])
    quaternion = normalize(torch.cat([real, imaginary], 1), dim=1)
    a, b, c, d = quaternion.unbind(1)
    x = torch.stack([a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)], -1)
    y = torch.stack([2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)], -1)
    z = torch.stack([2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d], -1)
    return torch.stack([x, y, z], -2)
