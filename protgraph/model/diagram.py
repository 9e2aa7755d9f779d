"""Diagrams of model specifications: components in the order of computation, arrows labeled with fields.

Not graphviz: it needs a system program; the layout here is a dozen lines on networkx and matplotlib (2026-11-22).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from protgraph.model.spec import ModelSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_model"]

Point = tuple[float, float]

# Okabe & Ito 2008, color-blind safe.
_COLORS = {"structure": "#999999", "feature": "#56B4E9", "layer": "#E69F00", "head": "#009E73"}
_DEAD = "#DDDDDD"
_OBJECTS = ("edges", "proteins")


def draw_model(spec: ModelSpec, path: str | Path) -> Path:
    """Draw a model specification to an image file (PNG, SVG or PDF, by suffix).

    A component's row is its longest distance from the structure, so that arrows point down. Solid arrows are labeled
    with their fields; dotted arrows carry the reduction objects (edges, proteins). Layers without effect are gray.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dag = spec.dag()
    place = _layout(dag)
    xs, ys = zip(*place.values(), strict=True)
    width, height = max(xs) - min(xs) + 2.6, max(ys) - min(ys) + 1.2
    figure = Figure(figsize=(max(4.5, 1.5 * width), 0.72 * height + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(spec.name)
    axes.set_xlim(min(xs) - 1.3, max(xs) + 1.3)
    axes.set_ylim(min(ys) - 0.6, max(ys) + 0.6)
    dead = {n.split(" ")[0] for n in spec.dead_layers()}
    for a, b, data in dag.edges(data=True):
        _arrow(axes, place[a], place[b], data["fields"])
    for n, data in dag.nodes(data=True):
        color = _DEAD if n in dead else _COLORS[data["kind"]]
        box = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": "none"}
        axes.text(*place[n], data["name"], ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path


def _layout(dag: nx.DiGraph) -> dict[str, Point]:
    """Place rows by topological generation, and components of a row by the mean place of what they read."""
    place: dict[str, Point] = {}
    for y, generation in enumerate(nx.topological_generations(dag)):

        def above(n: str) -> tuple[float, int]:
            near = [place[p][0] for p in dag.predecessors(n) if place[p][1] == 1 - y] or [0.0]  # noqa: B023
            return sum(near) / len(near), dag.nodes[n]["step"]

        ordered = sorted(generation, key=above)
        for i, n in enumerate(ordered):
            place[n] = (1.7 * (i - (len(ordered) - 1) / 2), -float(y))
    return place


def _arrow(axes: Axes, a: Point, b: Point, fields: tuple[str, ...]) -> None:
    """Draw an arrow, bent outwards if it passes rows, with its label."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    rows = a[1] - b[1]
    side = 1.0 if a[0] + b[0] >= 0 else -1.0
    bow = 0.0 if rows <= 1 else side * (0.9 + 0.35 * rows**0.5)
    control = ((a[0] + b[0]) / 2 + bow, (a[1] + b[1]) / 2)
    named = [name for name in fields if name not in _OBJECTS]
    axes.add_patch(
        FancyArrowPatch(
            path=Curve([a, control, b], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]),
            arrowstyle="-|>",
            mutation_scale=9,
            color="#666666" if named else "#AAAAAA",
            linestyle="-" if named else ":",
            linewidth=0.9,
            shrinkA=11,
            shrinkB=11,
            zorder=1,
        )
    )
    if named:
        t = 0.5 if rows <= 1 else 0.4  # a place on the quadratic Bézier curve
        at = [(1 - t) ** 2 * a[i] + 2 * t * (1 - t) * control[i] + t**2 * b[i] for i in (0, 1)]
        patch = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        axes.text(*at, "\n".join(named), fontsize=6.5, color="#333333", ha="center", va="center", bbox=patch, zorder=2)
