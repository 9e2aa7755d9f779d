"""Scene of a protein: one value per residue as color, edges by kind, and a text per residue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from protgraph import registry
from protgraph.errors import MissingCoordinatesError, OptionError, suggest
from protgraph.featurize.base import EdgeFeaturizer
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import ComponentSpec
from protgraph.structure import ALPHABET, Residues

__all__ = ["PLAIN_COLORS", "Color", "EdgeSet", "Scene", "color_of", "edge_set", "is_color", "make_scene"]

#: Values that need no featurizer.
PLAIN_COLORS = ("chain", "residue", "seq_pos", "b_factor")


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
    """

    residues: Residues
    color: Color
    shown: tuple[Color, ...] = ()
    edges: tuple[EdgeSet, ...] = ()
    beside: str | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kinds = "".join(f", {len(e.pairs)} {e.name}" for e in self.edges)
        name, count = self.residues.name, len(self.residues)
        return f"Scene({name!r}, {count} residues{kinds}, colored by {self.color.name})"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        from html import escape

        from protgraph.visualization.page import scene_page

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
        return _plain(residues, name)
    featurizer, _, column = name.partition(":")
    if featurizer not in registry.featurizers:
        hint = suggest(featurizer, [*PLAIN_COLORS, *registry.featurizers])
        raise OptionError(
            f"color {name!r} not found.{hint} Allowed: {', '.join(PLAIN_COLORS)}, or a featurizer ('protgraph list "
            "featurizers'); predicted columns require a trained model (--prediction)."
        )
    plan = FeaturePlan([*(edges or [ComponentSpec("knn")]), ComponentSpec(featurizer)])
    written = [f for f, spec in plan.fields.items() if spec.level == "node" and f in _written(plan, featurizer)]
    if not written:
        raise OptionError(
            f"color {name!r}: featurizer {featurizer!r} writes no node field. Allowed: node featurizers, see "
            "'protgraph list featurizers'."
        )
    graph = plan.featurize(plan.precompute(residues))
    key = featurizer if featurizer in written else written[0]
    spec, value = plan.fields[key], graph[key].to(torch.float64).reshape(len(residues), -1).numpy()
    if spec.classes is not None:
        letters = getattr(next(f for n, f in plan.structure if n.name == featurizer), "letters", None)
        labels = map(str, range(spec.classes) if letters is None else letters)
        return Color(key, value[:, 0], tuple(labels))
    if not column and value.shape[1] > 1 and _is_one_hot(value):
        labels = ALPHABET if value.shape[1] == len(ALPHABET) else map(str, range(value.shape[1]))
        return Color(key, value.argmax(1).astype(float), tuple(labels))
    if value.shape[1] > 1 and not (column.isdigit() and int(column) < value.shape[1]):
        raise OptionError(
            f"color {name!r}: {value.shape[1]} values per residue ({spec.doc}). Select one: {featurizer}:0 to "
            f"{featurizer}:{value.shape[1] - 1}."
        )
    if key == "plddt":  # pLDDT / 100, 0 for structures that are no predictions
        plddt = np.where(residues.predicted, residues.b_factor, np.nan).astype(float)
        return Color(name, plddt, unit="pLDDT", is_plddt=True)
    unit = "" if spec.unit == "dimensionless" else spec.unit
    return Color(name, value[:, int(column or 0)], unit=unit)


def is_color(name: str) -> bool:
    """Return True if :func:`color_of` accepts the name."""
    return name in PLAIN_COLORS or name.partition(":")[0] in registry.featurizers


def _plain(residues: Residues, name: str) -> Color:
    if name == "chain":
        return Color(name, residues.chain_number.astype(float), tuple(c or "blank" for c in residues.chain_names))
    if name == "residue":
        return Color(name, residues.aatype.astype(float), tuple(ALPHABET))
    values = getattr(residues, name).astype(float)
    if name == "b_factor" and residues.predicted:
        return Color(name, values, unit="pLDDT", is_plddt=True)
    return Color(name, values, unit="Å²" if name == "b_factor" else "")


def _written(plan: FeaturePlan, name: str) -> set[str]:
    return {
        n.writes.get(local, local)
        for n, featurizer in (*plan.structure, *plan.tensor)
        if n.name == name
        for local in featurizer.out
    }


def _is_one_hot(value: np.ndarray) -> bool:
    return bool(np.isin(value, (0, 1)).all() and (value.sum(1) == 1).all())


def _edge_set(residues: Residues, component: ComponentSpec) -> EdgeSet:
    featurizer = registry.featurizers.create(component.name, path=component.name, options=component.options)
    if not isinstance(featurizer, EdgeFeaturizer):
        names = ", ".join(name for name in registry.featurizers if _makes_edges(name))
        raise OptionError(f"edges {component.name!r}: not an edge featurizer. Allowed: {names}.")
    edges = featurizer(residues)
    return edge_set(component.name, np.stack([edges.source, edges.target], 1))


def _makes_edges(name: str) -> bool:
    featurizer = registry.featurizers.get(name)
    return isinstance(featurizer, type) and issubclass(featurizer, EdgeFeaturizer)


def edge_set(name: str, pairs: np.ndarray, width: np.ndarray | None = None) -> EdgeSet:
    """Convert directed edges ``(E, 2)`` to pairs, with the larger width of both directions."""
    width = np.ones(len(pairs)) if width is None else width
    low, high = np.sort(pairs, axis=1).T if len(pairs) else np.zeros((2, 0), np.int64)
    apart = low != high
    order = np.lexsort((-width[apart], high[apart], low[apart]))
    unique, first = np.unique(np.stack([low, high], 1)[apart][order], axis=0, return_index=True)
    return EdgeSet(name, unique.reshape(-1, 2), width[apart][order][first])
