"""Write a scene as one HTML page with plotly.js inside, so that it works offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from protgraph.errors import MissingExtraError
from protgraph.file_io import write_text_file
from protgraph.visualization.scene import EdgeSet, Scene

__all__ = ["scene_page", "write_page"]

# Residues: Okabe & Ito 2008, "Color universal design". Edges: the muted scheme of Tol 2021, SRON/EPS/TN/09-002.
_RESIDUE_PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_EDGE_PALETTE = ("#CC6677", "#332288", "#999933", "#882255", "#44AA99", "#AA4499")
_EYE = {"x": 0.95, "y": 0.95, "z": 0.55}  # closer than the default of plotly, (1.25, 1.25, 1.25)
_WIDTHS = 4  # number of line widths: a plotly trace has one each
_THINNEST, _THICKEST = 1.0, 6.0


def write_page(scene: Scene, path: str | Path) -> Path:
    """Write the page: backbones, residues, and edges of each kind; the legend hides and shows each.

    An existing file is replaced.

    Raises
    ------
    MissingExtraError
        plotly is not installed.
    """
    path = Path(path)
    write_text_file(path, scene_page(scene))
    return path


def scene_page(scene: Scene, *, height: str = "92vh") -> str:
    """Return the page as HTML text; ``height`` is that of the figure in units of CSS.

    Raises
    ------
    MissingExtraError
        plotly is not installed.
    """
    go = _plotly()
    figure = go.Figure([*_backbones(scene, go), *_edges(scene, go), *_nodes(scene, go)])
    blank = {"visible": False, "showspikes": False}
    space = {"xaxis": blank, "yaxis": blank, "zaxis": blank, "aspectmode": "data", "camera": {"eye": _EYE}}
    figure.update_layout(
        title={"text": f"{scene.residues.name}, {len(scene.residues)} residues, colored by {scene.color.name}"},
        scene=space,
        legend={"x": 0, "y": 1, "itemsizing": "constant"},
        margin={"l": 0, "r": 0, "t": 40, "b": 0},
        hoverlabel={"align": "left"},
    )
    config = {"displaylogo": False, "showSendToCloud": False, "plotlyServerURL": "", "responsive": True}
    return figure.to_html(
        include_plotlyjs=True, include_mathjax=False, full_html=True, config=config, default_height=height
    )


def _plotly() -> Any:
    try:
        import plotly.graph_objects
    except ImportError as e:
        raise MissingExtraError(
            'HTML pages require plotly, which is not installed. Run: pip install "protgraph-pyg[view]"'
        ) from e
    return plotly.graph_objects


def _line(go: Any, xyz: np.ndarray, **options: Any) -> Any:
    """Return a line through ``(M, 3)`` points, interrupted at NaN."""
    x, y, z = (np.where(np.isnan(column), None, column.round(3)).tolist() for column in xyz.T)
    return go.Scatter3d(x=x, y=y, z=z, mode="lines", hoverinfo="skip", **options)


def _backbones(scene: Scene, go: Any) -> list[Any]:
    return [
        _line(go, xyz, name=f"chain {name or 'blank'}", line={"color": "#999999", "width": 5})
        for name, xyz in scene.traces.items()
    ]


def _nodes(scene: Scene, go: Any) -> list[Any]:
    """Return one set of markers, or one per category."""
    color, pos, texts = scene.color, scene.residues.pos, np.array(scene.texts, dtype=object)
    has_value = ~np.isnan(color.values)
    groups = [(f"{color.name}: none", np.flatnonzero(~has_value), {"color": "#cccccc"})]
    if color.labels:
        rows = [(label, np.flatnonzero(color.values == i)) for i, label in enumerate(color.labels)]
        groups += [
            (f"{color.name} {label}", members, {"color": _RESIDUE_PALETTE[i % len(_RESIDUE_PALETTE)]})
            for i, (label, members) in enumerate(rows)
        ]
    else:
        bar = {"title": {"text": f"{color.name} {f'({color.unit})' if color.unit else ''}".rstrip()}}
        shade = {"color": color.values[has_value].tolist(), "colorscale": "Viridis", "colorbar": bar, "showscale": True}
        groups.append((color.name, np.flatnonzero(has_value), shade))
    return [
        go.Scatter3d(
            **dict(zip("xyz", pos[rows].T.astype(float).round(3).tolist(), strict=True)),
            mode="markers",
            name=name,
            text=texts[rows].tolist(),
            hoverinfo="text",
            marker={"size": 5, "line": {"width": 0.5, "color": "#333333"}, **marker},
        )
        for name, rows, marker in groups
        if len(rows)
    ]


def _edges(scene: Scene, go: Any) -> list[Any]:
    """Return one line per edge kind and width; a kind is one item of the legend."""
    traces = []
    for i, edges in enumerate(scene.edges):
        color = _EDGE_PALETTE[i % len(_EDGE_PALETTE)]
        steps = _steps(edges)
        for step in sorted(set(steps.tolist())) or [0]:
            pairs = edges.pairs[steps == step]
            width = _THINNEST + (_THICKEST - _THINNEST) * step / _WIDTHS if (edges.width < 1).any() else 2.0
            ends = scene.residues.pos[pairs].astype(float)  # (P, 2, 3)
            xyz = np.concatenate([ends, np.full((len(pairs), 1, 3), np.nan)], axis=1).reshape(-1, 3)
            first = not any(t.legendgroup == edges.name for t in traces)
            traces.append(
                _line(go, xyz, name=f"{edges.name} ({len(edges.pairs)})", legendgroup=edges.name, showlegend=first,
                      line={"color": color, "width": width}, opacity=0.5)
            )  # fmt: skip
    return traces


def _steps(edges: EdgeSet) -> np.ndarray:
    """Return the ``(P,)`` int64 index of each edge's line width, from 1."""
    return np.ceil(edges.width * _WIDTHS).astype(np.int64)
