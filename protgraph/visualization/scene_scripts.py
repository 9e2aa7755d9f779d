"""Write a scene as a script for PyMOL or ChimeraX: the structure file, a color per residue, edges as lines.

References
----------
PyMOL documentation, commands ``set_color``, ``color`` and compiled graphics objects (CGO); UCSF ChimeraX
documentation, "Command-line target specification", commands ``color`` and ``pbond``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from protgraph.file_io import write_text_file
from protgraph.structure import Residues
from protgraph.structure.io import FileContent
from protgraph.visualization.palette import EDGE_COLORS, NO_VALUE, color_codes, scale_of
from protgraph.visualization.scene import EdgeSet, Scene

__all__ = ["write_scene_chimerax", "write_scene_pymol"]

_RADIUS = 0.12  # Å, of the thickest edge


def write_scene_pymol(scene: Scene, path: str | Path, *, source: FileContent) -> Path:
    """Write a PyMOL script that loads the structure file by its relative path.

    Parameters
    ----------
    scene : Scene
    path : str or Path
        Output file, ``.pml``; an existing one is replaced.
    source : FileContent
        Structure file.
    """
    path = Path(path)
    limit = (
        ["# PyMOL reads BinaryCIF only if it is built with msgpack-c; else use mmCIF."]
        if source.format == "bcif"
        else []
    )
    lines = [
        *_comments(scene),
        *limit,
        "python",
        "import os",
        "from pymol import cmd",
        "from pymol.cgo import CYLINDER",
    ]
    lines.append("folder = os.path.dirname(os.path.abspath(__script__))")
    lines.append(f"cmd.load(os.path.join(folder, {_relative(path, source)!r}))")
    lines += [_cylinders(scene, i, edges) for i, edges in enumerate(scene.edges)]
    lines += ["python end", "as cartoon, polymer", "show sticks, organic", "show spheres, inorganic"]
    lines.append(f"color {_pymol_color(NO_VALUE)}, polymer.protein")
    for code, groups in _groups(scene, _pymol_number):
        chosen = " or ".join(f"(chain '{chain}' and resi {'+'.join(numbers)})" for chain, numbers in groups)
        lines.append(f"color {_pymol_color(code)}, polymer.protein and ({chosen})")
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def write_scene_chimerax(scene: Scene, path: str | Path, *, source: FileContent) -> Path:
    """Write a ChimeraX script; see :func:`write_scene_pymol`.

    Parameters
    ----------
    scene, source
        See :func:`write_scene_pymol`.
    path : str or Path
        Output file, ``.cxc``; an existing one is replaced.
    """
    path = Path(path)
    lines = [*_comments(scene), f'open "{_relative(path, source)}"', "hide protein atoms", "show protein cartoons"]
    lines.append(f"color protein {NO_VALUE}")
    for code, groups in _groups(scene, str):
        chosen = "".join(f"/{chain}:{','.join(numbers)}" for chain, numbers in groups)
        lines.append(f"color {chosen} {code}")
    names = [f"/{chain}:{number}@CA" for chain, number in _ids(scene.residues)]
    for i, edges in enumerate(scene.edges):
        color = EDGE_COLORS[i % len(EDGE_COLORS)]
        lines += [
            f'pbond {names[a]}{names[b]} color {color} radius {_RADIUS * width:.3f} dashes 0 name "{edges.name}"'
            for (a, b), width in zip(edges.pairs.tolist(), edges.width.tolist(), strict=True)
        ]
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def _comments(scene: Scene) -> list[str]:
    color = scene.color
    lines = [f"# {scene.residues.name}, colored by {color.name}"]
    scale = scale_of(color)
    if scale.stops:
        lines.append(f"# {scale.low:.4g} {scale.stops[0]} to {scale.high:.4g} {scale.stops[-1]} {color.unit}".rstrip())
    lines += [f"# {code} {name}: {count} residues" for name, code, count in scale.categories]
    return [*lines, *(f"# {note}" for note in scene.notes)]


def _ids(residues: Residues) -> Iterator[tuple[str, str]]:
    """Yield chain, and number with insertion code, of each residue."""
    codes = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    return ((chain, f"{number}{ins}") for chain, number, ins in codes)


def _groups(scene: Scene, write: Callable[[str], str]) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Yield each color that occurs, and its residues by chain."""
    found: dict[str, dict[str, list[str]]] = {}
    for code, (chain, number) in zip(color_codes(scene.color), _ids(scene.residues), strict=True):
        found.setdefault(code, {}).setdefault(chain, []).append(write(number))
    return ((code, list(chains.items())) for code, chains in found.items() if code != NO_VALUE)


def _pymol_number(number: str) -> str:
    return number.replace("-", "\\-")


def _pymol_color(code: str) -> str:
    return f"0x{code[1:]}"


def _cylinders(scene: Scene, i: int, edges: EdgeSet) -> str:
    color = EDGE_COLORS[i % len(EDGE_COLORS)]
    rgb = [round(int(color[k : k + 2], 16) / 255, 3) for k in (1, 3, 5)]
    ends = scene.residues.pos[edges.pairs].astype(float).round(3).reshape(-1, 6).tolist()
    rows = [[*end, round(_RADIUS * width, 3)] for end, width in zip(ends, edges.width.tolist(), strict=True)]
    return f"cmd.load_cgo([x for row in {rows} for x in [CYLINDER, *row, *{rgb}, *{rgb}]], {edges.name!r})"


def _relative(path: Path, source: FileContent) -> str:
    return Path(os.path.relpath(Path(source.path).resolve(), path.resolve().parent)).as_posix()
