"""Layers: each a formula from named fields to named fields, built by registry name.

Only what needs no e3nn is imported here; ``tfn`` lives in :mod:`protgraph.nn.layers.tfn`.
"""

from __future__ import annotations

from protgraph.nn.layers.attention import Attention, GlobalAttention
from protgraph.nn.layers.edge_network import EdgeNetwork
from protgraph.nn.layers.egnn import EGNN
from protgraph.nn.layers.embed import Constant, Embed
from protgraph.nn.layers.encoder import Encoder
from protgraph.nn.layers.evoformer import EvoformerPair
from protgraph.nn.layers.gat import GAT
from protgraph.nn.layers.gcn import GCN
from protgraph.nn.layers.graph_transformer import GraphTransformer
from protgraph.nn.layers.gvp import GVPConv, GVPLayer
from protgraph.nn.layers.invariants import Invariants
from protgraph.nn.layers.merge import GRU, Add, Concat, Residual
from protgraph.nn.layers.mpnn import MPNN
from protgraph.nn.layers.pair import OuterProductMean, PairEmbed
from protgraph.nn.layers.pointwise import MLP, LayerNorm, Linear
from protgraph.nn.layers.position import Position
from protgraph.nn.layers.pyg_conv import PygConv
from protgraph.nn.layers.schnet import SchNet
from protgraph.nn.layers.transformer import Transformer
from protgraph.nn.layers.transformer_block import PostNormBlock, PreNormBlock
from protgraph.nn.layers.triangle import TriangleAttention, TriangleMultiplication
from protgraph.nn.layers.window import Window

__all__ = [
    "EGNN",
    "GAT",
    "GCN",
    "GRU",
    "MLP",
    "MPNN",
    "Add",
    "Attention",
    "Concat",
    "Constant",
    "EdgeNetwork",
    "Embed",
    "Encoder",
    "EvoformerPair",
    "GVPConv",
    "GVPLayer",
    "GlobalAttention",
    "GraphTransformer",
    "Invariants",
    "LayerNorm",
    "Linear",
    "OuterProductMean",
    "PairEmbed",
    "Position",
    "PostNormBlock",
    "PreNormBlock",
    "PygConv",
    "Residual",
    "SchNet",
    "Transformer",
    "TriangleAttention",
    "TriangleMultiplication",
    "Window",
]
