"""Conversion of graphs to networkx and pandas, and to and from plain PyG ``Data``.

Not ``torch_geometric.utils.to_networkx``: its graph has no node names and no fields without a list of them (PyG 2.8.1,
2026-11-22). For the way back use PyG's ``from_networkx`` and then :func:`from_pyg`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import field, is_field
from protgraph.data.graph.protein_graph import LossCounts, ProteinGraph
from protgraph.errors import FieldError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_pyg", "node_names", "to_frames", "to_networkx", "to_pyg"]

_JOINED = ("x", "edge_attr")  # to_pyg concatenates fields to these, and lists them in x_fields and edge_attr_fields


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
    g = nx.DiGraph(**_attributes(graph))
    node_rows = _rows_of_level(graph, "node", graph.num_nodes)
    for name, residue_id, row in zip(names, graph.residue_ids, node_rows, strict=True):
        g.add_node(name, residue_id=str(residue_id), **row)
    if "edge_index" in graph:
        edge_rows = _rows_of_level(graph, "edge", graph.num_edges)
        for (j, i), row in zip(graph.edge_index.T.tolist(), edge_rows, strict=True):
            g.add_edge(names[j], names[i], **row)
    if g.number_of_nodes() != graph.num_nodes or g.number_of_edges() != graph.num_edges:
        raise FieldError(f"{graph.name}: two nodes or edges have the same name; networkx would merge them")
    return g


@check_arguments("graph", "x", "edge_attr")
def to_pyg(graph: ProteinGraph, *, x: Sequence[str] = (), edge_attr: Sequence[str] = ()) -> Data:
    """Convert to a plain ``torch_geometric.data.Data`` with the same fields, for any PyG model.

    Parameters
    ----------
    x, edge_attr : sequence of str
        Fields to concatenate to ``x`` ``(N, C)`` and ``edge_attr`` ``(E, C)``, flattened to float.

    Raises
    ------
    FieldError
        If the graph does not have one of these fields, or it is of another level.
    """
    for key in _tensors(graph):
        if key != "edge_index" and is_field(key) and field(key).irreps == "index":
            raise FieldError(
                f"{graph.get('name', 'graph')}: field {key!r} has numbers of nodes, which PyG's batching does not "
                f"shift. Allowed: edge_index. Remove the field first: del graph.{key}."
            )
    data = Data(**dict(graph.items()))
    for name, level, fields in (("x", "node", x), ("edge_attr", "edge", edge_attr)):
        if fields:
            _check_joined(graph, name, level, fields)
            data[name] = _joined(graph, fields)
            data[f"{name}_fields"] = tuple(fields)
    return data


def _remove_joined(graph: ProteinGraph) -> None:
    """Remove what :func:`to_pyg` joined, if it is still equal to the fields."""
    for name in _JOINED:
        fields = graph.get(f"{name}_fields")
        if fields is None:
            continue
        del graph[f"{name}_fields"]
        has_all = name in graph and all(key in graph for key in fields)
        if has_all and _is_copy(graph[name], _joined(graph, fields)):
            del graph[name]


def _check_joined(graph: ProteinGraph, name: str, level: str, fields: Sequence[str]) -> None:
    """Raise if a graph lacks fields that are joined to ``name``, or has a field of that name."""
    for key in fields:
        if key not in graph or graph.level(key) != level:
            raise FieldError(f"{graph.get('name', 'graph')} has no {level} field {key!r} (argument {name}).")
    if name in graph:
        raise FieldError(f"{graph.get('name', 'graph')} has {name!r} of its own. Remove it, or omit {name}=.")


@check_arguments("data")
def from_pyg(data: Data) -> ProteinGraph:
    """Convert a ``Data`` of PyG to a protein graph; edges are sorted by target, as our layers require.

    Kept are ``x``, ``edge_attr``, ``y``, ``edge_index``, ``pos``, all tensors that are fields of the table, and all
    attributes that are not tensors. ``x`` and ``edge_attr`` that :func:`to_pyg` made are left out, if they are still
    equal to the fields that they were made of.

    Raises
    ------
    FieldError
        If another tensor is not a field of the table, a field does not fit it, or ``data`` is a batch.

    Examples
    --------
    >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), y=torch.tensor([1]))
    >>> from_pyg(data)
    ProteinGraph(x=[3, 2], edge_index=[2, 3], y=[1])
    """
    if isinstance(data, Batch):
        raise FieldError(
            f"from_pyg: a batch of {data.num_graphs} graphs. Allowed: one graph. "
            "Convert each: [pg.from_pyg(one) for one in batch.to_data_list()]."
        )
    graph = ProteinGraph(**dict(data.items()))
    unknown = [key for key in _tensors(graph) if key != "y" and not is_field(key)]
    if unknown:
        raise FieldError(
            f"from_pyg: tensors {', '.join(map(repr, unknown))} are not fields of the table. Remove them (e.g. "
            f"del data.{unknown[0]}), or declare them, e.g. "
            f"pg.register_field(pg.FieldSpec({unknown[0]!r}, 'node', '1x0e'))."
        )
    _remove_joined(graph)
    if isinstance(graph.get("report"), Mapping):
        graph.report = LossCounts(graph.report)
    if isinstance(graph.get("y"), Tensor) and graph.y.dim() == 0:
        graph.y = graph.y.reshape(1)
    _sort_edges(graph)
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
    try:
        import pandas
    except ImportError as e:
        raise MissingExtraError('to_frames needs pandas: pip install "protgraph-pyg[pandas]"') from e
    names = node_names(graph)
    columns: dict[str, dict[str, Any]] = {"node": {"residue_id": graph.residue_ids}, "edge": {}}
    for key, value in _tensors(graph).items():
        level = graph.level(key)
        if key != "edge_index" and level is not None and level in columns:
            columns[level] |= _flat(key, value.numpy())
    nodes = pandas.DataFrame(columns["node"], index=pandas.Index(names, name="node"))
    nodes.attrs = _attributes(graph)
    source, target = graph.edge_index.numpy() if "edge_index" in graph else np.zeros((2, 0), np.int64)
    ends = {"source": np.array(names, dtype=object)[source], "target": np.array(names, dtype=object)[target]}
    return nodes, pandas.DataFrame(ends | columns["edge"])


def _tensors(graph: ProteinGraph) -> dict[str, Tensor]:
    return {key: value for key, value in graph.items() if isinstance(value, Tensor)}


def _attributes(graph: ProteinGraph) -> dict[str, Any]:
    """Return the attributes of the protein: plain attributes, and fields per protein as arrays under "protein"."""
    attributes: dict[str, Any] = {}
    per_protein = {}
    for key, value in graph.items():
        if isinstance(value, Tensor):
            if graph.level(key) not in ("node", "edge"):
                per_protein[key] = value.numpy()
        elif isinstance(value, LossCounts):
            attributes[key] = value.to_dict()
        elif key not in ("residue_ids", "degree"):
            attributes[key] = value
    attributes["protein"] = per_protein
    return attributes


def _rows_of_level(graph: ProteinGraph, level: str, number: int) -> list[dict[str, Any]]:
    """Return the fields of each row, numbers or arrays, without ``edge_index``."""
    rows: list[dict[str, Any]] = [{} for _ in range(number)]
    for key, values in _tensors(graph).items():
        if graph.level(key) == level and key != "edge_index":
            numbers = values.tolist() if values.dim() == 1 else list(values.numpy())
            for row, value in zip(rows, numbers, strict=True):
                row[key] = value
    return rows


def _flat(key: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of a field: itself, or ``key[0]``, ``key[1,2]``, …."""
    if value.ndim == 1:
        return {key: value}
    columns = {}
    for index in np.ndindex(value.shape[1:]):
        name = ",".join(map(str, index))
        columns[f"{key}[{name}]"] = value[(slice(None), *index)]
    return columns


def _joined(graph: ProteinGraph, fields: Sequence[str]) -> Tensor:
    """Concatenate fields to one floating-point tensor, ``(M, C)``."""
    dtype = graph.pos.dtype if "pos" in graph else torch.get_default_dtype()
    columns = []
    for name in fields:
        value = graph[name]
        flat = value.unsqueeze(1) if value.dim() == 1 else value.flatten(1)
        columns.append(flat.to(dtype))
    return torch.cat(columns, 1)


def _is_copy(value: Tensor, joined: Tensor) -> bool:
    """Return True if two tensors are equal, also where they are NaN."""
    return value.dtype == joined.dtype and torch.equal(value.nan_to_num(), joined.nan_to_num())


def _sort_edges(graph: ProteinGraph) -> None:
    """Sort edges by target, those of a target in their order; labels ``y`` of edges too."""
    index = graph.get("edge_index")
    if not isinstance(index, Tensor) or index.dim() != 2:
        return
    target = index[-1]
    is_sorted = bool((target[1:] >= target[:-1]).all())
    if is_sorted:
        return
    edge_fields = [key for key in _tensors(graph) if key != "edge_index" and graph.is_edge_attr(key)]
    has_unknown_level = isinstance(graph.get("y"), Tensor) and "y_level" not in graph
    if has_unknown_level and len(graph.y) == len(target):
        if len(graph.y) == graph.num_nodes:
            raise FieldError(
                f"from_pyg: y has {len(graph.y)} rows, as many as there are nodes and edges, and the edges have to be "
                "sorted. Set data.y_level to 'node' or 'edge'."
            )
        edge_fields.append("y")
    order = target.argsort(stable=True)
    graph.edge_index = index[:, order]
    for key in edge_fields:
        graph[key] = graph[key][order]
