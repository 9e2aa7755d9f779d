"""Models as graphs of registry names: the data, the wiring checks, the build, the description and the drawing."""

from protgraph.data.node import Node, node
from protgraph.model.build import GraphModel, build_model
from protgraph.model.describe import Row, describe
from protgraph.model.draw import draw
from protgraph.model.graph import ModelGraph
from protgraph.model.pretrained import Published, pretrained
from protgraph.model.weights import find_weights, read_weights

__all__ = [
    "GraphModel",
    "ModelGraph",
    "Node",
    "Published",
    "Row",
    "build_model",
    "describe",
    "draw",
    "find_weights",
    "node",
    "pretrained",
    "read_weights",
]
