"""Equivariant kernels with a learned radial function for every pair of channels.

Not ``e3nn.o3.FullyConnectedTensorProduct`` per edge: as layer ``se3_conv`` it takes 1.9× the time forward and backward
(e3nn 0.6.0, one thread, 16x0e+16x1o, 2026-11-22).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from e3nn import o3
from protgraph_plugins.tfn import ChannelwiseProduct, TensorProductBackend
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from protgraph.ops import Edges

__all__ = ["PairwiseKernel", "RadialNets"]

RadialNets = Literal["one", "output", "pair"]

# Numbers of R(e_ij) per block of edges on a CPU: 4 MB float32 fit into the cache.
_BLOCK = 1 << 20


class PairwiseKernel(nn.Module):
    """Equivariant kernel on edges.

    ``k_ij[w] = Σ_u Σ_J R_J[u, w](e_ij) (Y_J(r_ij) ⊗ h_j[u])`` for every output degree, with R = Linear ∘ MLP of e_ij.

    Parameters
    ----------
    irreps_in, irreps_out : e3nn.o3.Irreps
        Irreps of h and of k.
    lmax : int
        Highest degree J of the spherical harmonics.
    width : int
        Width of the edge features e_ij.
    radial : int
        Hidden width T of the radial networks.
    nets : {"one", "output", "pair"}
        Number of radial networks: one, one per output block, or one per pair of input and output block. Their last
        linear maps are always separate.
    layer_norm : bool
        Layer normalization in the radial networks.
    parity : bool
        True: O(3) equivariance. False: SO(3) equivariance.
    backend : {"e3nn", "cuequivariance"}
        Implementation of the tensor product.

    References
    ----------
    Thomas et al. 2018, arXiv:1802.08219, eq. 4; Fuchs et al. 2020, arXiv:2006.10503, eqs. 8–9.
    """

    def __init__(
        self,
        irreps_in: o3.Irreps,
        irreps_out: o3.Irreps,
        *,
        lmax: int,
        width: int,
        radial: int,
        nets: RadialNets,
        layer_norm: bool,
        parity: bool,
        backend: TensorProductBackend,
    ) -> None:
        super().__init__()
        self.irreps_out = irreps_out
        self._num_blocks = len(irreps_out)
        self.product = ChannelwiseProduct(irreps_in, lmax, irreps_out, parity=parity, backend=backend)
        paths = self.product.paths

        # The radial network of each path.
        self.net_of: list[str] = []
        for path in paths:
            names = {"one": "all", "output": f"{path.o}", "pair": f"{path.i}_{path.o}"}
            self.net_of.append(names[nets])
        self.nets = nn.ModuleDict()
        for name in dict.fromkeys(self.net_of):
            self.nets[name] = _hidden(width, radial, layer_norm)

        # The last linear map of each path, with a bias; all paths to a block are summed.
        fan_in = [0] * len(irreps_out)
        for path in paths:
            fan_in[path.o] += path.channels * radial
        self.weights = nn.ParameterList()
        for path in paths:
            shape = (radial + 1, path.channels, irreps_out[path.o].mul)
            self.weights.append(torch.randn(shape) / math.sqrt(fan_in[path.o]))

    def forward(self, h: Tensor, direction: Tensor, attr: Tensor, edges: Edges) -> list[Tensor]:
        """Compute k, ``(E, 2l+1, W)`` per output block.

        Parameters
        ----------
        h : Tensor
            ``(N, irreps_in)``.
        direction : Tensor
            ``(E, 3)`` unit vectors, or 0.
        attr : Tensor
            ``(E, width)`` edge features.
        edges : Edges
        """
        ones = attr.new_ones(len(attr), 1)
        hidden = {name: torch.cat([net(attr), ones], 1) for name, net in self.nets.items()}  # (E, T + 1)
        out: list[Any] = [0] * self._num_blocks
        products = self.product(h, direction, edges)
        for path, name, z, weight in zip(self.product.paths, self.net_of, products, self.weights, strict=True):
            out[path.o] = out[path.o] + _apply_kernel(hidden[name], z, weight)
        return out


def _hidden(width: int, radial: int, layer_norm: bool) -> nn.Sequential:
    """Build the radial network up to its last linear map."""
    modules: list[nn.Module] = []
    for before in (width, radial):
        modules.append(nn.Linear(before, radial))
        if layer_norm:
            modules.append(nn.LayerNorm(radial))
        modules.append(nn.ReLU())
    return nn.Sequential(*modules)


def _apply_kernel(hidden: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    """Compute ``k[e, m, w] = Σ_tu hidden[e, t] weight[t, u, w] z[e, m, u]``.

    R = hidden · weight has U W numbers per edge, too many to store: it is computed again for the gradient, and on a CPU
    in blocks of edges that fit into the cache.
    """
    if torch.compiler.is_compiling():
        return _multiply(hidden, z, weight)
    hidden = hidden.to(weight.dtype)
    z = z.to(weight.dtype)
    if weight.device.type == "cpu":
        size = max(16, _BLOCK // max(1, weight[0].numel()))
    else:
        size = max(1, len(z))
    blocks = zip(hidden.split(size), z.split(size), strict=True)
    device = "cpu" if weight.is_meta else weight.device.type  # torch has no autocast for "meta"
    with torch.autocast(device, enabled=False):  # in mixed precision too, R has the precision of the weights
        if torch.is_grad_enabled():
            products = [
                checkpoint(_multiply, t, x, weight, use_reentrant=False, preserve_rng_state=False) for t, x in blocks
            ]
        else:
            products = [_multiply(t, x, weight) for t, x in blocks]
    return torch.cat(products)  # (E, 2l+1, W)


def _multiply(hidden: Tensor, z: Tensor, weight: Tensor) -> Tensor:
    radial = (hidden @ weight.flatten(1)).unflatten(1, weight.shape[1:])  # R, (E, U, W)
    return z @ radial
