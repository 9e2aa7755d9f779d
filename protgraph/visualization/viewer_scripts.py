"""Write files for PyMOL and ChimeraX: scripts that color structures by a value per residue, and ChimeraX attributes.

Scripts have the colors of the interactive page (:mod:`protgraph.visualization.palette`); residues without a value are
gray.

References
----------
PyMOL documentation, commands ``load`` and ``color``, compiled graphics objects (CGO); UCSF ChimeraX documentation,
"Attribute assignment file format" (defattr), "Command-line target specification", commands ``open``, ``color`` and
``pbond``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protgraph.file_io import write_text_file
from protgraph.structure.io import FileContent, ResidueValues
from protgraph.visualization.palette import EDGE_COLORS, NO_VALUE, color_codes, scale_of
from protgraph.visualization.scene import Color, EdgeSet, Scene

__all__ = [
    "write_chimerax_script",
    "write_defattr",
    "write_pymol_script",
    "write_scene_chimerax",
    "write_scene_pymol",
]

_RADIUS = 0.12  # Å, of the thickest edge


@dataclass(frozen=True)
class _ColoredFile:
    """A structure file, and the color, chain, and number with insertion code of its residues."""

    path: Path
    codes: list[str]
    chains: list[str]
    numbers: list[str]

    def groups(self, write: Callable[[str], str]) -> dict[str, dict[str, list[str]]]:
        """Return color → chain → numbers of its residues; residues without a value are in no group."""
        groups: dict[str, dict[str, list[str]]] = {}
        for code, chain, number in zip(self.codes, self.chains, self.numbers, strict=True):
            if code != NO_VALUE:
                groups.setdefault(code, {}).setdefault(chain, []).append(write(number))
        return groups


def write_defattr(path: str | Path, values: Mapping[str, ResidueValues]) -> Path:
    """Write an attribute file for ChimeraX, with one line per residue that has a value.

    The attribute has the name of the value and its numbers as predicted: probabilities from 0 to 1. With several
    files, residues of the first are those of model #1, and so on.

    Parameters
    ----------
    path : str or Path
        Output file, ``.defattr``; an existing one is replaced.
    values : mapping of str to ResidueValues
        File → values of its residues.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> columns = {"chain": ["H"], "res_id": [100], "ins_code": ["B"], "res_name": ["GLY"], "values": [0.5]}
    >>> values = ResidueValues("p_site", **{name: np.array(column) for name, column in columns.items()})
    >>> print(write_defattr(Path(mkdtemp()) / "a.defattr", {"1abc.pdb": values}).read_text().expandtabs(2), end="")
    # p_site
    # 1abc.pdb
    attribute: p_site
    match mode: 1-to-1
    recipient: residues
      /H:100B  0.5
    """
    path, lines = Path(path), []
    for number, (file, own) in enumerate(values.items(), 1):
        model = f"#{number}" if len(values) > 1 else ""
        if number == 1:
            lines += [f"# {_plain(line)}" for line in (own.name, *own.origin, *own.class_lines)]
        lines.append(f"# {f'{model} = ' if model else ''}{_plain(Path(file).name)}")
        if number == 1:
            lines += [f"attribute: {_attribute(own.name)}", "match mode: 1-to-1", "recipient: residues"]
        keys = zip(own.chain.tolist(), own.res_id.tolist(), own.ins_code.tolist(), strict=True)
        for (chain, residue, code), value in zip(keys, own.values.tolist(), strict=True):
            if not np.isnan(value):
                lines.append(f"\t{model}{f'/{chain}' if chain else ''}:{residue}{code}\t{_number(value, own)}")
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def write_pymol_script(path: str | Path, structures: Sequence[Path], values: Mapping[str, ResidueValues]) -> Path:
    """Write a PyMOL script that loads structures beside it and colors each residue by its value.

    Parameters
    ----------
    path : str or Path
        Output file, ``.pml``; an existing one is replaced.
    structures : sequence of Path
        Files of :func:`protgraph.structure.io.write_residue_values`, one for each of the values.
    values : mapping of str to ResidueValues
        Values of these files.
    """
    path = Path(path)
    lines = [*_value_comments(values), *_pymol_lines(path, _colored(structures, values))]
    write_text_file(path, "\n".join([*lines, "as cartoon, polymer.protein"]) + "\n")
    return path


def write_chimerax_script(
    path: str | Path,
    structures: Sequence[Path],
    values: Mapping[str, ResidueValues],
    *,
    attributes: str | Path | None = None,
) -> Path:
    """Write a ChimeraX script that opens structures beside it and colors each residue by its value.

    Parameters
    ----------
    path : str or Path
        Output file, ``.cxc``; an existing one is replaced.
    structures, values
        See :func:`write_pymol_script`.
    attributes : str or Path, optional
        File of :func:`write_defattr`, which is opened too.
    """
    path = Path(path)
    lines = [*_value_comments(values), *_chimerax_lines(path, _colored(structures, values))]
    if attributes is not None:
        lines.append(f'open "{_relative(path, attributes)}"')
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def write_scene_pymol(scene: Scene, path: str | Path, *, source: FileContent) -> Path:
    """Write a scene as a PyMOL script that loads the structure file by its relative path.

    Parameters
    ----------
    scene : Scene
    path : str or Path
        Output file, ``.pml``; an existing one is replaced.
    source : FileContent
        Structure file.
    """
    path = Path(path)
    lines = _scene_comments(scene)
    if source.format == "bcif":
        lines.append("# PyMOL reads BinaryCIF only if it is built with msgpack-c; else use mmCIF.")
    lines += _pymol_lines(path, [_colored_scene(scene, source)])
    lines += ["as cartoon, polymer", "show sticks, organic", "show spheres, inorganic"]
    if scene.edges:
        cylinders = [_cylinders(scene, i, edges) for i, edges in enumerate(scene.edges)]
        lines += ["python", "from pymol.cgo import CYLINDER", *cylinders, "python end"]
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def write_scene_chimerax(scene: Scene, path: str | Path, *, source: FileContent) -> Path:
    """Write a scene as a ChimeraX script; see :func:`write_scene_pymol`.

    Parameters
    ----------
    scene, source
        See :func:`write_scene_pymol`.
    path : str or Path
        Output file, ``.cxc``; an existing one is replaced.
    """
    path, residues = Path(path), _colored_scene(scene, source)
    lines = [*_scene_comments(scene), *_chimerax_lines(path, [residues])]
    names = [f"{_chimerax_residues(*key)}@CA" for key in zip(residues.chains, residues.numbers, strict=True)]
    for i, edges in enumerate(scene.edges):
        color = EDGE_COLORS[i % len(EDGE_COLORS)]
        lines += [
            f'pbond {names[a]}{names[b]} color {color} radius {_RADIUS * width:.3f} dashes 0 name "{edges.name}"'
            for (a, b), width in zip(edges.pairs.tolist(), edges.width.tolist(), strict=True)
        ]
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def _colored_scene(scene: Scene, source: FileContent) -> _ColoredFile:
    r = scene.residues
    return _ColoredFile(Path(source.path), color_codes(scene.color), r.chain.tolist(), _numbers(r.res_id, r.ins_code))


def _colored(structures: Sequence[Path], values: Mapping[str, ResidueValues]) -> list[_ColoredFile]:
    return [
        _ColoredFile(path, color_codes(color), own.chain.tolist(), _numbers(own.res_id, own.ins_code))
        for path, own, color in zip(structures, values.values(), _value_colors(values), strict=True)
    ]


def _value_colors(values: Mapping[str, ResidueValues]) -> list[Color]:
    """Return the values of each file as color, all on one scale."""
    known = np.concatenate([own.values for own in values.values()])
    known = known[~np.isnan(known)]
    limits = (float(known.min()), float(known.max())) if len(known) else None
    return [
        Color(own.name, own.values, own.classes, limits=limits, is_probability=own.is_probability)
        for own in values.values()
    ]


def _numbers(res_id: np.ndarray, ins_code: np.ndarray) -> list[str]:
    """Return the number with insertion code of each residue."""
    return [f"{number}{code}" for number, code in zip(res_id.tolist(), ins_code.tolist(), strict=True)]


def _scene_comments(scene: Scene) -> list[str]:
    lines = [f"# {scene.residues.name}, colored by {scene.color.name}", *_scale_comments([scene.color])]
    return [*lines, *(f"# {_plain(note)}" for note in scene.notes)]


def _value_comments(values: Mapping[str, ResidueValues]) -> list[str]:
    first = next(iter(values.values()))
    lines = [f"# {_plain(line)}" for line in (f"colored by {first.name}", *first.origin)]
    return [*lines, *_scale_comments(_value_colors(values))]


def _scale_comments(colors: Sequence[Color]) -> list[str]:
    """Return the legend of colors on one scale, as comments."""
    scale = scale_of(replace(colors[0], values=np.concatenate([color.values for color in colors])))
    lines = [f"# {code} {name}: {count} residues" for name, code, count in scale.categories]
    if scale.stops:
        ends = f"{scale.low:.4g} {scale.stops[0]} to {scale.high:.4g} {scale.stops[-1]}"
        lines.append(f"# {ends} {colors[0].unit}".rstrip())
    if scale.missing:
        lines.append(f"# {NO_VALUE} no value: {scale.missing} residues")
    return lines


def _pymol_lines(path: Path, files: Sequence[_ColoredFile]) -> list[str]:
    """Return commands that load files as objects with different names and color their residues."""
    names: list[str] = []
    for file in files:
        name = re.sub(r"[^\w.-]", "_", file.path.name.partition(".")[0], flags=re.ASCII) or "structure"
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    lines = ["python", "import os", "from pymol import cmd", "folder = os.path.dirname(os.path.abspath(__script__))"]
    for file, name in zip(files, names, strict=True):
        lines.append(f"cmd.load(os.path.join(folder, {_relative(path, file.path)!r}), {name!r})")
    lines += ["python end", f"color {_pymol_color(NO_VALUE)}, polymer.protein"]
    for file, name in zip(files, names, strict=True):
        for code, chains in file.groups(_pymol_number).items():
            selected = [f"(chain '{chain}' and resi {'+'.join(numbers)})" for chain, numbers in chains.items()]
            lines.append(f"color {_pymol_color(code)}, {name} and polymer.protein and ({' or '.join(selected)})")
    return lines


def _chimerax_lines(path: Path, files: Sequence[_ColoredFile]) -> list[str]:
    """Return commands that open files, which become the models #1, #2, …, and color their residues."""
    lines = [f'open "{_relative(path, file.path)}"' for file in files]
    lines += ["hide protein atoms", "show protein cartoons", f"color protein {NO_VALUE}"]
    for number, file in enumerate(files, 1):
        model = f"#{number}" if len(files) > 1 else ""
        for code, chains in file.groups(str).items():
            selected = "".join(_chimerax_residues(chain, ",".join(numbers)) for chain, numbers in chains.items())
            lines.append(f"color {model}{selected} {code}")
    return lines


def _chimerax_residues(chain: str, numbers: str) -> str:
    return f"/{chain}:{numbers}" if chain else f":{numbers}"


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


def _relative(path: Path, file: str | Path) -> str:
    return Path(os.path.relpath(Path(file).resolve(), path.resolve().parent)).as_posix()


def _number(value: float, values: ResidueValues) -> str:
    """Return a class as an integer and another value with a decimal point: ChimeraX takes the type from the text."""
    text = f"{value:.9g}"
    return text if values.classes or not text.lstrip("-").isdigit() else f"{text}.0"


def _attribute(name: str) -> str:
    """Return a name that ChimeraX accepts: letters, digits and underscores, and a lower-case letter first."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return name if re.match(r"[a-z]", name) else f"value_{name}"


def _plain(text: str) -> str:
    return " ".join(text.split())
