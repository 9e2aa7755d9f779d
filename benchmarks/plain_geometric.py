"""Second implementations of geometric layers, from the equations of the papers: one message per edge.

Each takes the layer of protgraph whose weights it uses. Speed measurements and tests compare with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from protgraph_plugins.egnn import EGNN
from protgraph_plugins.gvp.layers import GVPConv
from protgraph_plugins.gvp.perceptron import GVP
from protgraph_plugins.ipa.attention import IPA
from torch import Tensor, nn
from torch.nn.functional import softplus

__all__ = ["PlainEGCL", "PlainGVP", "PlainGVPConv", "PlainIPA"]


class PlainEGCL(nn.Module):
    """Satorras et al. 2021, arXiv:2102.09844, eqs. 3–6 and 8."""

    def __init__(self, ours: EGNN) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, h: Tensor, pos: Tensor, index: Tensor, e: Tensor | None = None) -> tuple[Tensor, Tensor]:
        ours, (j, i) = self.ours, index
        d = pos[i] - pos[j]
        square = d.square().sum(1, keepdim=True)
        if ours.normalize:
            d = d / (square.detach().sqrt() + 1e-8)
        m = ours.edge_mlp(torch.cat([h[i], h[j], square / ours.scale**2, *([] if e is None else [e])], 1))
        if ours.att_mlp is not None:
            m = m * ours.att_mlp(m)
        step = torch.zeros_like(pos).index_add(0, i, d * ours.coord_mlp(m))
        if ours.reduce == "mean":
            step = step / i.bincount(minlength=len(h)).clamp(min=1)[:, None]
        summed = h.new_zeros(len(h), m.size(1)).index_add(0, i, m)
        out = ours.node_mlp(torch.cat([h, summed], 1))
        return h + out if ours.residual else out, pos + step


class PlainGVP(nn.Module):
    """Jing et al. 2021, arXiv:2009.01411, algorithm 1, on vectors ``(M, V, 3)``."""

    def __init__(self, ours: GVP) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        ours = self.ours
        vh = torch.einsum("hv,mvx->mhx", ours.wh.weight, v)
        s = ours.ws(torch.cat([s, vh.square().sum(2).clamp(min=1e-8).sqrt()], 1))
        v = torch.einsum("vh,mhx->mvx", ours.wv.weight, vh)
        if ours.wsv is not None:
            v = v * ours.wsv(s.sigmoid() if ours.has_inner_sigmoid else s).sigmoid()[:, :, None]
        elif ours.is_gated_by_norm:
            v = v * v.square().sum(2).clamp(min=1e-8).sqrt().sigmoid()[:, :, None]
        return s if ours.is_linear else s.relu(), v


class PlainGVPConv(nn.Module):
    """Jing et al. 2021, arXiv:2009.01411, eqs. 1–4, with every GVP of the message on every edge."""

    def __init__(self, ours: GVPConv) -> None:
        super().__init__()
        self.ours = ours
        self.message = [PlainGVP(g) for g in (ours.first, *ours.middle, ours.last)]
        self.forward_stack = [PlainGVP(g) for g in ours.feed_forward]

    def forward(self, s: Tensor, v: Tensor, index: Tensor, es: Tensor, ev: Tensor) -> tuple[Tensor, Tensor]:
        j, i = index
        ms, mv = torch.cat([s[j], es, s[i]], 1), torch.cat([v[j], ev, v[i]], 1)
        for gvp in self.message:
            ms, mv = gvp(ms, mv)
        count = s.new_zeros(len(s)).index_add(0, i, s.new_ones(len(i))).clamp(min=1)
        ds = torch.zeros_like(s).index_add(0, i, ms) / count[:, None]
        dv = torch.zeros_like(v).index_add(0, i, mv) / count[:, None, None]
        s, v = self._norm(0, s + ds, v + dv)
        ds, dv = s, v
        for gvp in self.forward_stack:
            ds, dv = gvp(ds, dv)
        return self._norm(1, s + ds, v + dv)

    def _norm(self, k: int, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        length = v.square().sum(2).clamp(min=1e-8).mean(1).sqrt()
        return self.ours.norms[k].scalar_norm(s), v / length[:, None, None]


class PlainIPA(nn.Module):
    """Jumper et al. 2021, supplement, algorithm 22, with tensors over all pairs of residues of a protein."""

    def __init__(self, ours: IPA) -> None:
        super().__init__()
        self.ours = ours

    def forward(
        self,
        h: Tensor,
        frame: Tensor,
        pos: Tensor,
        sizes: Sequence[int],
        index: Tensor | None = None,
        pair: Tensor | None = None,
    ) -> Tensor:
        ours, n, t = self.ours, len(h), pos / self.ours.unit

        def points(linear: nn.Linear) -> Tensor:  # lines 2, 3 and T_i ∘: (N, H, P, 3), from blocks of x, y and z
            local = linear(h).view(n, 3, ours.heads, -1)
            return torch.einsum("nkx,nkhp->nhpx", frame, local) + t[:, None, None]

        q, kv = ours.linear_q(h).view(n, ours.heads, -1), ours.linear_kv(h).view(n, ours.heads, -1)
        a, bo = points(ours.linear_q_points), points(ours.linear_kv_points)
        rows = []
        for start, stop in _ranges(sizes):
            z = None
            if pair is not None:
                of = (index[1] >= start) & (index[1] < stop)
                z = pair.new_zeros(stop - start, stop - start, pair.size(1))
                z = z.index_put(((index[1] - start)[of], (index[0] - start)[of]), pair[of])
            rows.append(self._protein(*(x[start:stop] for x in (q, kv, a, bo, frame, t)), z))
        return ours.linear_out(torch.cat(rows))  # line 11

    def _protein(
        self, q: Tensor, kv: Tensor, a: Tensor, bo: Tensor, frame: Tensor, t: Tensor, z: Tensor | None
    ) -> Tensor:
        ours, (k, v) = self.ours, kv.chunk(2, -1)
        b, o = bo.split(ours.points, 2)
        gamma, w_c = softplus(ours.head_weights), math.sqrt(2 / (9 * ours.points[0]))
        near = 0.5 * gamma * w_c * (a[:, None] - b[None]).square().sum((3, 4))  # (L, L, H)
        logits = torch.einsum("ihc,jhc->ijh", q, k) / math.sqrt(q.size(-1)) - near
        if z is not None:
            logits = logits + ours.linear_b(z)  # line 4
        w = (math.sqrt(1 / 3) * logits).softmax(1)  # line 7
        value = torch.einsum("ijh,jhc->ihc", w, v)  # line 8
        space = torch.einsum("ijh,jhpx->ihpx", w, o) - t[:, None, None]
        local = torch.einsum("ikx,ihpx->ikhp", frame, space)  # line 10
        norm = (local.square().sum(1) + 1e-8).sqrt()
        parts = [value, local, norm]
        if z is not None:
            parts.append(torch.einsum("ijh,ijd->ihd", w, z))  # line 9
        return torch.cat([part.flatten(1) for part in parts], 1)


def _ranges(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for size in sizes:
        yield start, start + size
        start += size
