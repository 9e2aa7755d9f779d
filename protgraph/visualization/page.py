"""Write a scene as one HTML page with the viewer Mol* inside, so that it works offline."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.errors import OptionError
from protgraph.file_io import write_text_file
from protgraph.structure import ALPHABET
from protgraph.visualization.molstar import molstar_script, pack_base64
from protgraph.visualization.palette import EDGE_COLORS, color_codes, scale_of
from protgraph.visualization.scene import Color, EdgeSet, Scene
from protgraph.visualization.scene_cif import scene_cif
from protgraph.wording import count_noun

__all__ = ["limit_scene", "scene_page", "write_page"]

#: Largest numbers of edges of a kind and of atoms that a browser draws in seconds; residues are cells of the sequence.
_MAX_EDGES = 20_000
_MAX_ATOMS = 100_000
_MAX_RESIDUES = 25_000

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
    OptionError
        The protein has more residues than a browser draws.
    """
    path = Path(path)
    write_text_file(path, scene_page(scene))
    return path


def scene_page(scene: Scene) -> str:
    """Return the page as HTML text.

    Raises
    ------
    MissingExtraError
        molstar-cli is not installed.
    OptionError
        The protein has more residues than a browser draws.
    """
    scene = limit_scene(scene)
    residues = scene.residues
    chains = ", ".join(name or "blank" for name in residues.chain_names)
    summary = (
        f"{count_noun(len(residues), 'residue')}; chains {chains}"
        if len(residues.chain_names) > 1
        else _one_chain(scene)
    )
    data = json.dumps(scene_data(scene), separators=(",", ":"), ensure_ascii=False)
    return _PAGE.format(
        title=escape(f"{residues.name}, colored by {scene.color.name}"),
        name=escape(residues.name),
        summary=escape(summary),
        notes="".join(f'<p class="note">{escape(note)}</p>\n' for note in scene.notes),
        style=_file("page.css"),
        molstar=molstar_script(),
        scene=pack_base64(data.encode()),
        script=_file("page_panel.js") + _file("page_controls.js"),
    )


def limit_scene(scene: Scene) -> Scene:
    """Return what of a scene a browser draws in seconds, with a note on each part that is left out.

    Of a kind with too many edges, the widest remain, and among equal ones those at regular intervals; of a protein with
    too many atoms, N, CA, C and O.

    Raises
    ------
    OptionError
        The protein has too many residues.
    """
    residues, notes = scene.residues, list(scene.notes)
    if len(residues) > _MAX_RESIDUES:
        raise OptionError(
            f"page of {residues.name}: {len(residues):,} residues. Allowed: {_MAX_RESIDUES:,}. Select chains "
            "(--chain, chains=), or write a script for PyMOL or ChimeraX (--format)."
        )
    if len(residues.atom_name) > _MAX_ATOMS:
        backbone = np.isin(residues.atom_name, ("N", "CA", "C", "O"))
        notes.append(f"side chains are left out: {len(residues.atom_name):,} atoms, at most {_MAX_ATOMS:,} are drawn")
        fields = ("atom_pos", "atom_name", "atom_element", "atom_residue")
        residues = replace(residues, **{field: getattr(residues, field)[backbone] for field in fields})
    edges = []
    for kind in scene.edges:
        count = len(kind.pairs)
        if count > _MAX_EDGES:
            notes.append(
                f"{kind.name}: {_MAX_EDGES:,} of {count:,} edges are drawn, the widest and of equal ones a part"
            )
            # of equal edges, neighbors in the list are far apart in this order
            spread = np.arange(count) * _MAX_EDGES % count
            keep = np.sort(np.lexsort((spread, -kind.width))[:_MAX_EDGES])
            kind = EdgeSet(kind.name, kind.pairs[keep], kind.width[keep])
        edges.append(kind)
    return replace(scene, residues=residues, edges=tuple(edges), notes=tuple(notes))


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
    return count_noun(len(scene.residues), "residue") + (f"; chain {chain}" if chain else "")


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
