"""Second implementations of layers on irreps, with e3nn: see :mod:`benchmarks.plain_geometric`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from e3nn import o3
from protgraph_plugins.mace.polynomial import monomial_variables
from protgraph_plugins.mace.product_basis import ProductBasis
from protgraph_plugins.se3_transformer.layers import SE3Conv, SE3Transformer
from protgraph_plugins.tfn import TFN, ChannelwiseProduct
from torch import Tensor, nn
from torch_geometric.utils import softmax

__all__ = ["PlainProductBasis", "PlainSE3Conv", "PlainSE3Transformer", "PlainTFN"]


class PlainTFN(nn.Module):
    """Thomas et al. 2018, arXiv:1802.08219, eqs. 4–7, with e3nn's "uvu" product and linear map on every edge."""

    def __init__(self, ours: TFN) -> None:
        super().__init__()
        self.fc, self.gate, self.irreps_sh = ours.fc, ours.gate, ours.product.irreps_sh
        self.degree = None if ours.reduce == "mean" else ours.average_degree
        self.product = _uvu(ours.product)
        self.linear = o3.Linear(self.product.irreps_out, ours.irreps_mid)
        with torch.no_grad():
            views = zip(self.linear.weight_views(), ours.self_interaction, ours.shapes, strict=True)
            for view, weight, (_, _, fan_in) in views:
                view.copy_(weight * fan_in**0.5)  # e3nn divides by it in each call

    def forward(self, h: Tensor, edge_vec: Tensor, index: Tensor, edge_attr: Tensor) -> Tensor:
        j, i = index
        y = o3.spherical_harmonics(self.irreps_sh, edge_vec, normalize=True, normalization="component")
        message = self.linear(self.product(h[j], y, self.fc(edge_attr)))
        out = h.new_zeros(len(h), message.size(1)).index_add(0, i, message)
        out = out / (i.bincount(minlength=len(h)).clamp(min=1)[:, None] if self.degree is None else self.degree)
        return out if self.gate is None else self.gate(out)


class PlainSE3Transformer(nn.Module):
    """Fuchs et al. 2020, arXiv:2006.10503, eqs. 10–12, mode "channelwise": e3nn's keys and values on every edge."""

    def __init__(self, ours: SE3Transformer) -> None:
        super().__init__()
        self.ours = ours
        self.product = _uvu(ours.attention.product)

    def forward(self, h: Tensor, edge_vec: Tensor, index: Tensor, edge_attr: Tensor) -> Tensor:
        ours, attention, (j, i) = self.ours, self.ours.attention, index
        heads = attention.heads
        y = o3.spherical_harmonics(attention.product.irreps_sh, edge_vec, normalize=True, normalization="component")
        z = self.product(h[j], y, attention.fc(edge_attr)).split([b.dim for b in self.product.irreps_out], 1)
        keys = self._mixed(z, attention.key_paths, attention.key)
        values = self._mixed(z, range(len(z)), attention.value)
        queries = ours.query({"h": h})["h"].split([b.dim for b in attention.keys], 1)
        logits = sum(
            (keys[ir].reshape(len(j), heads, -1) * q[i].reshape(len(j), heads, -1)).sum(2)
            for (_, ir), q in zip(attention.keys, queries, strict=True)
        )
        alpha = softmax(logits / math.sqrt(attention.keys.dim), i, num_nodes=len(h))[..., None]
        weighed = [(alpha * values[ir].reshape(len(j), heads, -1)).flatten(1) for _, ir in attention.values]
        attended = [h.new_zeros(len(h), w.size(1)).index_add(0, i, w) for w in weighed]
        out = ours.project({"value": torch.cat(attended, 1), "h": h})["h"]
        return out if ours.gate is None else ours.gate(out)

    def _mixed(self, z: Sequence[Tensor], which: Sequence[int], weights: Sequence[Tensor]) -> dict[o3.Irrep, Tensor]:
        """Return one ``(E, W, 2l+1)`` per degree."""
        out: dict[o3.Irrep, Tensor] = {}
        for n, w in zip(which, weights, strict=True):
            mul, ir = self.product.irreps_out[n]
            term = torch.einsum("eum,uw->ewm", z[n].view(-1, mul, ir.dim), w.flatten(1))
            out[ir] = out[ir] + term if ir in out else term
        return out


def _uvu(ours: ChannelwiseProduct) -> o3.TensorProduct:
    """Return e3nn's product of channels with harmonics, with one set of weights per edge."""
    return o3.TensorProduct(
        ours.irreps_in,
        ours.irreps_sh,
        o3.Irreps([(p.channels, ours.irreps_out[p.o].ir) for p in ours.paths]),
        [(p.i, p.s, n, "uvu", True) for n, p in enumerate(ours.paths)],
        shared_weights=False,
        internal_weights=False,
    )


class PlainSE3Conv(nn.Module):
    """Fuchs et al. 2020, arXiv:2006.10503, eqs. 8–9: a matrix of radial functions on every edge and coupling."""

    def __init__(self, ours: SE3Conv) -> None:
        super().__init__()
        self.ours, self.product = ours, _uvu(ours.kernel.product)

    def forward(self, h: Tensor, edge_vec: Tensor, index: Tensor, edge_attr: Tensor) -> Tensor:
        ours, kernel, (j, i) = self.ours, self.ours.kernel, index
        y = o3.spherical_harmonics(kernel.product.irreps_sh, edge_vec, normalize=True, normalization="component")
        ones = h.new_ones(len(j), self.product.weight_numel)
        products = self.product(h[j], y, ones).split([b.dim for b in self.product.irreps_out], 1)
        messages: dict[int, Tensor] = {}
        for path, name, z, weight in zip(kernel.product.paths, kernel.net_of, products, kernel.weights, strict=True):
            hidden = torch.cat([kernel.nets[name](edge_attr), h.new_ones(len(j), 1)], 1)
            radial = torch.einsum("et,tuw->euw", hidden, weight)  # R(e_ij) of all edges
            term = torch.einsum("euw,eum->ewm", radial, z.unflatten(1, (path.channels, -1))).flatten(1)
            messages[path.o] = messages[path.o] + term if path.o in messages else term
        joined = torch.cat([messages[o] for o in sorted(messages)], 1)
        count = i.bincount(minlength=len(h)).clamp(min=1)[:, None]
        out = h.new_zeros(len(h), joined.size(1)).index_add(0, i, joined)
        out = out / count if ours.reduce == "mean" else out
        if ours.own is None:
            return out
        own = ours.own({"h": h})["h"] if ours.reduce == "mean" else count * ours.own({"h": h})["h"]
        return out.index_add(1, ours._own_columns, own)


class PlainProductBasis(nn.Module):
    """Batatia et al. 2022, arXiv:2206.07697, eqs. 10–11: dense couplings, one factor at a time, as in MACE."""

    def __init__(self, ours: ProductBasis) -> None:
        super().__init__()
        self.ours, d = ours, ours.irreps_in.dim // ours.channels
        for degree, table in enumerate(ours._exact, 1):
            places = torch.tensor(monomial_variables(d, degree)).t()  # (ν, P)
            for o, basis in enumerate(table):
                dense = basis.new_zeros(basis.size(2), *degree * [d], len(basis))
                dense[(slice(None), *places)] = basis.permute(2, 1, 0)
                self.register_buffer(f"u{degree}_{o}", dense.to(ours.linear.maps[0].weight), persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        ours, blocks = self.ours, []
        parts = h.split([block.dim for block in ours.irreps_in], 1)
        x = torch.cat([part.unflatten(1, (ours.channels, -1)) for part in parts], 2)  # (N, C, D)
        for o in range(len(ours.irreps_out)):
            out = None
            for degree in range(ours.correlation, 0, -1):
                u = self.get_buffer(f"u{degree}_{o}")
                if u.size(-1):
                    c = torch.einsum("...r,rc->c...", u, ours.weights[f"{degree}_{o}"])  # (C, M, D, …, D)
                    out = c.unsqueeze(0) if out is None else out + c
                if out is not None:
                    out = torch.einsum("nc...d,ncd->nc...", out.expand(len(x), *out.shape[1:]), x)
            blocks.append(out.flatten(1))  # (N, C M)
        return ours.linear({"h": torch.cat(blocks, 1)})["h"]
