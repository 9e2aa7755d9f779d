"""Weights of geometric-gnn-dojo's MACE in our layer."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from protgraph_plugins.mace.polynomial import bombieri_weights, monomial_variables
from protgraph_plugins.mace.product_basis import ProductBasis
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import CheckpointError
from protgraph.nn.reference_weights import check_parameter_names

__all__ = ["load_product_basis"]


def load_product_basis(state_dict: Mapping[str, Tensor], *, irreps_in: str, irreps: str) -> ProductBasis:
    """Build the layer from the state of geometric-gnn-dojo's ``EquivariantProductBasisBlock``.

    The redundant basis U of that code is projected on B. Its skip connection is the layer ``add``.
    """
    degrees = [int(k.rsplit(".", 1)[1]) for k in state_dict if ".weights." in k]
    if not degrees:
        raise CheckpointError(f"no symmetric contraction among the parameters {sorted(state_dict)[:4]} ….")
    known = [r"symmetric_contractions\.contractions\.[^.]+\.(weights\.|U_matrix_)\d+"]
    known += [r"linear\.(weight|bias|output_mask)"]
    check_parameter_names(state_dict, known, "EquivariantProductBasisBlock")
    layer = ProductBasis({"h": FieldSpec("h", "node", irreps_in)}, irreps=irreps, correlation=max(degrees))
    layer = layer.to(state_dict["linear.weight"].dtype)
    blocks = state_dict["linear.weight"].split([layer.channels * mul for mul, _ in layer.irreps_out])
    with torch.no_grad():
        for linear, block in zip(layer.linear.maps, blocks, strict=True):
            linear.weight.copy_(block.view(layer.channels, -1).t() / math.sqrt(layer.channels))
            if linear.bias is not None:
                linear.bias.zero_()
        for name, weight in layer.weights.items():
            degree, o = map(int, name.split("_"))
            ir = layer.irreps_out[o].ir
            where = f"symmetric_contractions.contractions.{layer.channels}x{ir}."
            u = _collect(state_dict[f"{where}U_matrix_{degree}"].double(), ir.dim, layer._dim, degree)
            w = state_dict[f"{where}weights.{degree}"].double()  # (K, C)
            dual = layer._exact[degree - 1][o] * bombieri_weights(layer._dim, degree) / ir.dim  # (R, P, 2l+1)
            weight.copy_(dual.flatten(1) @ u.flatten(0, 1) @ w)
    return layer


def _collect(u: Tensor, dim: int, variables: int, degree: int) -> Tensor:
    """Collect a tensor over tuples of variables ``(2l+1, D, …, D, K)`` by monomial, ``(P, 2l+1, K)``."""
    u = u.reshape(dim, variables**degree, -1).transpose(0, 1)  # (Dᵈ, 2l+1, K)
    tuples = torch.cartesian_prod(*[torch.arange(variables)] * degree).view(-1, degree).sort(1).values
    place = {m: k for k, m in enumerate(monomial_variables(variables, degree))}
    index = torch.tensor([place[tuple(m)] for m in tuples.tolist()])
    return u.new_zeros(len(place), *u.shape[1:]).index_add_(0, index, u)
