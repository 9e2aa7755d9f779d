"""Model specifications as plain data: registry names of featurizers and layers, and the fields that the head reads.

A list of components is a directed acyclic graph, because each states which fields it reads and writes; a skip
connection is a field name. The head comes from the target of a task, so one specification serves every task.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import networkx as nx

from protgraph import registry
from protgraph.argument_types import check_fields
from protgraph.data.graph.fields import EDGES, NODES, edge_set_of, is_registered
from protgraph.data.graph.levels import EdgeEnds, field_on, is_edge_field
from protgraph.errors import WiringError, suggest
from protgraph.featurize.plan import FeaturePlan
from protgraph.nn.module import GraphLayer
from protgraph.registry.component import ComponentSpec, as_components
from protgraph.structure.residues.atoms import NODE_TYPES
from protgraph.validation import check_value, read_toml, unknown_name
from protgraph.wording import html_table

__all__ = ["ModelSpec", "WiredComponent", "wire"]

# Key of a specification as plain data → type. Components are checked by ComponentSpec.
_TYPES: dict[str, Any] = {
    "name": str,
    "features": Sequence[str | dict[str, Any]],
    "layers": Sequence[str | dict[str, Any]],
    "readout": dict[str, str],
    "heads": dict[str, dict[str, Any]],
    "doc": str,
    "weights": str,
    "node_type": str,
    "inputs": dict[str, str],
}


@dataclass(frozen=True, init=False)
class ModelSpec:
    """Specification of a model: everything that distinguishes one architecture from another, as plain data.

    Parameters
    ----------
    name : str
        Name of the model, e.g. in tables.
    features : sequence of ComponentSpec, str or dict
        Featurizers, in order.
    layers : sequence of ComponentSpec, str or dict
        Layers, in order; a field is that of its last writer. A dict ``{"repeat": 3, "layers": [...]}`` is a block.
    readout : mapping of str to str
        Inputs of the head: its local name to field.
    heads : mapping of str to mapping
        Options of heads by registry name, e.g. ``{"graph_classifier": {"pool": "attention"}}``.
    doc : str
        Description with references.
    weights : str
        Function that returns published weights, ``"module:function"``, for :func:`protgraph.model.pretrained`.
    node_type : {"residue", "backbone", "atom"}
        Nodes of the graphs: residues, their atoms N, CA, C, O, or all heavy atoms. Predictions per residue are read at
        the CA.
    inputs : mapping of str to str
        Fields that graphs already have, with their irreps, e.g. ``{"node_attributes": "21x0e"}``; given edges are
        ``{"edge_index": "index"}``. No featurizer computes them: such a model reads graphs only, not files.

    Examples
    --------
    >>> spec = ModelSpec("tiny", ["knn"], [ComponentSpec("embed", inputs=("aatype",)), ComponentSpec("gcn")])
    >>> ModelSpec.from_dict(spec.to_dict()) == spec
    True
    """

    name: str
    features: tuple[ComponentSpec, ...]
    layers: tuple[ComponentSpec, ...]
    readout: Mapping[str, str]
    heads: Mapping[str, Mapping[str, Any]]
    doc: str
    weights: str
    node_type: str
    inputs: Mapping[str, str]

    def __init__(
        self,
        name: str,
        features: Sequence[ComponentSpec | str | Mapping[str, Any]] = (),
        layers: Sequence[ComponentSpec | str | Mapping[str, Any]] = (),
        readout: Mapping[str, str] = MappingProxyType({"h": "h"}),
        heads: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        doc: str = "",
        weights: str = "",
        node_type: str = "residue",
        inputs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        values = {"name": name, "readout": readout, "heads": heads, "doc": doc, "weights": weights, "inputs": inputs}
        for key, value in values.items():
            object.__setattr__(self, key, value)
        check_fields(self, *values, error=WiringError)
        if node_type not in NODE_TYPES:
            hint = suggest(str(node_type), NODE_TYPES)
            allowed = ", ".join(map(repr, NODE_TYPES))
            raise WiringError(f"ModelSpec: node_type = {node_type!r}.{hint} Allowed: {allowed}.")
        object.__setattr__(self, "node_type", node_type)
        object.__setattr__(self, "features", as_components(features, "features"))
        object.__setattr__(self, "layers", as_components(layers, "layers"))
        object.__setattr__(self, "inputs", MappingProxyType(dict(inputs)))
        object.__setattr__(self, "readout", MappingProxyType(dict(readout)))
        object.__setattr__(self, "heads", MappingProxyType({k: dict(v) for k, v in heads.items()}))

    def __repr__(self) -> str:
        nodes = "" if self.node_type == "residue" else f", node_type={self.node_type!r}"
        lines = [f"ModelSpec({self.name!r}{nodes})"]
        for key, components in (("features", self.features), ("layers", self.layers)):
            names = ", ".join(component.name for component in components)
            lines.append(f"  {key}: {names or 'none'}")
        lines.append(f"  readout: {_assignments(self.readout)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the components with their options and wiring as a table, for notebooks."""
        rows = []
        for kind, components in (("feature", self.features), ("layer", self.layers)):
            for c in components:
                name = c.name
                if c.repeat > 1:
                    name += f" × {c.repeat}"
                if c.shared:
                    name += f", shared {c.shared}"
                options = ", ".join(f"{key}={value!r}" for key, value in c.options.items())
                reads = list(c.inputs)
                if c.reads:
                    reads.append(_assignments(c.reads))
                rows.append((kind, name, options, ", ".join(reads), _assignments(c.writes)))
        title = f"{self.name}, nodes: {self.node_type}, readout: {_assignments(self.readout)}"
        return html_table(title, ["part", "name", "options", "reads", "writes"], rows)

    def __hash__(self) -> int:
        return hash((self.name, self.features, self.layers))

    def __deepcopy__(self, memo: dict[int, Any]) -> ModelSpec:
        return self  # immutable

    def __reduce__(self) -> tuple[object, ...]:
        return ModelSpec.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and TOML; ``weights``, ``node_type`` and ``inputs`` only if not the default."""
        data: dict[str, Any] = {
            "name": self.name,
            "features": [n.to_dict() for n in self.features],
            "layers": [n.to_dict() for n in self.layers],
            "readout": dict(self.readout),
            "heads": {k: dict(v) for k, v in self.heads.items()},
            "doc": self.doc,
        }
        if self.weights:
            data["weights"] = self.weights
        if self.node_type != "residue":
            data["node_type"] = self.node_type
        if self.inputs:
            data["inputs"] = dict(self.inputs)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelSpec:
        """Create a specification from the data of :meth:`to_dict`.

        Raises :class:`WiringError` if a key is unknown or missing, or a value has the wrong type; with the path of the
        key.
        """
        check_value(data, Mapping[str, Any], path="model", error=WiringError)
        if "name" not in data:
            raise WiringError(f"model: key 'name' is missing in {dict(data)!r}.")
        path = f"model {data['name']!r}"
        for key, value in data.items():
            if key not in _TYPES:
                raise WiringError(f"{path}: {unknown_name(key, _TYPES)}")
            check_value(value, _TYPES[key], path=f"{path}: {key}", error=WiringError)
        return cls(**data)

    @classmethod
    def from_toml(cls, path: str | Path) -> ModelSpec:
        """Read a specification from a TOML file with the keys of :meth:`to_dict`; its name is by default the file's.

        Raises :class:`OptionError` if the file is missing or not TOML. Raises :class:`WiringError` if a key is unknown,
        or a value has the wrong type.
        """
        path = Path(path)
        data = {"name": path.stem} | read_toml(path, "model")
        try:
            return cls.from_dict(data)
        except WiringError as e:
            raise WiringError(f"{path}: {e}") from e

    def to_toml(self) -> str:
        """Return the text of a TOML file for :meth:`from_toml`.

        Examples
        --------
        >>> print(ModelSpec("tiny", ["knn"], [ComponentSpec("gcn", {"dim": 8})], heads={}).to_toml())
        name = "tiny"
        readout = { h = "h" }
        <BLANKLINE>
        [[features]]
        name = "knn"
        <BLANKLINE>
        [[layers]]
        name = "gcn"
        options = { dim = 8 }
        <BLANKLINE>
        """
        data = self.to_dict()
        components = {key: data.pop(key) for key in ("features", "layers")}
        lines = [f"{key} = {_toml_value(value)}" for key, value in data.items() if value]
        for key, tables in components.items():
            for table in tables:
                lines += ["", f"[[{key}]]"]
                lines += [f"{name} = {_toml_value(value)}" for name, value in table.items()]
        return "\n".join(lines) + "\n"

    def plan(self) -> FeaturePlan:
        """Create the featurizers.

        Raises :class:`WiringError` or :class:`FieldError` if a featurizer or an input does not exist or does not fit.
        """
        return FeaturePlan(self.features, node_type=self.node_type, given=self.inputs)

    def dag(self) -> nx.DiGraph:
        """Build the graph of components: an edge a → b has the ``fields`` that b reads from a.

        Its nodes are ``"structure"`` (the fields of every protein graph), one per featurizer and layer, and ``"head"``,
        with the attributes ``kind``, ``name`` and ``step``.
        """
        plan = self.plan()
        dag = nx.DiGraph()
        writer = dict.fromkeys(plan.fields, "structure")  # field → path of the component that wrote it last
        dag.add_node("structure", kind="structure", name="structure", step=0)
        for i, n in enumerate(plan.components):
            featurizer = registry.featurizers.get(n.name)
            reads = {local: n.input_field(local) for local in featurizer.reads}
            writes = {local: n.output_field(local) for local in featurizer.writes}
            feature = WiredComponent(f"features[{i}]", n, reads, writes)
            _join(dag, writer, feature, "feature")
            writer |= _writer_of_fields(feature)
        for layer in wire(self, plan):
            _join(dag, writer, layer, "layer")
            writer |= _writer_of_fields(layer)
        _join(dag, writer, WiredComponent("head", ComponentSpec("head"), self.readout, {}), "head")
        return dag

    def dead_layers(self) -> list[str]:
        """Return the layers without effect on the head, as ``layers[i] (name)``."""
        dag = self.dag()
        read = nx.ancestors(dag, "head")
        dead = []
        for path, data in dag.nodes(data=True):
            if data["kind"] == "layer" and path not in read:
                dead.append(f"{path} ({data['name']})")
        return dead


def _assignments(names: Mapping[str, str]) -> str:
    """Return e.g. "h = x, pos = moved"."""
    return ", ".join(f"{local} = {name}" for local, name in names.items())


def _toml_value(value: Any) -> str:
    """Return plain data in TOML, tables inline."""
    if isinstance(value, Mapping):
        pairs = [f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items() if item is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are written alike


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


@dataclass(frozen=True)
class WiredComponent:
    """A component with resolved names.

    ``path``: e.g. ``layers[2]``; ``layers[2][0]`` for the first of several repetitions. ``reads``, ``writes``: local
    name to field of the model.
    """

    path: str
    component: ComponentSpec
    reads: Mapping[str, str]
    writes: Mapping[str, str]


def _join(dag: nx.DiGraph, writer: Mapping[str, str], w: WiredComponent, kind: str) -> None:
    """Add a component to the graph, with an edge from each component that it reads from."""
    dag.add_node(w.path, kind=kind, name=w.component.name, step=len(dag))
    read: dict[str, list[str]] = {} if w.reads else {"structure": []}
    for name in w.reads.values():
        read.setdefault(writer[name], []).append(name)
    for source, names in read.items():
        dag.add_edge(source, w.path, fields=tuple(names))


def _writer_of_fields(w: WiredComponent) -> dict[str, str]:
    """Return the path of a component for each field that it writes, and for the edge set of an edge index."""
    writer: dict[str, str] = {}
    for name in w.writes.values():
        writer[name] = w.path
        edges = edge_set_of(name)
        if edges is not None:
            writer[edges] = w.path
    return writer


def wire(spec: ModelSpec, plan: FeaturePlan) -> list[WiredComponent]:
    """Resolve the names of every layer and check that each field is written before it is read."""
    available: set[str] = set(plan.fields)
    wires = []
    for i, n in enumerate(spec.layers):
        layer_class = _layer_class(f"layers[{i}]", n)
        for repetition in range(n.repeat):
            path = f"layers[{i}]" if n.repeat == 1 else f"layers[{i}][{repetition}]"
            w = _resolve(path, n, layer_class, plan)
            for name in w.reads.values():
                _check_available(name, available, f"{path} ({n.name}) reads")
            available |= set(w.writes.values())
            wires.append(w)
    for name in spec.readout.values():
        _check_available(name, available, f"the readout of model {spec.name!r} reads")
    return wires


def _layer_class(path: str, n: ComponentSpec) -> type[GraphLayer]:
    layer = registry.layers.get(n.name)
    if not (inspect.isclass(layer) and issubclass(layer, GraphLayer)):
        raise WiringError(f"{path} ({n.name}): {layer!r} is not a subclass of protgraph.GraphLayer.")
    return layer


def _resolve(path: str, n: ComponentSpec, layer: type[GraphLayer], plan: FeaturePlan) -> WiredComponent:
    """Return a layer with the fields that it reads and writes, from its wiring and the sets that it is on."""
    where = f"{path} ({n.name})"
    _check_local_names(where, n, layer)
    _check_sets(where, n, plan)
    edges = n.edges or n.reads.get("edges", EDGES)
    nodes = n.nodes or NODES
    ends = EdgeEnds(nodes, nodes)
    if n.edges or "edges" in layer.reads:
        ends = plan.ends.get(edges, ends)
    reads = _resolve_reads(n, layer, edges, ends)
    writes = _resolve_writes(n, layer, edges, ends)
    for name in writes.values():
        if name in ("edges", "proteins", "logits"):
            raise WiringError(f"{where} writes {name!r}, which is reserved. Choose another field.")
    return WiredComponent(path, n, reads, writes)


def _check_sets(where: str, n: ComponentSpec, plan: FeaturePlan) -> None:
    """Raise if a layer names sources of edges, or a node set that does not exist."""
    if n.sources:
        raise WiringError(f"{where}: sources={n.sources!r} is for edge featurizers. Leave it out.")
    if n.nodes not in ("", NODES, *plan.node_sets):
        names = ", ".join(map(repr, plan.node_sets)) or "none"
        hint = suggest(n.nodes, [NODES, *plan.node_sets])
        raise WiringError(f"{where}: node set {n.nodes!r} does not exist.{hint} Node sets: {names}.")


def _resolve_reads(n: ComponentSpec, layer: type[GraphLayer], edges: str, ends: EdgeEnds) -> dict[str, str]:
    """Return the fields that a layer reads, by local name: as wired, else those on its edge and node sets."""
    reads = {local: n.reads.get(local, field_on(local, edges, ends)) for local in layer.reads}
    reads |= {local: n.reads[local] for local in layer.optional if local in n.reads}
    if n.edges:
        reads["edges"] = n.edges
    reads |= {name: name for name in n.inputs}
    return reads


def _resolve_writes(n: ComponentSpec, layer: type[GraphLayer], edges: str, ends: EdgeEnds) -> dict[str, str]:
    """Return the fields that a layer writes, by local name; fields of edges are not renamed by its edge set."""
    writes: dict[str, str] = {}
    for local in layer.writes:
        default = local if is_edge_field(local) else field_on(local, edges, ends)
        writes[local] = n.writes.get(local, default)
    return writes


def _check_local_names(where: str, n: ComponentSpec, layer: type[GraphLayer]) -> None:
    if n.inputs and not layer.variadic:
        raise WiringError(f"{where} reads {', '.join(layer.reads)}. Give reads={{local: field}}, not a list of fields.")
    unknown = sorted(set(n.reads) - set(layer.reads) - set(layer.optional))
    if unknown:
        inputs = ", ".join((*layer.reads, *layer.optional))
        raise WiringError(f"{where} has no input {unknown[0]!r}. Its inputs are {inputs}.")
    unknown = sorted(set(n.writes) - set(layer.writes))
    if unknown:
        raise WiringError(f"{where} has no output {unknown[0]!r}. Its outputs are {', '.join(layer.writes)}.")
    if n.edges and "edges" not in (*layer.reads, *layer.optional):
        raise WiringError(f"{where} reads no edges. Leave out edges={n.edges!r}.")


def _check_available(name: str, available: set[str], reader: str) -> None:
    if name in available:
        return
    hint = suggest(name, sorted(available))
    if name == "edges":
        hint = " Add an edge featurizer such as 'knn'."
    elif is_registered(name):
        hint += " Add the featurizer that writes it."
    fields = ", ".join(sorted(available))
    raise WiringError(f"{reader} {name!r}, which no component before it writes.{hint} Available: {fields}.")
