"""Graphs in the objects of other libraries and back: networkx, plain PyG ``Data``, pandas.

Every round trip is an equality: the same fields, bit for bit, the same edge order, name, identities and report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.graph.fields import field, is_registered
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import FieldError, MissingExtraError
from protgraph.structure.residues.alphabet import THREE_LETTER

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_frames", "from_networkx", "from_pyg", "node_names", "to_frames", "to_networkx", "to_pyg"]

_COPIES = ("x", "edge_attr")  # what to_pyg joins of fields


def node_names(graph: ProteinGraph) -> list[str]:
    """Readable names of the nodes: ``A:GLY:42``, with insertion code ``A:GLY:42A``.

    Residues are named by their type: a modified one by its parent's, one of unknown type UNK.
    """
    identities = [i.split(":", 1) for i in graph.residue_ids.tolist()]
    kinds = [THREE_LETTER[code] for code in graph.aatype.tolist()]
    return [f"{chain}:{kind}:{rest}" for (chain, rest), kind in zip(identities, kinds, strict=True)]


def to_networkx(graph: ProteinGraph) -> nx.DiGraph:
    """A directed graph with an edge j → i for each edge, fields as attributes, nodes named as :func:`node_names` says.

    Attributes are numbers where a field has one value a row, else arrays of numpy. Fields of the whole protein, its
    name and report are in ``.graph``.

    Examples
    --------
    >>> g = to_networkx(graph)  # doctest: +SKIP
    >>> g.nodes["A:GLY:42"]["dihedral"], g.edges["A:GLY:42", "A:SER:43"]["edge_dist"]  # doctest: +SKIP
    """
    names = node_names(graph)
    found = nx.DiGraph(**_attributes(graph), fields={k: (v.dtype, v.shape[1:]) for k, v in _tensors(graph).items()})
    rows = {key: _rows(value) for key, value in _tensors(graph).items() if graph.level(key) == "node"}
    for i, name in enumerate(names):
        found.add_node(name, residue_id=str(graph.residue_ids[i]), **{key: value[i] for key, value in rows.items()})
    if "edge_index" in graph:
        found.graph["degree"] = graph.degree if "degree" in graph else None
        rows = {k: _rows(v) for k, v in _tensors(graph).items() if graph.level(k) == "edge" and k != "edge_index"}
        for e, (j, i) in enumerate(graph.edge_index.T.tolist()):
            found.add_edge(names[j], names[i], **{key: value[e] for key, value in rows.items()})
    if found.number_of_nodes() != graph.num_nodes or found.number_of_edges() != graph.num_edges:
        raise FieldError(f"{graph.name}: two nodes or edges of the graph have one name; networkx would merge them")
    return found


def from_networkx(g: nx.DiGraph) -> ProteinGraph:
    """The graph that :func:`to_networkx` gave, or one changed since: edges are put in order again.

    Raises
    ------
    FieldError
        Where an attribute is no field, or some nodes or edges lack one that others have.
    """
    nodes, edges = [d for _, d in g.nodes(data=True)], [d for _, _, d in g.edges(data=True)]
    number = {name: i for i, name in enumerate(g)}
    types: Mapping[str, Any] = g.graph.get("fields", {})
    graph = _start(g.graph, [d.get("residue_id", str(name)) for name, d in g.nodes(data=True)])
    for key in dict.fromkeys(k for d in nodes for k in d if k != "residue_id"):
        graph[key] = _tensor(key, _column(key, nodes, "node"), types)
    if "degree" not in g.graph:
        return graph
    source, target = (torch.tensor([number[e[side]] for e in g.edges], dtype=torch.long) for side in (0, 1))
    order = _order(graph.pos, source, target)
    graph.edge_index = torch.stack([source, target])[:, order]
    if not edges:
        empty = {k: t for k, t in types.items() if k not in graph and field(k).level == "edge"}
        graph.update({k: torch.zeros((0, *shape), dtype=dtype) for k, (dtype, shape) in empty.items()})
    if g.graph["degree"] is not None:
        graph.degree = g.graph["degree"]
    for key in dict.fromkeys(k for d in edges for k in d):
        graph[key] = _tensor(key, _column(key, edges, "edge"), types)[order]
    graph.validate()
    return graph


def to_pyg(graph: ProteinGraph, *, x: Sequence[str] = (), edge_attr: Sequence[str] = ()) -> Data:
    """A plain ``torch_geometric.data.Data`` of the same fields, for any PyG model.

    Parameters
    ----------
    graph : ProteinGraph
    x, edge_attr : sequence of str
        Fields to join to ``x`` ``(N, C)`` and ``edge_attr`` ``(E, C)``, each flattened to float.

    Raises
    ------
    FieldError
        Where the graph lacks one of them, or it is of another level.
    """
    data = Data(**dict(graph.items()))
    for name, level, fields in (("x", "node", x), ("edge_attr", "edge", edge_attr)):
        wrong = [f for f in fields if f not in graph or graph.level(f) != level]
        if wrong:
            raise FieldError(f"{graph.name} has no {level} field {wrong[0]!r} to make {name} of")
        if fields:
            data[name] = torch.cat([graph[f].reshape(len(graph[f]), -1).to(graph.pos.dtype) for f in fields], 1)
    return data


def from_pyg(data: Data) -> ProteinGraph:
    """The graph of a ``Data`` whose tensors are fields of the table; ``x`` and ``edge_attr``, being copies, are left.

    Raises
    ------
    FieldError
        Where a tensor is no field, or does not fit the table.
    """
    graph = ProteinGraph(**{key: value for key, value in data.items() if key not in _COPIES})
    for key in _tensors(graph):
        _check_registered(key)
    graph.validate()
    return graph


def to_frames(graph: ProteinGraph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table of nodes, by their names, and one of edges with columns ``source`` and ``target``.

    A field of one value a row is a column of its name; others are columns ``name[0]``, ``name[1,2]``, …. What is of the
    whole protein is in ``nodes.attrs``.

    Raises
    ------
    MissingExtraError
        Where pandas is not installed.
    """
    pandas, names = _pandas(), node_names(graph)
    columns: dict[str, dict[str, Any]] = {"node": {"residue_id": graph.residue_ids}, "edge": {}}
    for key, value in _tensors(graph).items():
        if key != "edge_index" and graph.level(key) in columns:
            columns[graph.level(key)] |= _flat(key, value.numpy())
    nodes = pandas.DataFrame(columns["node"], index=pandas.Index(names, name="node"))
    nodes.attrs = _attributes(graph)
    source, target = graph.edge_index.numpy() if "edge_index" in graph else np.zeros((2, 0), np.int64)
    ends = {"source": np.array(names, dtype=object)[source], "target": np.array(names, dtype=object)[target]}
    if "edge_index" in graph:
        nodes.attrs["degree"] = graph.degree if "degree" in graph else None
    return nodes, pandas.DataFrame(ends | columns["edge"])


def from_frames(nodes: pd.DataFrame, edges: pd.DataFrame) -> ProteinGraph:
    """The graph of the tables that :func:`to_frames` gave; edges are put in order again.

    Raises
    ------
    FieldError
        Where a column is no field, or an edge names no node.
    """
    graph = _start(nodes.attrs, nodes["residue_id"].tolist())
    for key, value in _joined(nodes, skip=("residue_id",)).items():
        graph[key] = value
    if "degree" not in nodes.attrs:
        return graph
    ends = [nodes.index.get_indexer(edges[side]) for side in ("source", "target")]
    if min(len(edges), *(int(e.min(initial=0)) for e in ends)) < 0:
        raise FieldError(f"{graph.name}: an edge names a node that the table of nodes lacks")
    source, target = (torch.from_numpy(e.astype(np.int64)) for e in ends)
    order = _order(graph.pos, source, target)
    graph.edge_index = torch.stack([source, target])[:, order]
    if nodes.attrs["degree"] is not None:
        graph.degree = nodes.attrs["degree"]
    for key, value in _joined(edges, skip=("source", "target")).items():
        graph[key] = value[order]
    graph.validate()
    return graph


def _tensors(graph: ProteinGraph) -> dict[str, Tensor]:
    return {key: value for key, value in graph.items() if isinstance(value, Tensor)}


def _attributes(graph: ProteinGraph) -> dict[str, Any]:
    """What is of the whole protein: plain attributes, and fields as arrays."""
    found = {k: v for k, v in graph.items() if not isinstance(v, Tensor) and k not in ("residue_ids", "degree")}
    whole = {k: v.numpy() for k, v in _tensors(graph).items() if graph.level(k) not in ("node", "edge")}
    return {**found, "whole": whole}


def _start(attributes: Mapping[str, Any], identities: list[str]) -> ProteinGraph:
    graph = ProteinGraph()
    for key, value in attributes.items():
        if key not in ("whole", "fields", "degree"):
            graph[key] = value
    for key, value in attributes.get("whole", {}).items():
        graph[key] = torch.from_numpy(value)
    graph.residue_ids = np.array(identities)
    return graph


def _rows(value: Tensor) -> list[Any]:
    """One number or array a row."""
    return value.tolist() if value.dim() == 1 else list(value.numpy())


def _column(key: str, rows: Iterable[Mapping[str, Any]], level: str) -> list[Any]:
    values = [d.get(key) for d in rows]
    missing = sum(v is None for v in values)
    if missing:
        raise FieldError(f"{missing} of {len(values)} {level}s have no attribute {key!r} and the others have")
    return values


def _tensor(key: str, values: list[Any], types: Mapping[str, Any]) -> Tensor:
    _check_registered(key)
    dtype = types[key][0] if key in types else getattr(torch, field(key).dtype)
    return torch.as_tensor(np.stack([np.asarray(v) for v in values]), dtype=dtype)


def _check_registered(key: str) -> None:
    if key != "y" and not is_registered(key):
        raise FieldError(f"{key!r} is no field of the table; take it off, or add it with protgraph.register_field")


def _order(pos: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Edges by target, then distance, then source: the order of every edge featurizer."""
    exact = pos.double().numpy()
    j, i = source.numpy(), target.numpy()
    return torch.from_numpy(np.lexsort((j, _squared(exact[j] - exact[i]), i)))


def _squared(v: np.ndarray) -> np.ndarray:
    return v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1] + v[:, 2] * v[:, 2]


def _flat(key: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if value.ndim == 1:
        return {key: value}
    places = np.ndindex(value.shape[1:])
    return {f"{key}[{','.join(map(str, place))}]": value[(slice(None), *place)] for place in places}


def _joined(frame: pd.DataFrame, *, skip: Sequence[str]) -> dict[str, Tensor]:
    """Columns ``name[1,2]`` as one tensor each."""
    parts: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    for column in frame.columns:
        key, bracket, rest = str(column).partition("[")
        if key not in skip:
            _check_registered(key)
            place = tuple(map(int, rest.rstrip("]").split(","))) if bracket else ()
            parts.setdefault(key, {})[place] = frame[column].to_numpy()
    made = {}
    for key, columns in parts.items():
        shape = tuple(1 + max(axis) for axis in zip(*columns, strict=True))
        joined = np.empty((len(frame), *shape), next(iter(columns.values())).dtype)
        for place, values in columns.items():
            joined[(slice(None), *place)] = values
        made[key] = torch.from_numpy(joined)
    return made


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as e:
        raise MissingExtraError('tables need pandas: pip install "protgraph-pyg[pandas]"') from e
    return pandas
