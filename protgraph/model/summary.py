"""Summary of a model: its components with inputs, outputs, shapes and parameters, its parts by path, its diagram."""

# Not torch_geometric.nn.summary or torchinfo: without fields, irreps and featurizers (PyG 2.8.1, 2026-11-22).

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from protgraph.data.graph.fields import FieldSpec, edge_set_of
from protgraph.errors import OptionError, list_first
from protgraph.model.build import ProteinModel
from protgraph.model.frozen_parts import matches_part
from protgraph.model.spec import ModelSpec
from protgraph.nn.standardize import Standardize

__all__ = [
    "ComponentSummary",
    "ModelPart",
    "check_pattern",
    "freezable_parts",
    "mermaid_text",
    "standardized_inputs",
    "summarize_model",
]

_ROWS = {"node": "N", "edge": "E", "graph": "B", "pair": "P"}


@dataclass(frozen=True)
class ComponentSummary:
    """Summary of one component.

    ``path``: e.g. "layers[2]". ``name``: registry name. ``options``, ``reads``, ``writes``: options, and input and
    output fields. ``parameters``: number of trainable parameters.
    """

    path: str
    name: str
    options: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    parameters: int


def summarize_model(model: ProteinModel) -> list[ComponentSummary]:
    """Summarize each featurizer, layer and head of a model.

    Inputs and outputs are written as ``field`` or ``local=field``; outputs have their shape and irreps, e.g.
    ``h (N, 80) 32x0e+16x1o``.
    """
    rows = []
    plan = model.plan
    featurizers = {id(n): f for n, f in plan.featurizers}
    for i, n in enumerate(plan.components):
        featurizer = featurizers[id(n)]
        reads = _names({local: n.input_field(local) for local in featurizer.reads}) or ("structure",)
        names = [n.output_field(local) for local in featurizer.out]
        writes = tuple(_shape(plan.fields[name], name) for name in names)
        rows.append(ComponentSummary(f"features[{i}]", n.name, _options(n.options), reads, writes, 0))
    counted: set[int] = set()
    for (w, layer), levels in zip(model.steps, model.levels, strict=True):
        parameters = 0 if id(layer) in counted else _count(layer)  # of shared weights once
        counted.add(id(layer))
        writes = tuple(_shape(levels.of_model(layer.out[local]), name) for local, name in w.writes.items())
        rows.append(
            ComponentSummary(
                w.path, w.component.name, _options(w.component.options), _names(w.reads), writes, parameters
            )
        )
    target = model.target
    options = _options(model.spec.heads.get(target.head_name, {}))
    logits = f"logits ({', '.join(map(str, (_ROWS[target.level], *target.shape)))})"
    rows.append(
        ComponentSummary("head", target.head_name, options, _names(model.head_reads), (logits,), _count(model.head))
    )
    return rows


def standardized_inputs(model: ProteinModel) -> list[str]:
    """Return the features that a model standardizes, e.g. ``["sasa", "dihedral[0,2]"]``, those columns of dihedral."""
    names: dict[str, None] = {}
    for w, layer in model.steps:
        if not isinstance(standardize := getattr(layer, "standardize", None), Standardize):
            continue
        for local, numbers in standardize.standardized().items():
            part = standardize.columns[local]
            is_whole = len(numbers) == part.stop - part.start
            names[w.reads[local] + ("" if is_whole else f"[{','.join(map(str, numbers))}]")] = None
    return list(names)


def _options(options: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"{k}={v!r}" for k, v in options.items())


def _names(reads: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name if local == name else f"{local}={name}" for local, name in reads.items())


def _shape(spec: FieldSpec, name: str) -> str:
    if edge_set_of(name) is not None:
        return f"{name} (2, E)"
    if not spec.is_tensor:
        return f"{name} ({spec.level} set)"
    rows = _ROWS[spec.level] + (f" of {spec.on}" if spec.on else "")
    shape = (rows, *map(str, spec.trailing_shape))
    kind = f"{spec.classes} classes" if spec.is_category else spec.irreps
    return f"{name} ({', '.join(shape)}{',' if len(shape) == 1 else ''}) {kind}"


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


# --- parts by path, which options select -----------------------------------------------------------------------------


class ModelPart(NamedTuple):
    """A layer with parameters, or the head of a model."""

    path: str  # "layers.2", "head"
    component: str
    parameters: int


def freezable_parts(model: ProteinModel) -> list[ModelPart]:
    """Return the layers with parameters and the head of a model, which can be frozen by their paths."""
    components = {f"layers.{number}": wiring.component.name for number, (wiring, _) in enumerate(model.first_uses)}
    components["head"] = model.target.head_name
    with_parameters = []
    for path, component in components.items():
        count = sum(parameter.numel() for parameter in model.get_submodule(path).parameters())
        if count:
            with_parameters.append(ModelPart(path, component, count))
    return with_parameters


def check_pattern(model: ProteinModel, pattern: str, option: str) -> None:
    """Raise :class:`OptionError` if a pattern matches no parameter; ``option`` is named in the message."""
    if any(matches_part(name, pattern) for name, _ in model.named_parameters()):
        return
    paths = [part.path for part in freezable_parts(model)]
    raise OptionError(
        f"{option}: {pattern!r} matches no parameter of model {model.spec.name!r}. Its parts: {list_first(paths, 20)}. "
        "Give one of them, or a pattern as in a shell, e.g. 'layers.*'."
    )


# --- diagram ---------------------------------------------------------------------------------------------------------


_BOXES = {"structure": "[/{}/]", "feature": "({})", "layer": "[{}]", "head": "[[{}]]"}


def mermaid_text(spec: ModelSpec) -> str:
    """Return the components of a model as a Mermaid flowchart; arrows are labeled with the fields that they carry.

    Layers without effect on the head are dashed.

    Examples
    --------
    >>> from protgraph import models
    >>> print(mermaid_text(models.get("majority")).splitlines()[0])
    flowchart TD
    """
    dag = spec.dag()
    lines = ["flowchart TD"]
    numbers = {}
    for number, (component, data) in enumerate(dag.nodes(data=True)):
        numbers[component] = f"n{number}"
        lines.append(f"    n{number}{_BOXES[data['kind']].format(data['name'])}")
    for source, target, data in dag.edges(data=True):
        fields = ", ".join(data["fields"])
        lines.append(f"    {numbers[source]} -->|{fields}| {numbers[target]}")
    for layer in spec.dead_layers():
        component = layer.partition(" ")[0]
        lines.append(f"    style {numbers[component]} stroke-dasharray: 4")
    return "\n".join(lines)
