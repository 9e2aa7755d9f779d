"""Levels of a component inside a model: with ``edges="far"``, its edges are those of the edge set ``far``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protgraph.data.graph.fields import EDGES, FieldSpec, field, is_registered
from protgraph.errors import WiringError
from protgraph.ops import Edges

__all__ = ["LocalLevels", "is_edge_field", "prefixed", "rows_of"]


def is_edge_field(name: str) -> bool:
    """Return True for a registered tensor with rows of edges, e.g. ``edge_dist``."""
    return is_registered(name) and field(name).level == "edge" and field(name).is_tensor and not field(name).on


def prefixed(edges: str, name: str) -> str:
    """Return the name of a field of edges on an edge set.

    Examples
    --------
    >>> prefixed("edges", "edge_dist"), prefixed("far", "edge_dist")
    ('edge_dist', 'far_edge_dist')
    """
    return name if edges == EDGES else f"{edges}_{name}"


@dataclass(frozen=True)
class LocalLevels:
    """Meaning of the level "edge" in one component.

    Parameters
    ----------
    edges : str
        The named edge set whose edges are the rows; "" for ``edges``.
    nodes : str
        For a line graph: the edge set whose edges are its nodes, e.g. ``edges``; "" if nodes are nodes.
    """

    edges: str
    nodes: str = ""

    @classmethod
    def of(
        cls, path: str, reads: Mapping[str, str], fields: Mapping[str, FieldSpec], line_graphs: Mapping[str, str]
    ) -> LocalLevels:
        """Return the levels of a component that reads these fields, local name to field of the model.

        Parameters
        ----------
        line_graphs : mapping of str to str
            Line graph → edge set whose edges are its nodes.

        Raises
        ------
        WiringError
            It reads no ``edges``, and fields on several edge sets.
        """
        if "edges" in reads:
            edges = fields[reads["edges"]].on
            return cls(edges, line_graphs.get(edges, ""))
        read = {name: fields[name].on for name in reads.values() if fields[name].level == "edge"}
        if len(set(read.values())) > 1:
            sets = ", ".join(f"{name!r} on {edges or EDGES!r}" for name, edges in read.items())
            raise WiringError(f"{path} reads fields on several edge sets: {sets}. Allowed: one edge set.")
        return cls(next(iter(read.values()), ""))

    def local(self, path: str, local: str, spec: FieldSpec) -> FieldSpec:
        """Return the spec of an input as the component sees it.

        Raises
        ------
        WiringError
            The field is on other edges than those that the component reads.
        """
        if self.nodes and spec.level == "edge" and (spec.on or EDGES) == self.nodes:
            return spec.as_(spec.name, level="node", on="")
        if self.nodes and spec.level in ("node", "pair"):
            raise WiringError(
                f"{path}: reads={{{local!r}: {spec.name!r}}}: {spec.name!r} is per {spec.level}, but the nodes of "
                f"{self.edges!r} are the edges {self.nodes!r}. Allowed: fields of these edges."
            )
        if spec.level != "edge":
            return spec
        if spec.on != self.edges:
            raise WiringError(
                f"{path}: reads={{{local!r}: {spec.name!r}}}: {spec.name!r} is on the edges {spec.on or EDGES!r}, but "
                f"edges={self.edges or EDGES!r}. Allowed: fields on the same edges."
            )
        return spec.as_(spec.name, on="")

    def of_model(self, spec: FieldSpec) -> FieldSpec:
        """Return the spec of an output as a field of the model."""
        if spec.level == "edge":
            return spec.as_(spec.name, on=self.edges)
        if self.nodes and spec.level == "node":
            return spec.as_(spec.name, level="edge", on="" if self.nodes == EDGES else self.nodes)
        return spec

    def rows(self, rows: Mapping[str, int]) -> dict[str, int]:
        """Return the number of rows of each level as the component sees it; see :func:`rows_of`."""
        seen = {level: count for level, count in rows.items() if level != "edge"}
        edges = self.edges or EDGES
        if edges in rows:
            seen["edge"] = rows[edges]
        if self.nodes:
            seen["node"] = rows[self.nodes]
        return seen


def rows_of(f: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of rows of each level, and of each edge set by its name, from the fields of a batch."""
    proteins = f["proteins"]
    rows = {"node": proteins.batch.numel(), "graph": len(proteins), "pair": sum(n * n for n in proteins.sizes)}
    for name, value in f.items():
        if isinstance(value, Edges):
            rows[name] = value.num_edges
    return rows
