"""Models: their specification as data, wiring, building, summary, diagram and published weights."""

from __future__ import annotations

from protgraph.model.attention_maps import AttentionMap
from protgraph.model.build import ProteinModel, as_model_spec, build_model
from protgraph.model.devices import compile_layers, find_device, uncompile_layers, uncompiled_layers
from protgraph.model.nonfinite import nonfinite_error
from protgraph.model.pretrained import PublishedWeights, pretrained
from protgraph.model.settings import change_model, parse_settings, with_pocket
from protgraph.model.spec import ModelSpec, WiredComponent
from protgraph.model.summary import (
    ComponentSummary,
    ModelPart,
    freezable_parts,
    mermaid_text,
    standardized_inputs,
    summarize_model,
)
from protgraph.model.weights import check_published_file, convert_state, find_weights, read_model_state, read_weights
from protgraph.registry.component import ComponentSpec, component

__all__ = [
    "AttentionMap",
    "ComponentSpec",
    "ComponentSummary",
    "ModelPart",
    "ModelSpec",
    "ProteinModel",
    "PublishedWeights",
    "WiredComponent",
    "as_model_spec",
    "build_model",
    "change_model",
    "check_published_file",
    "compile_layers",
    "component",
    "convert_state",
    "find_device",
    "find_weights",
    "mermaid_text",
    "freezable_parts",
    "nonfinite_error",
    "parse_settings",
    "pretrained",
    "read_model_state",
    "read_weights",
    "standardized_inputs",
    "summarize_model",
    "uncompile_layers",
    "uncompiled_layers",
    "with_pocket",
]
