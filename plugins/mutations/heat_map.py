"""Heat map of all substitutions of a structure: a picture, and a page of the same figure with tooltips."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from protgraph_plugins.mutations.substitution_scan import SubstitutionScan

from protgraph.bench import make_figure, save_figure
from protgraph.file_io import write_text_file
from protgraph.structure import ALPHABET, THREE_LETTER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SCAN_ORDER", "color_limit", "column_labels", "draw_scan", "scan_lines"]

SCAN_ORDER = "GPAVILMFYWCSTNQHKRDE"
"""Types from top to bottom: small, aliphatic, aromatic, polar, charged."""

_LINE = 100  # residues of a line of the figure
_CHARACTER, _TITLE_LINE = 0.07, 0.16  # inches, largest mean width of a character of the title, and its line height
_LEFT, _RIGHT, _BOTTOM, _TOP = 0.6, 0.95, 0.45, 0.6  # inches around the panels, with the color scale on the right
_HEIGHT = 2.7  # inches of a line with its labels
_FEW = 40  # columns of a line that are all labeled
_LARGEST = 60.0  # inches; beyond it, lines are longer
_STYLE = "body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem; } svg { max-width: 100%; height: auto; }"


def color_limit(scan: SubstitutionScan) -> float:
    """Return the end of the color scale: the 98th percentile of the absolute scores, of substitutions."""
    values = np.abs(scan.substitutions)
    values = values[np.isfinite(values)]
    if values.size == 0:
        return 1.0
    return max(float(np.percentile(values, 98)), 1e-6)


def scan_lines(scan: SubstitutionScan, length: int = _LINE) -> list[np.ndarray]:
    """Return indices ``(M,)`` of scanned residues, in lines of at most ``length`` residues of one chain each."""
    chain = scan.residues.chain[scan.rows]
    lines: list[np.ndarray] = []
    for name in dict.fromkeys(chain.tolist()):
        members = np.flatnonzero(chain == name)
        for start in range(0, len(members), length):
            lines.append(members[start : start + length])
    return lines


def column_labels(scan: SubstitutionScan, members: np.ndarray) -> list[str]:
    """Return the residue numbers of the columns of a line, and "" for those that stay without a label.

    Of more than 40 columns, the first one, every fifth number and all numbers with insertion codes are labeled.

    Parameters
    ----------
    scan : SubstitutionScan
    members : ndarray
        ``(M,)`` int64, output of :func:`scan_lines`.
    """
    rows = scan.rows[members]
    labels = []
    for column, row in enumerate(rows.tolist()):
        number = int(scan.residues.res_id[row])
        code = str(scan.residues.ins_code[row])
        is_labeled = len(rows) <= _FEW or column == 0 or number % 5 == 0 or bool(code)
        labels.append(f"{number}{code}" if is_labeled else "")
    return labels


def draw_scan(picture: str | Path, page: str | Path, scan: SubstitutionScan) -> None:
    """Plot scores by residue and type: red is unfavorable, blue favorable, gray has no value; dots are the wild type.

    Residue numbers are below the columns, wild types above them. The page shows the same figure, and the value of a
    cell where the mouse is.

    Parameters
    ----------
    picture : str or Path
        File with a suffix of matplotlib, e.g. ".png". An existing file is replaced, as that of ``page``.
    page : str or Path
        HTML file.
    scan : SubstitutionScan
    """
    lines = scan_lines(scan)
    if _HEIGHT * len(lines) > _LARGEST:
        lines = scan_lines(scan, math.ceil(len(scan.rows) * _HEIGHT / _LARGEST))
    figure, panels = _figure(scan, lines)
    save_figure(figure, picture)
    write_text_file(page, _page(scan, lines, figure, panels))


def _figure(scan: SubstitutionScan, lines: list[np.ndarray]) -> tuple[Figure, list[Axes]]:
    """Draw all lines; return the figure and its panels, one per line."""
    # Size in inches; a title of more than two lines makes the figure higher.
    longest = max(len(members) for members in lines)
    width = 2.2 + 0.115 * max(longest, 30)
    title = [f"{scan.residues.name}, {scan.scorer}", *textwrap.wrap(scan.convention, int(width / _CHARACTER))]
    extra = _TITLE_LINE * (len(title) - 2)
    height = 1.0 + _HEIGHT * len(lines) + extra
    figure = make_figure(width, height, layout=None)  # "constrained" lays out three times: 0.3 s for 300 residues

    # Panels, below each other.
    bottom = _BOTTOM / height
    top = 1 - (_TOP + extra) / height
    sides = {"left": _LEFT / width, "right": 1 - _RIGHT / width, "bottom": bottom, "top": top, "hspace": 0.26}
    panels = figure.subplots(len(lines), 1, squeeze=False, gridspec_kw=sides)[:, 0]
    limit = color_limit(scan)
    for panel, members in zip(panels, lines, strict=True):
        image = _draw_line(panel, scan, members, longest, limit)

    # Color scale on the right, title above.
    box = (1 - (_RIGHT - 0.12) / width, bottom, 0.13 / width, top - bottom)
    bar = figure.colorbar(image, cax=figure.add_axes(box), extend="both", extendfrac=0.03)
    bar.set_label(scan.column, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.suptitle("\n".join(title), fontsize=9, x=0.01, y=1 - 0.08 / height, ha="left", va="top")
    return figure, list(panels)


def _page(scan: SubstitutionScan, lines: list[np.ndarray], figure: Figure, panels: list[Axes]) -> str:
    """Return the figure as an HTML page, with an invisible rectangle and a tooltip on each cell."""
    from matplotlib import rc_context

    drawing = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):  # letters stay text
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    svg = drawing.getvalue()
    svg = svg[svg.index("<svg") :]
    tooltips = "".join(_tooltips(scan, lines, figure, panels))
    svg = svg.replace("</svg>", f"{tooltips}</svg>")

    title = escape(f"{scan.residues.name}: {len(scan.rows)} residues × 20, {scan.scorer}")
    missing = ""
    if scan.without_value:
        names = escape(", ".join(scan.without_value))
        missing = f"<p>{len(scan.without_value)} residues without a value (gray): {names}</p>"
    about = f'<meta name="description" content="{escape(scan.convention)}">'
    head = f'<meta charset="utf-8">{about}<title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{missing}{svg}</body></html>\n'


def _tooltips(scan: SubstitutionScan, lines: list[np.ndarray], figure: Figure, panels: list[Axes]) -> Iterator[str]:
    """Yield a rectangle with a tooltip for each cell, in the coordinates of the SVG file: points, from the top."""
    to_points = 72 / figure.dpi
    height = figure.bbox.height * to_points
    for panel, members in zip(panels, lines, strict=True):
        for column, member in enumerate(members.tolist()):
            for row, new in enumerate(SCAN_ORDER):
                left, top = panel.transData.transform((column - 0.5, row - 0.5)) * to_points
                right, bottom = panel.transData.transform((column + 0.5, row + 0.5)) * to_points
                place = f'x="{left:.1f}" y="{height - top:.1f}" width="{right - left:.1f}" height="{top - bottom:.1f}"'
                yield f'<rect {place} fill="transparent"><title>{_tooltip(scan, member, new)}</title></rect>'


def _tooltip(scan: SubstitutionScan, member: int, new: str) -> str:
    """Return e.g. "A:42 GLY → ALA: +1.250"."""
    row = scan.rows[member]
    old_type = int(scan.residues.aatype[row])
    new_type = ALPHABET.index(new)
    value = float(scan.scores[member, new_type])
    if old_type == new_type:
        text = "wild type"
    elif math.isnan(value):
        text = "no value"
    else:
        text = f"{value:+.3f}"
        if scan.spread is not None:
            text += f" ± {scan.spread[member, new_type]:.3f}"
    return escape(f"{scan.residues.ids[row]} {THREE_LETTER[old_type]} → {THREE_LETTER[new_type]}: {text}")


def _draw_line(panel: Axes, scan: SubstitutionScan, members: np.ndarray, longest: int, limit: float) -> object:
    """Draw one line of residues, and return the image."""
    from matplotlib import colormaps

    # Scores, white to the right of a short line.
    columns = [ALPHABET.index(letter) for letter in SCAN_ORDER]
    values = np.full((len(SCAN_ORDER), longest), np.nan)
    values[:, : len(members)] = scan.scores[members][:, columns].T
    values = np.ma.masked_invalid(values)
    colors = colormaps["RdBu_r"].with_extremes(bad="#bbbbbb")
    image = panel.imshow(values, cmap=colors, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    panel.axvspan(len(members) - 0.5, longest - 0.5, color="white")

    # Wild types, as dots.
    wild_type = [SCAN_ORDER.index(ALPHABET[kind]) for kind in scan.wild_type[members]]
    panel.plot(range(len(members)), wild_type, ".", color="black", markersize=3)

    # Types on the left, residue numbers below, wild types above.
    panel.set_yticks(range(len(SCAN_ORDER)), list(SCAN_ORDER), fontsize=6, family="monospace")
    labels = column_labels(scan, members)
    ticks = [column for column, label in enumerate(labels) if label]
    panel.set_xticks(ticks, [labels[column] for column in ticks], fontsize=5.5, rotation="vertical")
    for column, row in enumerate(wild_type):
        panel.text(column, -0.7, SCAN_ORDER[row], fontsize=6, family="monospace", ha="center", va="bottom")
    chain = scan.residues.chain[scan.rows[members[0]]]
    panel.set_ylabel(f"chain {chain or 'blank'}", fontsize=7)
    panel.set_xlim(-0.5, longest - 0.5)
    for side in panel.spines.values():
        side.set_visible(False)
    return image
