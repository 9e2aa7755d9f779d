"""Levels of a component inside a model.

With ``edges="far"`` its edges are those of the edge set ``far``, with ``nodes="residues"`` its nodes are those of the
node set ``residues``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from protgraph.data.graph.fields import EDGES, NODES, FieldSpec, field, is_node_set, is_registered, pairs_of
from protgraph.errors import WiringError
from protgraph.ops import Edges, Proteins

__all__ = ["EdgeEnds", "LocalLevels", "field_on", "is_edge_field", "reads_source", "prefixed", "rows_of"]

_SOURCE = "source_"


class EdgeEnds(NamedTuple):
    """Ends of an edge set: a node set, "nodes" for the nodes of the graph, or an edge set in a line graph."""

    sources: str = NODES
    nodes: str = NODES

    @property
    def is_bipartite(self) -> bool:
        """True if sources and targets are of two node sets."""
        return self.sources != self.nodes


def is_edge_field(name: str) -> bool:
    """Return True for a registered tensor with rows of edges, e.g. ``edge_dist``."""
    return is_registered(name) and field(name).level == "edge" and field(name).is_tensor and not field(name).on


def reads_source(local: str) -> bool:
    """Return True for the local name of a field of the sources of edges, e.g. ``source_h``."""
    return local.startswith(_SOURCE)


def prefixed(rows: str, name: str) -> str:
    """Return the name of a field on an edge or node set.

    Examples
    --------
    >>> prefixed("edges", "edge_dist"), prefixed("far", "edge_dist"), prefixed("residues", "h")
    ('edge_dist', 'far_edge_dist', 'residues_h')
    """
    return name if rows in (EDGES, NODES) else f"{rows}_{name}"


def field_on(local: str, edges: str, ends: EdgeEnds) -> str:
    """Return the field that a component on these edges and nodes reads or writes under a local name, by default.

    Examples
    --------
    >>> ends = EdgeEnds("nodes", "residues")
    >>> [field_on(local, "near", ends) for local in ("h", "source_h", "edge_dist", "edges", "proteins")]
    ['residues_h', 'h', 'near_edge_dist', 'near', 'residues']
    """
    if local == "edges":
        return edges
    sources, nodes = (name if is_node_set(name) else NODES for name in ends)  # in a line graph, fields keep their names
    if local == "proteins":
        return local if nodes == NODES else nodes
    if is_edge_field(local):
        return prefixed(edges, local)
    level = field(local).level if is_registered(local) else local.partition("_")[0]
    if level in ("edge", "graph"):
        return local
    return prefixed(sources, local.removeprefix(_SOURCE)) if reads_source(local) else prefixed(nodes, local)


def _rows_of_set(name: str) -> str:
    """Return the rows of the fields of a set: the level for the edges and nodes without a name."""
    return {EDGES: "edge", NODES: "node"}.get(name, name)


def _set_of_rows(rows: str) -> str:
    """Return the name of the edge or node set with these rows."""
    return {"edge": EDGES, "node": NODES}.get(rows, rows)


@dataclass(frozen=True)
class LocalLevels:
    """Meaning of the levels "edge" and "node" in one component, as rows of fields (:attr:`FieldSpec.rows`).

    ``edges``: rows of its edges: "edge", or the name of an edge set. ``nodes``: rows of its nodes: "node", the name of
    a node set or, in a line graph, the rows of edges. ``sources``: rows of the fields ``source_…``, those of the
    sources of its edges.
    """

    edges: str = "edge"
    nodes: str = "node"
    sources: str = "node"

    @classmethod
    def of(
        cls,
        path: str,
        reads: Mapping[str, str],
        fields: Mapping[str, FieldSpec],
        ends: Mapping[str, EdgeEnds],
        nodes: str = "",
    ) -> LocalLevels:
        """Return the levels of a component that reads these fields, local name to field of the model.

        ``ends``: what each edge set joins, if not nodes of the graph. ``nodes``: node set that the component names, if
        it names one.
        """
        if "edges" not in reads:
            specs = [fields[name] for name in reads.values()]
            edges = _common_set(path, "edge", [spec for spec in specs if spec.level == "edge"])
            common = nodes or _common_set(path, "node", [spec for spec in specs if spec.level in ("node", "pair")])
            return cls(*map(_rows_of_set, (edges, common, common)))
        edges = reads["edges"]
        joined = ends.get(edges, EdgeEnds())
        if nodes and nodes != joined.nodes:
            raise WiringError(
                f"{path}: nodes={nodes!r}, but the edges {edges!r} lead to {joined.nodes!r}. Allowed: edges between "
                f"{nodes!r}, e.g. component('knn', nodes={nodes!r}, edges='near')."
            )
        if joined.is_bipartite and not any(map(reads_source, reads)):
            raise WiringError(
                f"{path} reads one kind of nodes, but the edges {edges!r} lead from {joined.sources!r} to "
                f"{joined.nodes!r}. Allowed: components with an input 'source_…', e.g. the layer 'pool'."
            )
        return cls(*map(_rows_of_set, (edges, joined.nodes, joined.sources)))

    def local(self, path: str, local: str, spec: FieldSpec) -> FieldSpec:
        """Return the spec of an input as the component sees it."""
        nodes = self.sources if reads_source(local) else self.nodes
        if local == "edges":  # the set itself
            is_on_set = True
        elif local == "proteins":
            is_on_set = _rows_of_set(spec.on or NODES) == nodes
        else:
            is_on_set = spec.level == "graph" or spec.rows in (self.edges, nodes, pairs_of(nodes))
        if not is_on_set:
            raise self._mismatch(path, local, spec, nodes)
        if local == "proteins":
            return spec.as_(spec.name, level="graph", on="")
        if spec.level == "edge" and spec.rows == nodes:  # of a line graph
            return spec.as_(spec.name, level="node", on="")
        return spec.as_(spec.name, on="")

    def _mismatch(self, path: str, local: str, spec: FieldSpec, nodes: str) -> WiringError:
        where = f"{path}: reads={{{local!r}: {spec.name!r}}}: {spec.name!r}"
        name = _set_of_rows(nodes)
        if spec.level == "edge":
            return WiringError(
                f"{where} is on the edges {_set_of_rows(spec.rows)!r}, but edges={_set_of_rows(self.edges)!r}. "
                "Allowed: fields on the same edges."
            )
        of_set = f" of {spec.on!r}" if spec.on else ""
        if _has_edges(nodes):
            return WiringError(
                f"{where} is per {spec.level}{of_set}, but the nodes of {self.edges!r} are the edges {name!r}. "
                "Allowed: fields of these edges."
            )
        return WiringError(
            f"{where} is per {spec.level}{of_set}, but nodes={name!r}. Allowed: fields of these nodes, e.g. "
            f"{prefixed(name, 'h')!r}; the layer 'pool' makes one of a field of other nodes."
        )

    def of_model(self, spec: FieldSpec) -> FieldSpec:
        """Return the spec of an output as a field of the model."""
        if spec.level == "graph":
            return spec
        if spec.level == "edge":
            return spec.as_(spec.name, on="" if self.edges == "edge" else self.edges)
        on = "" if self.nodes in ("edge", "node") else self.nodes
        return spec.as_(spec.name, level="edge" if _has_edges(self.nodes) else spec.level, on=on)

    def rows(self, rows: Mapping[str, int]) -> dict[str, int]:
        """Return the number of rows of each level as the component sees it; see :func:`rows_of`."""
        rows_of_level = {"node": self.nodes, "edge": self.edges, "graph": "graph", "pair": pairs_of(self.nodes)}
        return {level: rows[name] for level, name in rows_of_level.items() if name in rows}


def _has_edges(rows: str) -> bool:
    return rows != "node" and not is_node_set(rows)


def _common_set(path: str, level: str, specs: Sequence[FieldSpec]) -> str:
    """Return the name of the edge or node set that fields of one level are on."""
    without_name = EDGES if level == "edge" else NODES
    sets = {spec.name: spec.on or without_name for spec in specs}
    if len(set(sets.values())) > 1:
        names = ", ".join(f"{name!r} on {on!r}" for name, on in sets.items())
        raise WiringError(f"{path} reads fields on several {level} sets: {names}. Allowed: one {level} set.")
    return next(iter(sets.values()), without_name)


def rows_of(f: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of rows of the fields of a batch, by :attr:`FieldSpec.rows`."""
    rows = {"graph": len(f["proteins"])}
    for name, value in f.items():
        if isinstance(value, Edges):
            rows[_rows_of_set(name)] = value.num_edges
        elif isinstance(value, Proteins):
            nodes = "node" if name == "proteins" else name
            rows |= {nodes: value.batch.numel(), pairs_of(nodes): value.num_pairs}
    return rows
