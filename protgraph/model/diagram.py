"""Diagrams of model specifications: components in the order of computation, arrows labeled with fields.

Not graphviz: it needs a system program; the layout here is a dozen lines on networkx and matplotlib (2026-11-22).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from protgraph.file_io import atomic_write
from protgraph.model.spec import ModelSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

__all__ = ["draw_model"]

Point = tuple[float, float]

# Okabe & Ito 2008, color-blind safe.
_COLORS = {"structure": "#999999", "feature": "#56B4E9", "layer": "#E69F00", "head": "#009E73"}
_DEAD = "#DDDDDD"
_OBJECTS = ("edges", "proteins")
_COLUMN, _ROW = 2.4, 0.85  # inches between components
# Places of a label along its arrow, from 0 to 1, in order of preference.
_LABEL_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)


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
    left, right, bottom, top = min(xs) - 1.2, max(xs) + 1.2, min(ys) - 0.4, max(ys) + 0.8
    figure = Figure(figsize=(right - left, top - bottom), dpi=130)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, right), ylim=(bottom, top))  # in inches
    axes.set_axis_off()
    axes.text((left + right) / 2, top - 0.2, spec.name, ha="center", va="center", fontsize=12)
    dead = {n.split(" ")[0] for n in spec.dead_layers()}
    boxes = {}
    for n, data in dag.nodes(data=True):
        color = _DEAD if n in dead else _COLORS[data["kind"]]
        box = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": "none"}
        boxes[n] = axes.text(*place[n], data["name"], ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    figure.draw_without_rendering()  # sets the sizes of the boxes, at which arrows end
    taken = [box.get_bbox_patch().get_window_extent() for box in boxes.values()]
    for a, b, data in dag.edges(data=True):
        control, fields = _control(place[a], place[b]), [name for name in data["fields"] if name not in _OBJECTS]
        _arrow(axes, boxes[a], boxes[b], control, is_labeled=bool(fields))
        if fields:
            taken.append(_label(axes, (place[a], control, place[b]), "\n".join(fields), taken))
    path = Path(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."))
    return path


def _layout(dag: nx.DiGraph) -> dict[str, Point]:
    """Place rows by topological generation, and components of a row by the mean place of what they read, in inches."""
    place: dict[str, Point] = {}
    row: dict[str, int] = {}
    for y, generation in enumerate(nx.topological_generations(dag)):

        def above(n: str) -> tuple[float, int]:
            near = [place[p][0] for p in dag.predecessors(n) if row[p] == y - 1] or [0.0]  # noqa: B023
            return sum(near) / len(near), dag.nodes[n]["step"]

        ordered = sorted(generation, key=above)
        for i, n in enumerate(ordered):
            place[n], row[n] = (_COLUMN * (i - (len(ordered) - 1) / 2), -_ROW * y), y
    return place


def _control(a: Point, b: Point) -> Point:
    """Return the control point of the arrow a → b, a quadratic Bézier curve, bent outwards if it passes rows."""
    rows = round((a[1] - b[1]) / _ROW)
    bend = 0.0 if rows <= 1 else 1.35 + 0.5 * rows**0.5
    return (a[0] + b[0]) / 2 + math.copysign(bend, a[0] + b[0]), (a[1] + b[1]) / 2


def _arrow(axes: Axes, a: Text, b: Text, control: Point, *, is_labeled: bool) -> None:
    """Draw an arrow between the boxes of two components."""
    from matplotlib.patches import FancyArrowPatch

    ends = a.get_position(), b.get_position()
    angles = [math.degrees(math.atan2(control[1] - y, control[0] - x)) for x, y in ends]
    is_straight = abs(math.sin(math.radians(angles[0] - angles[1]))) < 1e-6
    style = "arc3" if is_straight else f"angle3,angleA={angles[0]},angleB={angles[1]}"
    axes.add_patch(
        FancyArrowPatch(
            *ends,
            patchA=a.get_bbox_patch(),
            patchB=b.get_bbox_patch(),
            connectionstyle=style,
            arrowstyle="-|>",
            mutation_scale=9,
            color="#666666" if is_labeled else "#AAAAAA",
            linestyle="-" if is_labeled else ":",
            linewidth=0.9,
            shrinkA=0,
            shrinkB=0,
            zorder=1,
        )
    )


def _label(axes: Axes, curve: tuple[Point, Point, Point], fields: str, taken: Sequence[Bbox]) -> Bbox:
    """Label an arrow where the text covers fewest components and labels; return the area of the text."""
    patch = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    text = axes.text(0, 0, fields, fontsize=6.5, color="#333333", ha="center", va="center", bbox=patch, zorder=2)

    def covered(t: float) -> int:
        """Move the text to the place t on the arrow and count what it covers."""
        x, y = ((1 - t) ** 2 * a + 2 * t * (1 - t) * c + t**2 * b for a, c, b in zip(*curve, strict=True))
        text.set_position((x, y))
        return sum(text.get_window_extent().overlaps(other) for other in taken)

    covered(min(_LABEL_PLACES, key=covered))
    return text.get_window_extent()
