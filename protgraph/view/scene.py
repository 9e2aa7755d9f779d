"""What a picture of a protein shows: a value a residue as color, edges by kind, and a text a residue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from protgraph import registry
from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.featurize.base import EdgeFeaturizer
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import ComponentSpec
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues.chain_breaks import linked_to_next

__all__ = ["Color", "EdgeSet", "Scene", "color_of", "edge_set", "is_color", "make_scene"]

_PLAIN = ("chain", "residue", "seq_pos", "b_factor")  # what every protein has, without a featurizer


@dataclass(frozen=True, eq=False)
class Color:
    """One value a residue.

    Parameters
    ----------
    name : str
        What it is.
    values : ndarray
        ``(N,)`` float; NaN where there is none. Of categories, the place in ``labels``.
    labels : tuple of str
        Names of categories; empty for numbers.
    unit : str
        Of numbers.
    """

    name: str
    values: np.ndarray
    labels: tuple[str, ...] = ()
    unit: str = ""

    def text(self, i: int) -> str:
        """The value of residue i, to read."""
        value = self.values[i]
        if np.isnan(value):
            return f"{self.name}: none"
        said = self.labels[int(value)] if self.labels else f"{value:.4g} {self.unit}".rstrip()
        return f"{self.name}: {said}"


@dataclass(frozen=True, eq=False)
class EdgeSet:
    """Edges of one kind, each pair once.

    Parameters
    ----------
    name : str
        The kind.
    pairs : ndarray
        ``(P, 2)`` int64, i < j.
    width : ndarray
        ``(P,)`` float in (0, 1], how thick each is drawn.
    """

    name: str
    pairs: np.ndarray
    width: np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """A protein to look at.

    Parameters
    ----------
    residues : Residues
    color : Color
        What the nodes are colored by.
    shown : tuple of Color
        Further values, in words where one hovers.
    edges : tuple of EdgeSet
    """

    residues: Residues
    color: Color
    shown: tuple[Color, ...] = ()
    edges: tuple[EdgeSet, ...] = ()

    @property
    def traces(self) -> dict[str, np.ndarray]:
        """CA positions ``(M, 3)`` of each chain in order, Å, with a row of NaN at every break."""
        return _traces(self.residues)

    @property
    def texts(self) -> list[str]:
        """For each residue its name, "A:GLY:42", and its values, one a line."""
        r = self.residues
        names = zip(r.chain.tolist(), r.res_name.tolist(), r.res_id.tolist(), r.ins_code.tolist(), strict=True)
        colors = (self.color, *self.shown)
        return [
            "<br>".join([f"<b>{chain}:{kind}:{number}{ins}</b>", *(c.text(i) for c in colors)])
            for i, (chain, kind, number, ins) in enumerate(names)
        ]


def make_scene(
    residues: Residues, *, edges: Sequence[ComponentSpec] = (), color: Color | str = "chain", shown: Sequence[Color] = ()
) -> Scene:
    """A scene with the edges that featurizers find.

    Parameters
    ----------
    residues : Residues
    edges : sequence of ComponentSpec
        Edge featurizers.
    color : Color or str
        As :func:`color_of` takes it.
    shown : sequence of Color
        Further values to show.

    Raises
    ------
    MissingCoordinatesError
        The protein is only a sequence.
    OptionError
        A featurizer finds no edges.
    """
    if not residues.has_coordinates:
        raise MissingCoordinatesError(f"{residues.name!r} is only a sequence; there is nothing to see")
    found = tuple(_edge_set(residues, n) for n in edges)
    return Scene(residues, color if isinstance(color, Color) else color_of(residues, color, edges), tuple(shown), found)


def color_of(residues: Residues, name: str, edges: Sequence[ComponentSpec] = ()) -> Color:
    """Values by name: "chain", "residue", "seq_pos", "b_factor", or what a featurizer makes a node.

    Parameters
    ----------
    residues : Residues
    name : str
        A featurizer ("sasa", "dssp") or a field that one writes; of several columns one is chosen by number:
        "dihedral:4". One-hot columns are read as categories.
    edges : sequence of ComponentSpec
        Edge featurizers, for those that ask about the graph.

    Raises
    ------
    OptionError
        There is no such name, or no one column is meant.
    """
    if name in _PLAIN:
        return _plain(residues, name)
    featurizer, _, column = name.partition(":")
    plan = FeaturePlan([*(edges or [ComponentSpec("knn")]), ComponentSpec(featurizer)])
    written = [f for f, spec in plan.fields.items() if spec.level == "node" and f in _written(plan, featurizer)]
    if not written:
        raise OptionError(f"{featurizer!r} gives nodes no value to color them by; 'protgraph list featurizers'")
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
            f"{name!r} has {value.shape[1]} values a residue ({spec.doc}); choose one: {featurizer}:0 to "
            f"{featurizer}:{value.shape[1] - 1}"
        )
    unit = "" if spec.unit == "dimensionless" else spec.unit
    return Color(name, value[:, int(column or 0)], unit=unit)


def is_color(name: str) -> bool:
    """Whether :func:`color_of` knows the name."""
    return name in _PLAIN or name.partition(":")[0] in registry.featurizers


def _plain(residues: Residues, name: str) -> Color:
    if name == "chain":
        return Color(name, residues.chain_number.astype(float), tuple(c or "blank" for c in residues.chain_names))
    if name == "residue":
        return Color(name, residues.aatype.astype(float), tuple(ALPHABET))
    return Color(name, getattr(residues, name).astype(float), unit="Å²" if name == "b_factor" else "")


def _written(plan: FeaturePlan, name: str) -> set[str]:
    return {
        n.writes.get(local, local)
        for n, featurizer in (*plan.structure, *plan.tensor)
        if n.name == name
        for local in featurizer.out
    }


def _is_one_hot(value: np.ndarray) -> bool:
    return bool(np.isin(value, (0, 1)).all() and (value.sum(1) == 1).all())


def _edge_set(residues: Residues, n: ComponentSpec) -> EdgeSet:
    featurizer = registry.featurizers.create(n.name, path=n.name, options=n.options)
    if not isinstance(featurizer, EdgeFeaturizer):
        kinds = ", ".join(k for k in registry.featurizers if _finds_edges(k))
        raise OptionError(f"{n.name!r} finds no edges; these do: {kinds}")
    found = featurizer(residues)
    return edge_set(n.name, np.stack([found.source, found.target], 1))


def _finds_edges(name: str) -> bool:
    found = registry.featurizers.get(name)
    return isinstance(found, type) and issubclass(found, EdgeFeaturizer)


def edge_set(name: str, pairs: np.ndarray, width: np.ndarray | None = None) -> EdgeSet:
    """Directed edges ``(E, 2)`` with a width each as pairs, the wider of both directions."""
    width = np.ones(len(pairs)) if width is None else width
    low, high = np.sort(pairs, axis=1).T if len(pairs) else np.zeros((2, 0), np.int64)
    apart = low != high
    order = np.lexsort((-width[apart], high[apart], low[apart]))
    unique, first = np.unique(np.stack([low, high], 1)[apart][order], axis=0, return_index=True)
    return EdgeSet(name, unique.reshape(-1, 2), width[apart][order][first])


def _traces(residues: Residues) -> dict[str, np.ndarray]:
    linked = linked_to_next(residues)
    traces = {}
    for name in residues.chain_names:
        rows = np.flatnonzero(residues.chain == name)
        breaks = np.flatnonzero(~linked[rows[:-1]]) + 1
        traces[name] = np.insert(residues.pos[rows].astype(float), breaks, np.nan, axis=0)
    return traces
