"""Scene of a protein graph: its residues as far as the graph has them, its node fields as colors, its edges by kind."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from protgraph.data import ProteinGraph
from protgraph.data.graph.fields import field, is_registered
from protgraph.errors import MissingCoordinatesError, OptionError, suggest
from protgraph.structure import THREE_LETTER, LossReport, Residues
from protgraph.visualization.scene import PLAIN_COLORS, Color, EdgeSet, color_of, edge_set

__all__ = ["field_color", "graph_edges", "graph_residues"]

_ELEMENTS = np.array(["N", "C", "C", "O"])
_NAMES = np.array(["N", "CA", "C", "O"])


def graph_residues(graph: ProteinGraph) -> Residues:
    """Return the residues of a graph, with the atoms N, CA, C and O.

    Parameters
    ----------
    graph : ProteinGraph
        Graph with a node per residue.

    Raises
    ------
    OptionError
        Nodes are atoms.
    MissingCoordinatesError
        The graph has no coordinates.
    """
    if "atom_type" in graph:
        raise OptionError(
            "nodes of the graph are atoms. Allowed: a graph of residues (node_type='residue'), a structure."
        )
    name = graph.name if "name" in graph else "graph"
    pos = graph.pos.detach().cpu().float().numpy()
    if np.isnan(pos).all():
        raise MissingCoordinatesError(f"{name} has no coordinates. A picture requires a structure.")
    split = [text.partition(":") for text in map(str, graph.residue_ids)]
    numbers = [tail.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") for _, _, tail in split]
    codes = [tail[len(number) :] for (_, _, tail), number in zip(split, numbers, strict=True)]
    aatype = graph.aatype.cpu().numpy().astype(np.int64)
    n = len(pos)
    if "backbone" in graph:
        backbone = graph.backbone.detach().cpu().float().numpy()
    else:
        backbone = np.full((n, 4, 3), np.nan, np.float32)
        backbone[:, 1] = pos
    residue, atom = np.nonzero(~np.isnan(backbone[..., 0]))
    has_b = "b_factor" in graph
    return Residues(
        name=name,
        chain=np.array([chain for chain, _, _ in split]),
        res_id=np.array(numbers, np.int64),
        ins_code=np.array(codes),
        res_name=np.array([THREE_LETTER[i] for i in aatype]),
        aatype=aatype,
        pos=pos,
        backbone=backbone,
        b_factor=graph.b_factor[:, 0].cpu().float().numpy() if has_b else np.zeros(n, np.float32),
        seq_pos=graph.seq_pos.cpu().numpy().astype(np.int64) if "seq_pos" in graph else np.arange(n),
        atom_pos=backbone[residue, atom],
        atom_name=_NAMES[atom],
        atom_element=_ELEMENTS[atom],
        atom_residue=residue.astype(np.int64),
        report=LossReport(),
    )


def graph_edges(graph: ProteinGraph) -> tuple[EdgeSet, ...]:
    """Return the edges of a graph by kind: each column of ``edge_kind``, or all as one kind."""
    if "edge_index" not in graph:
        return ()
    pairs = graph.edge_index.T.cpu().numpy()
    if "edge_kind" not in graph:
        return (edge_set("edges", pairs),)
    kinds = graph.edge_kind.cpu().numpy() > 0
    return tuple(edge_set(f"edge_kind {i}", pairs[kinds[:, i]]) for i in range(kinds.shape[1]))


def field_color(graph: ProteinGraph, residues: Residues, name: str) -> Color:
    """Return a node field as color: "sasa", or a column of it, "dihedral:4"; or "chain", "residue", "seq_pos".

    Raises
    ------
    OptionError
        The graph has no such node field, or it has several columns and no number is given.
    """
    if name in PLAIN_COLORS and (name != "b_factor" or name in graph):
        return color_of(residues, name)
    key, _, column = name.partition(":")
    fields = [k for k, v in graph.items() if isinstance(v, Tensor) and is_registered(k) and field(k).level == "node"]
    if key not in fields:
        hint = suggest(key, [*PLAIN_COLORS, *fields])
        raise OptionError(f"color {name!r} not found.{hint} Allowed: {', '.join([*PLAIN_COLORS[:3], *fields])}.")
    values = graph[key].detach().cpu().double().reshape(len(residues), -1).numpy()
    width = values.shape[1]
    if width > 1 and not (column.isdigit() and int(column) < width):
        raise OptionError(f"color {name!r}: {width} values per residue. Select one: {key}:0 to {key}:{width - 1}.")
    unit = field(key).unit
    return Color(name, values[:, int(column or 0)], unit="" if unit == "dimensionless" else unit)
