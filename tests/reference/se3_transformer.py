"""Weights of published SE(3)-Transformer codes.

=====================  ==============================================  =========================================
property               NVIDIA's SE3Transformer                         Fuchs' se3-transformer-public
=====================  ==============================================  =========================================
edge vector            x_src − x_dst, as here                          x_dst − x_src: odd filters change sign
filter                 Y ("integral") · Wigner 3j; 1 for 0 → 0, if     Y ("integral") · Wigner 3j
                       radial networks are one per pair
radial networks        one per pair or one per output degree; no bias  one per pair; bias
axes of weights        output, input, frequency J                      the same
self-interaction       once per edge, summed                           once per edge, averaged
=====================  ==============================================  =========================================

The layers here use Y ("component") · Wigner 3j · sqrt(2 l_out + 1). Differences go into the last maps of the radial
networks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from e3nn import o3
from protgraph_plugins.se3_transformer.kernel import PairwiseKernel
from protgraph_plugins.se3_transformer.layers import NormReLU, SE3Conv, SE3Transformer
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.irreps import IrrepsLinear

__all__ = ["from_reference"]


def from_reference(
    state_dict: Mapping[str, Tensor],
    *,
    irreps_in: str,
    irreps: str,
    value: str = "",
    heads: int | None = None,
) -> SE3Transformer | SE3Conv | NormReLU:
    """Build the layer that equals a module of a published code, with its weights.

    Parameters
    ----------
    state_dict : mapping of str to Tensor
        State of NVIDIA's ``AttentionBlockSE3``, ``ConvSE3`` (with self-interaction and pooling) or ``NormSE3`` (equal
        multiplicities), or of Fuchs' ``GConvSE3`` (flavor "skip") or ``GNormSE3``.
    irreps_in, irreps : str
        Input and output irreps; degree l of these codes is ``l`` with parity (−1)^l, e.g. ``"8x0e+8x1o"``.
    value : str
        Irreps of values: the output's multiplicities divided by ``channels_div``. "": ``irreps``.
    heads : int
        Number of attention heads of ``AttentionBlockSE3``, which its state does not contain.

    Returns
    -------
    SE3Transformer or SE3Conv or NormReLU
        In the dtype of the weights. The first two read ``edge_attr``: invariant edge features, then the distance.
    """
    weights = dict(state_dict)
    if any("norm" in k or k.startswith("transform.") for k in weights) and not any("net." in k for k in weights):
        return _norm(weights, irreps)
    nets = [k for k in weights if k.endswith("net.0.weight")]
    width, dtype = weights[nets[0]].size(1), weights[nets[0]].dtype
    fields = {"h": FieldSpec("h", "node", irreps_in), "edge_vec": field("edge_vec"), "edges": field("edges")}
    fields["edge_attr"] = FieldSpec("edge_attr", "edge", f"{width}x0e")
    options: dict[str, Any] = {
        "irreps": irreps,
        "lmax": 2 * max(ir.l for _, ir in o3.Irreps(irreps_in) + o3.Irreps(irreps)),
        "radial": weights[nets[0]].size(0),
        "nets": "output" if "conv_out." in nets[0] else "pair",
        "layer_norm": any("net.6." in k for k in weights),
        "parity": False,
    }
    with torch.no_grad():
        if "to_query.weights.0" in weights:
            layer = SE3Transformer(fields, value=value, heads=heads, mode="full", gate=False, **options).to(dtype)
            _channels(layer.query, [weights[f"to_query.weights.{ir.l}"] for _, ir in layer.query.irreps_out])
            _channels(layer.project, [weights[f"project.weights.{ir.l}"] for _, ir in layer.project.irreps_out])
            _kernel(layer.attention.kernel, weights, "to_key_value.conv")
            return layer
        fuchs = any(k.startswith("kernel_unary") for k in weights)
        layer = SE3Conv(fields, reduce="mean" if fuchs else "sum", **options).to(dtype)
        own = "kernel_self.{}" if fuchs else "to_kernel_self.{}"
        _channels(layer.own, [weights[own.format(ir.l)].flatten(0, -2) for _, ir in layer.own.irreps_out])
        _kernel(layer.kernel, weights, "kernel_unary" if fuchs else "conv")
        return layer


def _norm(weights: Mapping[str, Tensor], irreps: str) -> NormReLU:
    layer = NormReLU({"h": FieldSpec("h", "node", irreps)})
    for name in ("weight", "bias"):
        one = weights.get(f"group_norm.{name}")
        many = [weights.get(f"transform.{ir.l}.0.bn.{name}") for _, ir in layer.irreps]
        parts = many if one is None else one.split([mul for mul, _ in layer.irreps])
        with torch.no_grad():
            for norm, part in zip(layer.norms, parts, strict=True):
                layer.to(part.dtype)
                getattr(norm, name).copy_(part)
    return layer


def _channels(linear: IrrepsLinear, matrices: list[Tensor]) -> None:
    for ours, theirs in zip(linear.maps, matrices, strict=True):
        ours.weight.copy_(theirs)
        if ours.bias is not None:
            ours.bias.zero_()


def _kernel(kernel: PairwiseKernel, weights: Mapping[str, Tensor], prefix: str) -> None:
    fuchs, by_output = prefix == "kernel_unary", any(k.startswith(f"{prefix}_out.") for k in weights)
    paths, before = kernel.product.paths, dict.fromkeys(kernel.net_of, 0)
    for path, name, ours in zip(paths, kernel.net_of, kernel.weights, strict=True):
        a, b = kernel.product.irreps_in[path.i].ir.l, kernel.irreps_out[path.o].ir.l
        where = f"{prefix}_out.{b}." if by_output else f"{prefix}.({a},{b})." if fuchs else f"{prefix}.{a},{b}."
        net = {k.removeprefix(where).split("net.")[1]: v for k, v in weights.items() if k.startswith(where)}
        last = max(int(k.split(".")[0]) for k in net)
        frequencies = sum(1 for n in kernel.net_of if n == name)
        shape = (ours.size(2), ours.size(1), frequencies)  # output, input, J
        scale = 1 if prefix.endswith("conv") and not by_output and a == b == 0 else (4 * math.pi * (2 * b + 1)) ** -0.5
        # Theirs is the Wigner 3j of (J, l_in, l_out), ours of (l_in, J, l_out): a swap costs (−1)^(J + l_in + l_out).
        sign = (-1) ** (path.s + a + b) * ((-1) ** path.s if fuchs else 1)
        last_map = net[f"{last}.weight"].unflatten(0, shape)[:, :, before[name]]  # (W, U, T)
        ours[:-1].copy_(sign * scale * last_map.permute(2, 1, 0))
        bias = net.get(f"{last}.bias", torch.zeros(math.prod(shape), dtype=ours.dtype)).unflatten(0, shape)
        ours[-1].copy_(sign * scale * bias[:, :, before[name]].t())
        before[name] += 1
        _hidden(kernel.nets[name], net)


def _hidden(ours: nn.Module, net: Mapping[str, Tensor]) -> None:
    for name, parameter in ours.named_parameters():
        layer, kind = name.split(".")
        key = next(k for k in net if re.fullmatch(rf"{layer}\.(bn\.)?{kind}", k))
        parameter.copy_(net[key])
