"""Layers with the weights of geometric-gnn-dojo."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.layers.tfn import TFN
from protgraph.nn.reference_weights import load_reference_state

__all__ = ["tfn_of"]


def tfn_of(
    state: Mapping[str, Tensor], *, irreps_in: str, irreps: str, lmax: int, gate: bool, reduce: str, cutoff: float
) -> TFN:
    """Build the layer of mode "full" that equals a ``TensorProductConvLayer``.

    ``lmax`` is that of its ``sh_irreps``, ``reduce`` its ``aggr``, and ``cutoff`` ``r_max`` of its radial embedding, Å.
    """
    fields = {"h": FieldSpec("h", "node", irreps_in), "edge_vec": field("edge_vec"), "edges": field("edges")}
    radial, basis = state["fc.0.weight"].shape
    layer = TFN(
        fields, irreps=irreps, mode="full", radial=radial, basis=basis,
        lmax=lmax, gate=gate, reduce=reduce, cutoff=cutoff,
    )  # fmt: skip
    load_reference_state(layer, state, "TensorProductConvLayer")
    return layer
