"""Conversion of graphs to and from networkx, plain PyG ``Data`` and pandas.

Round trips are exact: same fields, bit for bit, same edge order, name, residue identifiers and report.

Not ``torch_geometric.utils.to_networkx`` and ``from_networkx``: the round trip returns edges that are not sorted by
target, without name, degree, residue identifiers and report (PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import field, is_registered
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.errors import FieldError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_frames", "from_networkx", "from_pyg", "node_names", "to_frames", "to_networkx", "to_pyg"]

_COPIES = ("x", "edge_attr")  # concatenated copies of fields, added by to_pyg


def node_names(graph: ProteinGraph) -> list[str]:
    """Return readable node names: ``A:GLY:42``, with insertion code ``A:GLY:42A``.

    Modified residues have the name of their parent type, residues of unknown type UNK.
    """
    from protgraph.structure.residues.alphabet import THREE_LETTER  # the package imports biotite

    identities = [i.split(":", 1) for i in graph.residue_ids.tolist()]
    kinds = [THREE_LETTER[code] for code in graph.aatype.tolist()]
    return [f"{chain}:{kind}:{rest}" for (chain, rest), kind in zip(identities, kinds, strict=True)]


@check_arguments("graph")
def to_networkx(graph: ProteinGraph) -> nx.DiGraph:
    """Convert to a directed networkx graph with edges j → i and fields as attributes.

    Nodes are named by :func:`node_names`. Attributes are numbers for fields with one value per row, NumPy arrays
    otherwise. Fields per protein, the name and the report are in ``.graph``.

    Raises
    ------
    FieldError
        If two nodes have the same name; networkx would merge them.

    Examples
    --------
    >>> graph = ProteinGraph(aatype=torch.tensor([5, 15]), pos=torch.zeros(2, 3), edge_index=torch.tensor([[1], [0]]))
    >>> graph.residue_ids = np.array(["A:42", "A:43"])
    >>> list(to_networkx(graph).edges)
    [('A:SER:43', 'A:GLY:42')]
    """
    names = node_names(graph)
    g = nx.DiGraph(**_attributes(graph), fields={k: (v.dtype, v.shape[1:]) for k, v in _tensors(graph).items()})
    rows = {key: _rows(value) for key, value in _tensors(graph).items() if graph.level(key) == "node"}
    for i, name in enumerate(names):
        g.add_node(name, residue_id=str(graph.residue_ids[i]), **{key: value[i] for key, value in rows.items()})
    if "edge_index" in graph:
        g.graph["degree"] = graph.degree if "degree" in graph else None
        rows = {k: _rows(v) for k, v in _tensors(graph).items() if graph.level(k) == "edge" and k != "edge_index"}
        for e, (j, i) in enumerate(graph.edge_index.T.tolist()):
            g.add_edge(names[j], names[i], **{key: value[e] for key, value in rows.items()})
    if g.number_of_nodes() != graph.num_nodes or g.number_of_edges() != graph.num_edges:
        raise FieldError(f"{graph.name}: two nodes or edges have the same name; networkx would merge them")
    return g


@check_arguments("g")
def from_networkx(g: nx.DiGraph) -> ProteinGraph:
    """Convert the result of :func:`to_networkx`, possibly modified, to a protein graph; edges are sorted again.

    Raises
    ------
    FieldError
        If an attribute is not a field, or only some nodes or edges have it.
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


@check_arguments("graph", "x", "edge_attr")
def to_pyg(graph: ProteinGraph, *, x: Sequence[str] = (), edge_attr: Sequence[str] = ()) -> Data:
    """Convert to a plain ``torch_geometric.data.Data`` with the same fields, for any PyG model.

    Parameters
    ----------
    graph : ProteinGraph
    x, edge_attr : sequence of str
        Fields to concatenate to ``x`` ``(N, C)`` and ``edge_attr`` ``(E, C)``, flattened to float.

    Raises
    ------
    FieldError
        If the graph does not have one of these fields, or it is of another level.
    """
    data = Data(**dict(graph.items()))
    for name, level, fields in (("x", "node", x), ("edge_attr", "edge", edge_attr)):
        wrong = [f for f in fields if f not in graph or graph.level(f) != level]
        if wrong:
            raise FieldError(f"{graph.name} has no {level} field {wrong[0]!r} (argument {name})")
        if fields:
            data[name] = torch.cat([graph[f].reshape(len(graph[f]), -1).to(graph.pos.dtype) for f in fields], 1)
    return data


@check_arguments("data")
def from_pyg(data: Data) -> ProteinGraph:
    """Convert a ``Data`` whose tensors are fields of the table; ``x`` and ``edge_attr`` are ignored as copies.

    Raises
    ------
    FieldError
        If a tensor is not a field or does not fit the table.
    """
    graph = ProteinGraph(**{key: value for key, value in data.items() if key not in _COPIES})
    for key in _tensors(graph):
        _check_registered(key)
    graph.validate()
    return graph


def to_frames(graph: ProteinGraph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Convert to two pandas tables: nodes, indexed by name, and edges with columns ``source`` and ``target``.

    A field with one value per row is one column; others are columns ``name[0]``, ``name[1,2]``, …. Attributes of the
    protein are in ``nodes.attrs``.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
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
    """Convert the tables of :func:`to_frames` to a protein graph; edges are sorted again.

    Raises
    ------
    FieldError
        If a column is not a field, or an edge refers to a node that does not exist.
    """
    graph = _start(nodes.attrs, nodes["residue_id"].tolist())
    for key, value in _joined(nodes, skip=("residue_id",)).items():
        graph[key] = value
    if "degree" not in nodes.attrs:
        return graph
    ends = [nodes.index.get_indexer(edges[side]) for side in ("source", "target")]
    if min(len(edges), *(int(e.min(initial=0)) for e in ends)) < 0:
        raise FieldError(f"{graph.name}: an edge refers to a node that is not in the table of nodes")
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
    """Return the attributes of the protein: plain attributes, and fields per protein as arrays under "protein"."""
    plain = {k: v for k, v in graph.items() if not isinstance(v, Tensor) and k not in ("residue_ids", "degree")}
    per_protein = {k: v.numpy() for k, v in _tensors(graph).items() if graph.level(k) not in ("node", "edge")}
    return {**plain, "protein": per_protein}


def _start(attributes: Mapping[str, Any], identities: list[str]) -> ProteinGraph:
    graph = ProteinGraph()
    for key, value in attributes.items():
        if key not in ("protein", "fields", "degree"):
            graph[key] = value
    for key, value in attributes.get("protein", {}).items():
        graph[key] = torch.from_numpy(value)
    graph.residue_ids = np.array(identities)
    return graph


def _rows(value: Tensor) -> list[Any]:
    """Return one number or array per row."""
    return value.tolist() if value.dim() == 1 else list(value.numpy())


def _column(key: str, rows: Iterable[Mapping[str, Any]], level: str) -> list[Any]:
    values = [d.get(key) for d in rows]
    missing = sum(v is None for v in values)
    if missing:
        raise FieldError(f"{missing} of {len(values)} {level}s have no attribute {key!r}. All or none must have it.")
    return values


def _tensor(key: str, values: list[Any], types: Mapping[str, Any]) -> Tensor:
    _check_registered(key)
    dtype = types[key][0] if key in types else getattr(torch, field(key).dtype)
    return torch.as_tensor(np.stack([np.asarray(v) for v in values]), dtype=dtype)


def _check_registered(key: str) -> None:
    if key != "y" and not is_registered(key):
        raise FieldError(f"{key!r} is not a field of the table. Remove it, or add it with protgraph.register_field.")


def _order(pos: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Return the order of edges by target, then distance, then source, as edge featurizers have them."""
    from protgraph.structure.neighbors.search import argsort_edges  # the package imports biotite

    return torch.from_numpy(argsort_edges(pos.numpy(), np.stack([source.numpy(), target.numpy()])))


def _flat(key: str, value: np.ndarray) -> dict[str, np.ndarray]:
    if value.ndim == 1:
        return {key: value}
    places = np.ndindex(value.shape[1:])
    return {f"{key}[{','.join(map(str, place))}]": value[(slice(None), *place)] for place in places}


def _joined(frame: pd.DataFrame, *, skip: Sequence[str]) -> dict[str, Tensor]:
    """Join columns ``name[1,2]`` to one tensor per field."""
    parts: dict[str, dict[tuple[int, ...], np.ndarray]] = {}
    for column in frame.columns:
        key, bracket, rest = str(column).partition("[")
        if key not in skip:
            _check_registered(key)
            place = tuple(map(int, rest.rstrip("]").split(","))) if bracket else ()
            parts.setdefault(key, {})[place] = frame[column].to_numpy()
    tensors = {}
    for key, columns in parts.items():
        shape = tuple(1 + max(axis) for axis in zip(*columns, strict=True))
        joined = np.empty((len(frame), *shape), next(iter(columns.values())).dtype)
        for place, values in columns.items():
            joined[(slice(None), *place)] = values
        tensors[key] = torch.from_numpy(joined)
    return tensors


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as e:
        raise MissingExtraError('to_frames and from_frames need pandas: pip install "protgraph-pyg[pandas]"') from e
    return pandas
