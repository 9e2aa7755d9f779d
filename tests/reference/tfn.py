"""Weights of geometric-gnn-dojo's tensor field network in our layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from protgraph_plugins.tfn import TFN
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import load_reference_state, reference_errors, require_options

__all__ = ["load_tensor_product_conv"]

#: Options that the weights of geometric-gnn-dojo do not contain.
_REQUIRED = {
    "lmax": "an integer from 0",
    "gate": (False, True),
    "reduce": ("sum", "mean"),
    "cutoff": "a distance in Å, 10.0 in that code",
}


def load_tensor_product_conv(
    state_dict: Mapping[str, Tensor],
    *,
    irreps_in: str,
    irreps: str,
    lmax: int | None = None,
    gate: bool | None = None,
    reduce: Literal["mean", "sum"] | None = None,
    cutoff: float | None = None,
) -> TFN:
    """Build the layer of mode "full" from the state of geometric-gnn-dojo's ``TensorProductConvLayer``.

    Required, since the state does not contain them: ``lmax`` of its ``sh_irreps``, ``gate``, ``reduce`` (``aggr``),
    and ``cutoff`` (``r_max`` of its radial embedding), Å.
    """
    given = {"lmax": lmax, "gate": gate, "reduce": reduce, "cutoff": cutoff}
    require_options("TensorProductConvLayer", given, _REQUIRED)
    fields = {"h": FieldSpec("h", "node", irreps_in), "edge_vec": field("edge_vec"), "edges": field("edges")}
    with reference_errors("TensorProductConvLayer"):
        radial, basis = state_dict["fc.0.weight"].shape
    layer = TFN(fields, irreps=irreps, mode="full", radial=radial, basis=basis, **given)
    load_reference_state(layer, state_dict, "TensorProductConvLayer")
    return layer
