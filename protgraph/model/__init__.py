"""Models as graphs of registry names: the data, the wiring checks, the build, the description and the drawing."""

from protgraph.model.build import GraphModel, build_model
from protgraph.model.diagram import draw
from protgraph.model.pretrained import Published, pretrained
from protgraph.model.spec import ModelGraph
from protgraph.model.summary import Row, describe
from protgraph.model.weights import find_weights, read_weights
from protgraph.registry.component import Node, node

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
