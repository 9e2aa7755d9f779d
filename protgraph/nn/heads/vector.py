"""Heads for vectors and points per residue; predictions rotate with the protein."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import WiringError
from protgraph.nn.irreps import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import mlp
from protgraph.nn.module import Head

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["CoordinatesHead", "VectorHead"]
ENTRY_POINTS = {"protgraph.heads": {"coordinates": "CoordinatesHead", "node_vector": "VectorHead"}}


class VectorHead(Head):
    """Vectors per residue as combinations of the vector channels v (1o) of h.

    ``logits_ic = Σ_u MLP(invariants(h_i))_cu v_iu / sqrt(U)``.

    Directions come from the vectors, lengths from the invariants: normalizing vectors in the layers before loses no
    information.

    Parameters
    ----------
    target : Target
        Its size is the number of vectors C.
    hidden : sequence of int
        Widths of the hidden layers.
    act : str
        Activation function.
    dropout : float
        Dropout probability after each activation.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, irreps with at least one 1o. Writes: ``logits`` ``(N, C, 3)``, ``C x 1o``.

    If layers move coordinates and h is scalar, ``concat`` the field ``motion`` to h, as the model ``egnn`` does.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        hidden: Sequence[int] = (),
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        self.combine = VectorSum(fields["h"], target.size, hidden, act, dropout)
        spec = FieldSpec("logits", "node", f"{target.size}x1o", unit=target.unit, shape=target.shape)
        self.declare(logits=spec.as_("logits", chiral=invariants_are_chiral(fields["h"])))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits (N, C, 3)``, combinations of the vectors of each node."""
        return {"logits": self.combine(f["h"])}


class CoordinatesHead(Head):
    """Points per residue: ``logits_ic = x_ic + Σ_u MLP(invariants(h_i))_cu v_iu / sqrt(U)``.

    x is the wired field ``pos``, from the input or moved by a layer; v are the vector channels (1o) of h. If a layer
    placed all C points and h has no vectors, the prediction is x.

    Parameters
    ----------
    target : Target
        Its size is the number of points C per residue.
    hidden : sequence of int
        Widths of the hidden layers.
    act : str
        Activation function.
    dropout : float
        Dropout probability after each activation.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, irreps with at least one 1o; ``pos`` ``(N, 3)``, the start of all C points, or
    ``(N, C, 3)``; points, Å, finite.
    Writes: ``logits`` ``(N, C, 3)``, points; ``3C x 0e`` if pos is in a frame of the model (see layer
    ``backbone_update``).

    ``readout={"h": "h", "pos": "moved"}`` in a model specification reads the field ``moved`` as pos.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pos")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        hidden: Sequence[int] = (),
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        pos, own = fields["pos"], f"{3 * target.size}x0e"
        placed = pos.trailing_shape == target.shape and pos.irreps in ("point", own)
        if not placed and (pos.irreps, pos.trailing_shape) != ("point", (3,)):
            raise WiringError(
                f"head 'coordinates' reads points (N, 3) or (N, {target.size}, 3), but {pos.name!r} is {pos.irreps} "
                f"(N, {', '.join(map(str, pos.trailing_shape))})"
            )
        moves = not placed or any(str(ir) == "1o" for _, ir in fields["h"].o3)
        self.combine = VectorSum(fields["h"], target.size, hidden, act, dropout) if moves else None
        spec = FieldSpec("logits", "node", pos.irreps, unit=target.unit, shape=target.shape)
        self.declare(logits=spec.as_("logits", chiral=pos.chiral or invariants_are_chiral(fields["h"])))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits (N, C, 3)``: the positions, plus combinations of vectors if there are any."""
        x = f["pos"].view(len(f["pos"]), -1, 3).expand(-1, self.target.size, 3)  # (N, C, 3)
        return {"logits": x if self.combine is None else x + self.combine(f["h"])}


class VectorSum(nn.Module):
    """Combination ``Σ_u MLP(invariants(h_i))_cu v_iu / sqrt(U)`` of the vectors v in h, ``(N, D)`` to ``(N, C, 3)``."""

    def __init__(self, spec: FieldSpec, size: int, hidden: Sequence[int], act: str, dropout: float) -> None:
        super().__init__()
        self.spec, self.size = spec, size
        self.vectors = sum(mul for mul, ir in spec.o3 if str(ir) == "1o")
        if not self.vectors:
            raise WiringError(
                f"the head reads vectors (1o) of h, but {spec.name!r} is {spec.irreps}. "
                "Use a model with vector features (tfn, gvp, egnn), or concat a vector field to h before the head."
            )
        self.mlp = mlp([invariant_width(spec), *hidden, size * self.vectors], act=act, dropout=dropout)

    def forward(self, h: Tensor) -> Tensor:
        """Compute ``(N, C, 3)`` from ``h (N, dim)``: sums of its vectors, weighted by its invariants."""
        blocks = zip(self.spec.o3, self.spec.o3.slices(), strict=True)
        vectors = [h[:, where].unflatten(1, (-1, 3)) for (_, ir), where in blocks if str(ir) == "1o"]
        v = torch.cat(vectors, 1)  # (N, U, 3)
        weight = self.mlp(invariants(h, self.spec)).view(-1, self.size, self.vectors)  # (N, C, U)
        return weight @ v * self.vectors**-0.5
