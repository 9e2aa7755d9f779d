"""Scene of a protein or graph: one value per residue as color, edges by kind, and a text per residue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protgraph.data import ProteinGraph, field
from protgraph.data.graph import is_registered
from protgraph.errors import MissingCoordinatesError, OptionError, suggest
from protgraph.featurize import EdgeFeaturizer, FeaturePlan
from protgraph.registry import ComponentSpec, featurizers
from protgraph.structure import ALPHABET, THREE_LETTER, LossReport, Residues

__all__ = [
    "PLAIN_COLORS",
    "Color",
    "EdgeSet",
    "ResidueGroup",
    "Scene",
    "color_of",
    "color_of_field",
    "edge_set",
    "edges_of_graph",
    "is_color",
    "make_scene",
    "residues_of_graph",
]

#: Values that need no featurizer.
PLAIN_COLORS = ("chain", "residue", "seq_pos", "b_factor")
#: Backbone atoms of the residues of a graph, in the order of the field "backbone".
_ATOM_NAMES = np.array(["N", "CA", "C", "O"])
_ELEMENTS = np.array(["N", "C", "C", "O"])
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class Color:
    """One value per residue.

    Parameters
    ----------
    name : str
        Name in the legend.
    values : ndarray
        ``(N,)`` float; NaN for missing values. For categories, the index into ``labels``.
    labels : tuple of str
        Names of the categories; empty for numbers.
    unit : str
        Unit of the numbers.
    limits : tuple of float, optional
        Ends of the color scale; by default those of the values, and 0 and 1 for probabilities.
    is_signed : bool
        Use a diverging color scale, symmetric about 0.
    is_probability : bool
        Use the color scale of probabilities, from 0 (light) to 1 (dark red).
    is_plddt : bool
        Values are pLDDT, 0 to 100: use the four colors of the AlphaFold database.
    """

    name: str
    values: np.ndarray
    labels: tuple[str, ...] = ()
    unit: str = ""
    limits: tuple[float, float] | None = None
    is_signed: bool = False
    is_probability: bool = False
    is_plddt: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """Ends of the color scale of numbers."""
        if self.is_probability:
            return 0.0, 1.0
        if self.limits is not None:
            return self.limits
        known = self.values[~np.isnan(self.values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        limit = max(-low, high)
        return (-limit, limit) if self.is_signed else (low, high)

    def value_text(self, i: int) -> str:
        """Return the value of residue i with its unit, or "none"."""
        value = self.values[i]
        if np.isnan(value):
            return "none"
        return self.labels[int(value)] if self.labels else f"{value:.4g} {self.unit}".rstrip()


@dataclass(frozen=True, eq=False)
class EdgeSet:
    """Undirected edges of one kind.

    Parameters
    ----------
    name : str
        Kind of the edges.
    pairs : ndarray
        ``(P, 2)`` int64, i < j.
    width : ndarray
        ``(P,)`` float in (0, 1], relative line width.
    """

    name: str
    pairs: np.ndarray
    width: np.ndarray


@dataclass(frozen=True, eq=False)
class ResidueGroup:
    """Residues that belong together, e.g. those of a pocket: a row of the page's table, which selects them.

    Parameters
    ----------
    name : str
    rows : ndarray
        ``(M,)`` int64, rows of the residues.
    values : mapping of str to str
        Text by column of the table; all groups of a scene have the same columns.
    """

    name: str
    rows: np.ndarray
    values: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Scene:
    """Protein with the values and edges to show.

    Parameters
    ----------
    residues : Residues
    color : Color
        Values that color the residues.
    shown : tuple of Color
        Further values, shown as text, that the page can select as color.
    edges : tuple of EdgeSet
    beside : str, optional
        Name of the values that color a second picture beside the first one, e.g. labels beside predictions.
    notes : tuple of str
        What the scene lacks, e.g. labels of residues that are absent.
    groups : tuple of ResidueGroup
        Groups of residues, listed in a table.
    """

    residues: Residues
    color: Color
    shown: tuple[Color, ...] = ()
    edges: tuple[EdgeSet, ...] = ()
    beside: str | None = None
    notes: tuple[str, ...] = ()
    groups: tuple[ResidueGroup, ...] = ()

    def __repr__(self) -> str:
        kinds = "".join(f", {len(e.pairs)} {e.name}" for e in self.edges)
        name, count = self.residues.name, len(self.residues)
        return f"Scene({name!r}, {count} residues{kinds}, colored by {self.color.name})"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        from html import escape

        from protgraph_plugins.view.page import scene_page

        page, title = escape(scene_page(self), quote=True), escape(repr(self), quote=True)
        return f'<iframe srcdoc="{page}" title="{title}" width="100%" height="640" style="border: 0"></iframe>'


def make_scene(
    residues: Residues,
    *,
    edges: Sequence[ComponentSpec] = (),
    color: Color | str = "chain",
    shown: Sequence[Color] = (),
) -> Scene:
    """Build a scene with the edges of featurizers.

    Parameters
    ----------
    residues : Residues
    edges : sequence of ComponentSpec
        Edge featurizers.
    color : Color or str
        Values, or a name for :func:`color_of`.
    shown : sequence of Color
        Further values, shown as text.

    Raises
    ------
    MissingCoordinatesError
        The protein has no coordinates.
    OptionError
        A featurizer does not make edges.
    """
    if not residues.has_coordinates:
        raise MissingCoordinatesError(
            f"scene of {residues.name!r}: the protein has no coordinates. Give a structure file instead of a sequence."
        )
    edge_sets = tuple(_edge_set(residues, component) for component in edges)
    color = color if isinstance(color, Color) else color_of(residues, color, edges)
    return Scene(residues, color, tuple(shown), edge_sets)


def color_of(residues: Residues, name: str, edges: Sequence[ComponentSpec] = ()) -> Color:
    """Return values by name: "chain", "residue", "seq_pos", "b_factor", or a node field of a featurizer.

    Parameters
    ----------
    residues : Residues
    name : str
        A featurizer ("sasa", "dssp") or a field that it writes. A number selects one of several columns:
        "dihedral:4". One-hot columns become categories.
    edges : sequence of ComponentSpec
        Edge featurizers, for featurizers that require edges; knn by default.

    Raises
    ------
    OptionError
        The name is unknown, or it has several columns and no number is given.
    """
    if name in PLAIN_COLORS:
        return _plain_color(residues, name)
    featurizer = name.partition(":")[0]
    if featurizer not in featurizers:
        hint = suggest(featurizer, [*PLAIN_COLORS, *featurizers])
        raise OptionError(
            f"color {name!r} not found.{hint} Allowed: {', '.join(PLAIN_COLORS)}, or a featurizer ('protgraph list "
            "featurizers'); predicted columns require a trained model (--prediction)."
        )
    plan = FeaturePlan([*(edges or [ComponentSpec("knn")]), ComponentSpec(featurizer)])
    key = _node_field(plan, name, featurizer)
    spec = plan.fields[key]
    values = _as_table(plan.featurize(plan.precompute(residues))[key])  # (N, C)
    # Classes, and columns of which one is 1, are categories.
    if spec.classes is not None:
        return Color(key, values[:, 0], _class_labels(plan, featurizer, spec.classes))
    if ":" not in name and values.shape[1] > 1 and _is_one_hot(values):
        labels = ALPHABET if values.shape[1] == len(ALPHABET) else range(values.shape[1])
        return Color(key, values.argmax(1).astype(float), tuple(map(str, labels)))
    chosen = _column(name, values, spec.doc)
    if key == "plddt":  # pLDDT / 100, 0 for structures that are no predictions
        plddt = np.where(residues.predicted, residues.b_factor, np.nan).astype(float)
        return Color(name, plddt, unit="pLDDT", is_plddt=True)
    return Color(name, chosen, unit=_unit(spec.unit))


def is_color(name: str) -> bool:
    """Return True if :func:`color_of` accepts the name."""
    return name in PLAIN_COLORS or name.partition(":")[0] in featurizers


def _class_labels(plan: FeaturePlan, featurizer: str, number: int) -> tuple[str, ...]:
    """Return the letters of the classes that a featurizer writes, else their numbers."""
    letters = None
    for component, writer in plan.structure:
        if component.name == featurizer:
            letters = getattr(writer, "letters", None)
    labels = range(number) if letters is None else letters
    return tuple(map(str, labels))


def _plain_color(residues: Residues, name: str) -> Color:
    if name == "chain":
        return Color(name, residues.chain_number.astype(float), tuple(c or "blank" for c in residues.chain_names))
    if name == "residue":
        return Color(name, residues.aatype.astype(float), tuple(ALPHABET))
    values = getattr(residues, name).astype(float)
    if name == "b_factor" and residues.predicted:
        return Color(name, values, unit="pLDDT", is_plddt=True)
    return Color(name, values, unit="Å²" if name == "b_factor" else "")


def _node_field(plan: FeaturePlan, color: str, featurizer: str) -> str:
    """Return the node field of a featurizer with its name, else the first one in the order of the plan."""
    written = set()
    for component, writer in (*plan.structure, *plan.tensor):
        if component.name == featurizer:
            written |= {component.output_field(field) for field in writer.out}
    keys = [key for key, spec in plan.fields.items() if spec.level == "node" and key in written]
    if not keys:
        raise OptionError(
            f"color {color!r}: featurizer {featurizer!r} writes no node field. Allowed: node featurizers, see "
            "'protgraph list featurizers'."
        )
    return featurizer if featurizer in keys else keys[0]


def _as_table(values: Tensor) -> np.ndarray:
    """Return values per node as an array ``(N, C)`` float64."""
    return values.detach().cpu().to(torch.float64).reshape(len(values), -1).numpy()


def _column(name: str, values: np.ndarray, doc: str) -> np.ndarray:
    """Return the only column of values ``(N, C)``, or the one of the number in the name, "dihedral:4"."""
    key, _, number = name.partition(":")
    width = values.shape[1]
    if width == 1 and not number:
        return values[:, 0]
    if not number.isdigit() or int(number) >= width:
        raise OptionError(
            f"color {name!r}: {width} values per residue ({doc}). Select one: {key}:0 to {key}:{width - 1}."
        )
    return values[:, int(number)]


def _unit(unit: str) -> str:
    return "" if unit == "dimensionless" else unit


def _is_one_hot(value: np.ndarray) -> bool:
    return bool(np.isin(value, (0, 1)).all() and (value.sum(1) == 1).all())


def _edge_set(residues: Residues, component: ComponentSpec) -> EdgeSet:
    featurizer = featurizers.create(component.name, path=component.name, options=component.options)
    if not isinstance(featurizer, EdgeFeaturizer):
        names = [name for name in featurizers if _makes_edges(name)]
        raise OptionError(f"edges {component.name!r}: not an edge featurizer. Allowed: {', '.join(names)}.")
    edges = featurizer(residues)
    return edge_set(component.name, np.stack([edges.source, edges.target], 1))


def _makes_edges(name: str) -> bool:
    featurizer = featurizers.get(name)
    return isinstance(featurizer, type) and issubclass(featurizer, EdgeFeaturizer)


def edge_set(name: str, pairs: np.ndarray, width: np.ndarray | None = None) -> EdgeSet:
    """Convert directed edges ``(E, 2)`` to pairs, with the larger width of both directions."""
    width = np.ones(len(pairs)) if width is None else width
    low, high = np.sort(pairs, axis=1).T if len(pairs) else np.zeros((2, 0), np.int64)
    apart = low != high
    order = np.lexsort((-width[apart], high[apart], low[apart]))
    unique, first = np.unique(np.stack([low, high], 1)[apart][order], axis=0, return_index=True)
    return EdgeSet(name, unique.reshape(-1, 2), width[apart][order][first])


# --- scenes of graphs ----------------------------------------------------------------------------------------------


def residues_of_graph(graph: ProteinGraph) -> Residues:
    """Return the residues of a graph with a node per residue, with the atoms N, CA, C and O."""
    if "atom_type" in graph:
        raise OptionError(
            "nodes of the graph are atoms. Allowed: a graph of residues (node_type='residue'), a structure."
        )
    name = graph.name if "name" in graph else "graph"
    pos = graph.pos.detach().cpu().float().numpy()
    if np.isnan(pos).all():
        raise MissingCoordinatesError(f"{name} has no coordinates. A picture requires a structure.")
    n = len(pos)
    backbone = np.full((n, 4, 3), np.nan, np.float32)
    if "backbone" in graph:
        backbone = graph.backbone.detach().cpu().float().numpy()
    else:
        backbone[:, 1] = pos
    chains, numbers, codes = [], [], []
    for residue_id in map(str, graph.residue_ids):
        chain, _, tail = residue_id.partition(":")
        number = tail.rstrip(_LETTERS)
        chains.append(chain)
        numbers.append(int(number))
        codes.append(tail[len(number) :])
    aatype = graph.aatype.cpu().numpy().astype(np.int64)
    residue, atom = np.nonzero(~np.isnan(backbone[..., 0]))
    return Residues(
        name=name,
        chain=np.array(chains),
        res_id=np.array(numbers, np.int64),
        ins_code=np.array(codes),
        res_name=np.array([THREE_LETTER[i] for i in aatype]),
        aatype=aatype,
        pos=pos,
        backbone=backbone,
        b_factor=graph.b_factor[:, 0].cpu().float().numpy() if "b_factor" in graph else np.zeros(n, np.float32),
        seq_pos=graph.seq_pos.cpu().numpy().astype(np.int64) if "seq_pos" in graph else np.arange(n),
        atom_pos=backbone[residue, atom],
        atom_name=_ATOM_NAMES[atom],
        atom_element=_ELEMENTS[atom],
        atom_residue=residue.astype(np.int64),
        report=LossReport(),
    )


def edges_of_graph(graph: ProteinGraph) -> tuple[EdgeSet, ...]:
    """Return the edges of a graph by kind: each column of ``edge_kind``, or all as one kind."""
    if "edge_index" not in graph:
        return ()
    pairs = graph.edge_index.T.cpu().numpy()
    if "edge_kind" not in graph:
        return (edge_set("edges", pairs),)
    kinds = graph.edge_kind.cpu().numpy() > 0
    return tuple(edge_set(f"edge_kind {i}", pairs[kinds[:, i]]) for i in range(kinds.shape[1]))


def color_of_field(graph: ProteinGraph, residues: Residues, name: str) -> Color:
    """Return a node field as color: "sasa", or a column of it, "dihedral:4"; or "chain", "residue", "seq_pos"."""
    if name in PLAIN_COLORS and (name != "b_factor" or name in graph):
        return _plain_color(residues, name)
    key = name.partition(":")[0]
    fields = [k for k, v in graph.items() if isinstance(v, Tensor) and is_registered(k) and field(k).level == "node"]
    if key not in fields:
        hint = suggest(key, [*PLAIN_COLORS, *fields])
        raise OptionError(f"color {name!r} not found.{hint} Allowed: {', '.join([*PLAIN_COLORS[:3], *fields])}.")
    values = _as_table(graph[key])
    return Color(name, _column(name, values, field(key).doc), unit=_unit(field(key).unit))
