"""Frames of edges, and message passing with geometry-complete perceptrons (Morehead & Cheng 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from protgraph_plugins.gvp import ScalarVector, ScalarVectorDropout, ScalarVectorNorm, ScalarVectorWidths
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.errors import WiringError
from protgraph.ops import polar

__all__ = ["GCPConv", "GCPFrames", "GeometryCompletePerceptron"]
ENTRY_POINTS = {"protgraph.layers": {"gcp_conv": "GCPConv", "gcp_frames": "GCPFrames"}}

SMALLEST = 1e-8  # added to |v|² and to |v|, as in the authors' code


class GCPFrames(GraphLayer):
    """Three vectors per edge that distinguish a structure from its mirror image.

    Lengths and angles of vectors are the same in a mirror; their components in these frames are not.
    ``a = (x_i - x_j) / (|x_i - x_j| + 1)``, ``b = x_i × x_j / (|x_i × x_j| + 1)``, ``c = a × b``, with positions
    relative to their mean over the protein.

    Notes
    -----
    Reads: ``pos`` ``(N, 3)``, Å; ``edges``; ``proteins``.
    Writes: ``edge_frame`` ``(E, 9)``, ``3x1o`` under rotations (chiral): a, b, c.

    b depends on which residues a protein has, since they set the mean. The 1 makes a, b and c shorter than 1.

    References
    ----------
    Morehead & Cheng 2024, Bioinformatics 40, btae087, arXiv:2211.02504, eq. 1; centering as in the authors' code.
    """

    reads: ClassVar[tuple[str, ...]] = ("pos", "edges", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("edge_frame",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        self.declare(edge_frame=FieldSpec("edge_frame", "edge", "3x1o", chiral=True))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``edge_frame (E, 9)`` from the centered positions of both nodes."""
        edges, proteins = f["edges"], f["proteins"]
        center = proteins.mean(f["pos"])
        pos = f["pos"] - proteins.expand(center)
        target = edges.target(pos)
        source = edges.source(pos)

        a = _shorten(target - source)
        b = _shorten(torch.linalg.cross(target, source))
        c = torch.linalg.cross(a, b)
        return {"edge_frame": torch.cat([a, b, c], 1)}


def _shorten(v: Tensor) -> Tensor:
    """Compute ``v / (|v| + 1)``, ``(E, 3)``."""
    length, _ = polar(v)
    return v / (length + 1)


class GeometryCompletePerceptron(nn.Module):
    """Perceptron of scalars and vectors that reads the components of vectors in frames.

    A perceptron of lengths alone (GVP) does not see where vectors point relative to the edge.
    ``V_h = W_d V``, ``s' = L [s, |V_h|, F W_f V]``, ``V' = σ(W_g act(s') + b_g) ∘ W_u V_h``, then ``act(s')``.

    Parameters
    ----------
    width_in, width_out : ScalarVectorWidths
        Input and output widths; both have vectors.
    bottleneck : int
        Divisor of the number of input vectors that gives that of V_h.
    is_last : bool
        No activation; L is a perceptron with one hidden layer instead of a linear map.

    References
    ----------
    Morehead & Cheng 2024, arXiv:2211.02504, algorithm 1 (GCP).
    """

    def __init__(
        self, width_in: ScalarVectorWidths, width_out: ScalarVectorWidths, *, bottleneck: int, is_last: bool = False
    ) -> None:
        super().__init__()
        hidden = max(1, width_in.vectors // bottleneck)
        scalars = width_out.scalars
        self.vector_down = nn.Linear(width_in.vectors, hidden, bias=False)
        self.vector_down_frames = nn.Linear(width_in.vectors, 3, bias=False)
        first = nn.Linear(width_in.scalars + hidden + 9, scalars)
        self.scalar_out = nn.Sequential(first, nn.SiLU(), nn.Linear(scalars, scalars)) if is_last else first
        self.vector_up = nn.Linear(hidden, width_out.vectors, bias=False)
        self.vector_out_scale = nn.Linear(scalars, width_out.vectors)
        self.act = nn.Identity() if is_last else nn.SiLU()

    def forward(self, x: ScalarVector, frame: Tensor) -> ScalarVector:
        """Apply the perceptron to ``(M, S)`` scalars and ``(M, 3, V)`` vectors with frames ``(M, 3, 3)``, in rows."""
        hidden = self.vector_down(x.v)  # (M, 3, H)
        norms = (hidden.square().sum(1) + SMALLEST).sqrt() + SMALLEST
        in_frame = frame @ self.vector_down_frames(x.v)  # (M, 3, 3)
        components = in_frame.mT.flatten(1)

        s = self.scalar_out(torch.cat([x.s, norms, components], 1))
        gate = self.vector_out_scale(self.act(s)).sigmoid()
        v = self.vector_up(hidden) * gate.unsqueeze(1)
        return ScalarVector(self.act(s), v)


class GCPConv(GraphLayer):
    """Message passing with geometry-complete perceptrons (GCPNet; Morehead & Cheng 2024).

    ``m ← P_0([h_i, e_ij, h_j])``, ``m ← m + P_k(m)`` for k = 1 … depth - 1, the scalars of m scaled by
    ``σ(w · m_s + b)``, ``h_i ← norm(h_i + F([Σ_j m_ij, h_i]))``; P and F are perceptrons with the frames of edges.

    Parameters
    ----------
    depth : int
        Number of perceptrons of a message.
    bottleneck : int
        Divisor of the numbers of vectors inside the perceptrons.
    dropout : float
        Dropout probability of scalars and of whole vectors.

    Notes
    -----
    Reads: ``h`` ``(N, S + 3 V)``, ``Sx0e+Vx1o``; ``edges``; ``edge_attr`` ``(E, D)``, scalars and vectors;
    ``edge_frame`` ``(E, 9)``, three vectors per edge, from layer ``gcp_frames``.
    Writes: ``h``, of the same irreps, chiral.

    Perceptrons of nodes read the mean of the frames of their edges, since a frame times a vector of the target is
    linear in the frame. Equal to the interaction layer of ProteinWorkshop's GCPNet, without update of positions.

    References
    ----------
    Morehead & Cheng 2024, Bioinformatics 40, btae087, arXiv:2211.02504, algorithms 1 and 2.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges", "edge_attr", "edge_frame")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        inputs={
            "h": "16x0e+4x1o",
            "edge_attr": FieldSpec("edge_attr", "edge", "8x0e+2x1o"),
            "edge_frame": FieldSpec("edge_frame", "edge", "3x1o", chiral=True),
        }
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        depth: Annotated[int, Ge(1)] = 4,
        bottleneck: Annotated[int, Ge(1)] = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        self.node = n = ScalarVectorWidths.of(fields["h"], "gcp_conv")
        self.edge = e = ScalarVectorWidths.of(fields["edge_attr"], "gcp_conv")
        if fields["edge_frame"].irreps != "3x1o" or not n.vectors:
            raise WiringError(
                f"gcp_conv reads h of {n.irreps} and edge_frame of {fields['edge_frame'].irreps}. It needs vectors in "
                "h and three vectors per edge. Add the layers 'gvp' and 'gcp_frames' before."
            )

        # Messages read both nodes and the edge.
        of_edge = ScalarVectorWidths(2 * n.scalars + e.scalars, 2 * n.vectors + e.vectors)
        self.message = nn.ModuleList([GeometryCompletePerceptron(of_edge, n, bottleneck=bottleneck)])
        for _ in range(depth - 1):
            self.message.append(GeometryCompletePerceptron(n, n, bottleneck=bottleneck))
        self.attention = nn.Linear(n.scalars, 1)

        # Updates read the sum of the messages and the node.
        double = ScalarVectorWidths(2 * n.scalars, 2 * n.vectors)
        wide = ScalarVectorWidths(4 * n.scalars, 2 * n.vectors)
        first = GeometryCompletePerceptron(double, wide, bottleneck=bottleneck)
        last = GeometryCompletePerceptron(wide, n, bottleneck=bottleneck, is_last=True)
        self.feed_forward = nn.ModuleList([first, last])
        self.dropout = ScalarVectorDropout(dropout)
        self.norm = ScalarVectorNorm(n.scalars)
        self.declare(h=fields["h"].as_("h", irreps=n.irreps))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, S + 3V)``: sums of messages, then a feed-forward update."""
        edges = f["edges"]
        frame = f["edge_frame"].unflatten(1, (3, 3))
        h = ScalarVector.unpack(f["h"], self.node)
        e = ScalarVector.unpack(f["edge_attr"], self.edge)

        # Messages, (E, S) and (E, 3, V).
        scalars = torch.cat([edges.target(h.s), e.s, edges.source(h.s)], 1)
        vectors = torch.cat([edges.target(h.v), e.v, edges.source(h.v)], 2)
        first, *residual = self.message
        m = first(ScalarVector(scalars, vectors), frame)
        for perceptron in residual:
            m = m + perceptron(m, frame)
        attention = self.attention(m.s).sigmoid()
        s = edges.sum(m.s * attention)
        v = edges.sum(m.v)

        # Update of nodes, in the mean frame of their edges.
        of_node = edges.mean(frame)
        update = ScalarVector(torch.cat([s, h.s], 1), torch.cat([v, h.v], 2))
        for perceptron in self.feed_forward:
            update = perceptron(update, of_node)
        return {"h": self.norm(h + self.dropout(update)).pack()}
