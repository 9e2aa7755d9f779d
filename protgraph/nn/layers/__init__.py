"""Layers: maps from named fields to named fields, also available by registry name.

Each layer is imported on first use (PEP 562), because some need e3nn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protgraph.nn.module import GraphLayer

# Layer class → module of this package.
_MODULES = {
    "Add": "merge",
    "Attention": "attention",
    "BackboneUpdate": "backbone_frames",
    "Concat": "merge",
    "Constant": "embed",
    "EGNN": "egnn",
    "EdgeNetwork": "edge_network",
    "Embed": "embed",
    "Encoder": "encoder",
    "EvoformerPair": "evoformer",
    "GAT": "gat",
    "GCN": "gcn",
    "GIN": "gin",
    "GRU": "merge",
    "GVPConv": "gvp",
    "GVPLayer": "gvp",
    "GlobalAttention": "attention",
    "GraphTransformer": "graph_transformer",
    "IPA": "ipa",
    "Invariants": "invariants",
    "IrrepsLinear": "irreps",
    "IrrepsNorm": "irreps",
    "LayerNorm": "pointwise",
    "Linear": "pointwise",
    "MLP": "pointwise",
    "MPNN": "mpnn",
    "NormReLU": "norm_relu",
    "OuterProductMean": "pair",
    "PairEmbed": "pair",
    "PlaceBackbone": "backbone_frames",
    "Position": "position",
    "PostNormBlock": "transformer_block",
    "PreNormBlock": "transformer_block",
    "ProductBasis": "product_basis",
    "PygConv": "pyg_conv",
    "Residual": "merge",
    "SAGE": "sage",
    "SE3Conv": "se3_conv",
    "SE3Transformer": "se3_transformer",
    "SchNet": "schnet",
    "TFN": "tfn",
    "Transformer": "transformer",
    "TriangleAttention": "triangle",
    "TriangleMultiplication": "triangle",
    "Window": "window",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> type[GraphLayer]:
    if name not in _MODULES:
        raise AttributeError(f"{__name__} has no layer {name!r}. Layers: {', '.join(__all__)}.", name=name)
    layer: type[GraphLayer] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = layer  # later accesses skip this function
    return layer


def __dir__() -> list[str]:
    return sorted(__all__)
