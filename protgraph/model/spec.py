"""A model as data: featurizer names, layer names and what the head reads. No code, no class counts.

A sequence of nodes *is* a directed acyclic graph, because layers state what they read and write: a skip
connection is a field name. The head comes from the task's target, so one model graph serves every task.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import networkx as nx

from protgraph import registry
from protgraph.data.graph.fields import is_registered
from protgraph.errors import WiringError, suggest
from protgraph.featurize.plan import FeaturePlan
from protgraph.nn.module import GraphLayer
from protgraph.registry.component import ComponentSpec, as_components

__all__ = ["ModelSpec", "WiredComponent", "wire"]


@dataclass(frozen=True)
class ModelSpec:
    """Names, options and fields: all that distinguishes one architecture from another.

    Parameters
    ----------
    name : str
        What tables call it.
    features : sequence of ComponentSpec, str or dict
        Featurizers, in order.
    layers : sequence of ComponentSpec, str or dict
        Layers, in order; a later writer of a field shadows an earlier one.
    readout : mapping of str to str
        What the head reads: its local name → field.
    heads : mapping of str to mapping
        Options for heads by registry name, where the defaults do not serve: ``{"graph_classifier": {"pool":
        "attention"}}``.
    doc : str
        What the model is, with its source.
    weights : str
        Where published weights come from, ``"module:function"``; :func:`protgraph.model.pretrained` takes them, a model
        that is built has random ones.
    node_type : {"residue", "backbone", "atom"}
        What the nodes of its graphs are: residues, their atoms N, CA, C, O, or all heavy atoms. What is predicted per
        residue is read on the CA.

    Examples
    --------
    >>> graph = ModelSpec("tiny", ["knn"], [ComponentSpec("embed", inputs=("aatype",)), ComponentSpec("gcn")])
    >>> ModelSpec.from_dict(graph.to_dict()) == graph
    True
    """

    name: str
    features: Sequence[ComponentSpec | str | Mapping[str, Any]] = ()
    layers: Sequence[ComponentSpec | str | Mapping[str, Any]] = ()
    readout: Mapping[str, str] = field(default_factory=lambda: {"h": "h"})
    heads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    doc: str = ""
    weights: str = ""
    node_type: str = "residue"

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", as_components(self.features, "features"))
        object.__setattr__(self, "layers", as_components(self.layers, "layers"))
        object.__setattr__(self, "readout", MappingProxyType(dict(self.readout)))
        object.__setattr__(self, "heads", MappingProxyType({k: dict(v) for k, v in self.heads.items()}))

    def __hash__(self) -> int:
        return hash((self.name, self.features, self.layers))

    def __reduce__(self) -> tuple[object, ...]:
        return ModelSpec.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON and TOML."""
        chosen = {"weights": (self.weights, ""), "node_type": (self.node_type, "residue")}
        return {
            "name": self.name,
            "features": [n.to_dict() for n in self.features],
            "layers": [n.to_dict() for n in self.layers],
            "readout": dict(self.readout),
            "heads": {k: dict(v) for k, v in self.heads.items()},
            "doc": self.doc,
        } | {key: value for key, (value, usual) in chosen.items() if value != usual}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelSpec:
        """The inverse of :meth:`to_dict`; unknown or missing keys raise :class:`WiringError`."""
        known = {"name", "features", "layers", "readout", "heads", "doc", "weights", "node_type"}
        if not isinstance(data, Mapping) or "name" not in data or set(data) - known:
            odd = sorted(set(data) - known) if isinstance(data, Mapping) else data
            raise WiringError(f"a model graph is a dict with 'name' and any of {sorted(known - {'name'})}; got {odd!r}")
        return cls(**data)

    def dag(self) -> nx.DiGraph:
        """The graph of its nodes: an edge a → b carries the ``fields`` that b reads from a.

        Nodes are ``"structure"`` (what every protein graph has), one per feature and layer, and ``"head"``; each
        has the attributes ``kind``, ``name`` and ``step``.
        """
        plan = FeaturePlan(self.features, node_type=self.node_type)
        dag, writer = nx.DiGraph(), dict.fromkeys(plan.fields, "structure")
        dag.add_node("structure", kind="structure", name="structure", step=0)
        for i, n in enumerate(self.features):
            component = registry.featurizers.get(n.name)
            reads = {local: n.reads.get(local, local) for local in component.reads}
            writes = {local: n.writes.get(local, local) for local in component.writes}
            _join(dag, writer, WiredComponent(f"features[{i}]", n, reads, writes), "feature")
        for w in wire(self, plan):
            _join(dag, writer, w, "layer")
        _join(dag, writer, WiredComponent("head", ComponentSpec("head"), self.readout, {}), "head")
        return dag

    def dead_layers(self) -> list[str]:
        """Layers whose output nothing on the way to the head reads, as ``layers[i] (name)``."""
        dag = self.dag()
        alive = nx.ancestors(dag, "head") | {"head"}
        return [f"{n} ({d['name']})" for n, d in dag.nodes(data=True) if d["kind"] == "layer" and n not in alive]


@dataclass(frozen=True)
class WiredComponent:
    """One node with its names resolved: local name → field of the model, for reads and writes."""

    path: str
    component: ComponentSpec
    reads: Mapping[str, str]
    writes: Mapping[str, str]


def _join(dag: nx.DiGraph, writer: dict[str, str], w: WiredComponent, kind: str) -> None:
    """Add one node to the graph, with an edge from each node whose output it reads."""
    dag.add_node(w.path, kind=kind, name=w.component.name, step=len(dag))
    read: dict[str, list[str]] = {} if w.reads else {"structure": []}
    for name in w.reads.values():
        read.setdefault(writer[name], []).append(name)
    for source, names in read.items():
        dag.add_edge(source, w.path, fields=tuple(names))
    for name in w.writes.values():
        writer[name] = w.path
        if name == "edge_index":
            writer["edges"] = w.path


def wire(graph: ModelSpec, plan: FeaturePlan) -> list[WiredComponent]:
    """Resolve every layer's names, and prove that each field read has a writer before it.

    Raises
    ------
    WiringError
        Naming the node, the field, what is there so far and what was probably meant.
    """
    there: set[str] = set(plan.fields)
    wires = []
    for i, n in enumerate(graph.layers):
        path = f"layers[{i}]"
        w = _resolve(path, n, _layer_class(path, n))
        for name in w.reads.values():
            _need(name, there, f"{path} ({n.name}) reads")
        there |= set(w.writes.values())
        wires.append(w)
    for name in graph.readout.values():
        _need(name, there, f"the readout of model {graph.name!r} reads")
    return wires


def _layer_class(path: str, n: ComponentSpec) -> type[GraphLayer]:
    component = registry.layers.get(n.name)
    if not (inspect.isclass(component) and issubclass(component, GraphLayer)):
        raise WiringError(f"{path} ({n.name}): {component!r} is no subclass of protgraph.GraphLayer")
    return component


def _resolve(path: str, n: ComponentSpec, layer: type[GraphLayer]) -> WiredComponent:
    where = f"{path} ({n.name})"
    if n.inputs and not layer.variadic:
        raise WiringError(f"{where} reads {', '.join(layer.reads)}: give reads={{local: field}}, not a list of fields")
    odd = sorted(set(n.reads) - set(layer.reads) - set(layer.optional))
    if odd:
        allowed = ", ".join((*layer.reads, *layer.optional))
        raise WiringError(f"{where}: it has no input {odd[0]!r}; its inputs are {allowed}")
    odd = sorted(set(n.writes) - set(layer.writes))
    if odd:
        raise WiringError(f"{where}: it has no output {odd[0]!r}; its outputs are {', '.join(layer.writes)}")
    reads = {local: n.reads.get(local, local) for local in layer.reads}
    reads |= {local: n.reads[local] for local in layer.optional if local in n.reads}
    reads |= {name: name for name in n.inputs}
    writes = {local: n.writes.get(local, local) for local in layer.writes}
    for name in writes.values():
        if name in ("edges", "proteins", "logits"):
            raise WiringError(f"{where} writes {name!r}, which is reserved; choose another field")
    return WiredComponent(path, n, reads, writes)


def _need(name: str, there: set[str], who: str) -> None:
    if name in there:
        return
    hint = suggest(name, there)
    if name == "edges":
        hint = " Add an edge featurizer such as 'knn'."
    elif is_registered(name):
        hint += " It is a known field: add the featurizer that writes it."
    raise WiringError(
        f"{who} {name!r}, which nothing before it writes.{hint}\nThere so far: {', '.join(sorted(there))}."
    )
