"""Write a scene as one HTML page with the viewer Mol* inside, so that it works offline."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.file_io import write_text_file
from protgraph.structure import ALPHABET
from protgraph.visualization.molstar import molstar_script, pack_base64
from protgraph.visualization.palette import EDGE_COLORS, color_codes, scale_of
from protgraph.visualization.scene import Color, EdgeSet, Scene
from protgraph.visualization.scene_cif import scene_cif

__all__ = ["scene_page", "write_page"]

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<header><h1>{name}</h1><p>{summary}</p></header>
<form id="controls" aria-label="Display"></form>
<main id="panels"></main>
<p id="status" role="status">Loading the structure …</p>
{notes}<section id="sequence" aria-label="Sequence"></section>
<noscript><p>This page requires JavaScript.</p></noscript>
<script type="text/plain" id="molstar">{molstar}</script>
<script type="text/plain" id="scene">{scene}</script>
<script>
{script}
</script>
</body>
</html>
"""


def write_page(scene: Scene, path: str | Path) -> Path:
    """Write the page: cartoon, sticks, surface, ligands, edges of each kind, colors, and the sequence.

    An existing file is replaced.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    """
    path = Path(path)
    write_text_file(path, scene_page(scene))
    return path


def scene_page(scene: Scene, *, molstar: str | None = None) -> str:
    """Return the page as HTML text.

    Parameters
    ----------
    scene : Scene
    molstar : str, optional
        Text in the place of :func:`molstar_script`, for a page that holds the script once for several scenes.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    """
    residues = scene.residues
    chains = ", ".join(name or "blank" for name in residues.chain_names)
    summary = f"{len(residues)} residues; chains {chains}" if len(residues.chain_names) > 1 else _one_chain(scene)
    data = json.dumps(scene_data(scene), separators=(",", ":"), ensure_ascii=False)
    return _PAGE.format(
        title=escape(f"{residues.name}, colored by {scene.color.name}"),
        name=escape(residues.name),
        summary=escape(summary),
        notes="".join(f'<p class="note">{escape(note)}</p>\n' for note in scene.notes),
        style=_file("page.css"),
        molstar=molstar_script() if molstar is None else molstar,
        scene=pack_base64(data.encode()),
        script=_file("page_panel.js") + _file("page_controls.js"),
    )


def scene_data(scene: Scene) -> dict[str, Any]:
    """Return what the page shows as plain data: the structure, residues, colors, edges."""
    r = scene.residues
    colors = [scene.color, *scene.shown]
    names = [color.name for color in colors]
    return {
        "name": r.name,
        "structure": scene_cif(r),
        "ligands": 0 if r.ligands is None else len(r.ligands),
        "chain": [name or "blank" for name in r.chain.tolist()],
        "number": [f"{number}{ins}" for number, ins in zip(r.res_id.tolist(), r.ins_code.tolist(), strict=True)],
        "type": r.res_name.tolist(),
        "letter": [ALPHABET[i] for i in r.aatype.tolist()],
        "pos": np.round(r.pos.astype(float), 2).tolist(),
        "axes": principal_axes(r.pos).round(4).tolist(),
        "colors": [_color(color) for color in colors],
        "edges": [_edges(edges, i) for i, edges in enumerate(scene.edges)],
        "beside": None if scene.beside is None else names.index(scene.beside),
    }


def principal_axes(pos: np.ndarray) -> np.ndarray:
    """Return the axes of largest to smallest extent of positions ``(N, 3)``, Å, as rows of a rotation ``(3, 3)``.

    Examples
    --------
    >>> principal_axes(np.array([[0.0, 0, 0], [0, 5, 0], [0, 2, 1]])).round(2).tolist()[2]
    [1.0, 0.0, 0.0]
    """
    known = pos[~np.isnan(pos).any(1)].astype(float)
    _, axes = np.linalg.eigh(np.cov(known.T, bias=True) if len(known) > 1 else np.eye(3))
    axes = axes.T[::-1]
    return axes * np.sign(np.linalg.det(axes))


def _one_chain(scene: Scene) -> str:
    chain = scene.residues.chain_names[0]
    return f"{len(scene.residues)} residues" + (f"; chain {chain}" if chain else "")


def _color(color: Color) -> dict[str, Any]:
    scale = scale_of(color)
    legend = {"categories": scale.categories, "stops": scale.stops, "missing": scale.missing}
    ends = [f"{end:.3g}" for end in (scale.low, scale.high)]
    texts = [color.value_text(i) for i in range(len(color.values))]
    return {"name": color.name, "unit": color.unit, "codes": color_codes(color), "texts": texts, "ends": ends, **legend}


def _edges(edges: EdgeSet, i: int) -> dict[str, Any]:
    width = np.round(edges.width, 2).tolist()
    return {
        "name": edges.name,
        "color": EDGE_COLORS[i % len(EDGE_COLORS)],
        "pairs": edges.pairs.tolist(),
        "width": width,
    }


def _file(name: str) -> str:
    return resources.files("protgraph.visualization").joinpath(name).read_text(encoding="utf-8")
