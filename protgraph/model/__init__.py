"""Models as graphs of registry names: the data, the wiring checks, the build, the description and the drawing."""

from protgraph.model.build import ProteinModel, build_model
from protgraph.model.diagram import draw_model
from protgraph.model.pretrained import PublishedWeights, pretrained
from protgraph.model.spec import ModelSpec
from protgraph.model.summary import ComponentSummary, summarize_model
from protgraph.model.weights import find_weights, read_weights
from protgraph.registry.component import ComponentSpec, component

__all__ = [
    "ProteinModel",
    "ModelSpec",
    "ComponentSpec",
    "PublishedWeights",
    "ComponentSummary",
    "build_model",
    "summarize_model",
    "draw_model",
    "find_weights",
    "component",
    "pretrained",
    "read_weights",
]
