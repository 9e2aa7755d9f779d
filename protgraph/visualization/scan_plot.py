"""Heat map of all substitutions of a structure as a figure."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from protgraph.design.mutation import SubstitutionScan
from protgraph.structure import ALPHABET
from protgraph.visualization.attention_plot import make_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SCAN_ORDER", "color_limit", "draw_scan", "scan_lines"]

SCAN_ORDER = "GPAVILMFYWCSTNQHKRDE"
"""Types from top to bottom: small, aliphatic, aromatic, polar, charged."""

_LINE = 100  # residues of a line of the figure
_CHARACTER, _TITLE_LINE = 0.07, 0.16  # inches, largest mean width of a character of the title, and its line height
_LEFT, _RIGHT, _BOTTOM, _TOP = 0.6, 0.95, 0.3, 0.5  # inches around the panels, with the color scale on the right
_LARGEST = 60.0  # inches; beyond it, lines are longer


def color_limit(scan: SubstitutionScan) -> float:
    """Return the end of the color scale: the 98th percentile of the absolute scores, of substitutions."""
    values = np.abs(scan.substitutions)
    values = values[np.isfinite(values)]
    return max(float(np.percentile(values, 98)) if values.size else 1.0, 1e-6)


def scan_lines(scan: SubstitutionScan, length: int = _LINE) -> list[np.ndarray]:
    """Return indices ``(M,)`` of scanned residues, in lines of at most ``length`` residues of one chain each."""
    chain = scan.residues.chain[scan.rows]
    lines: list[np.ndarray] = []
    for name in dict.fromkeys(chain.tolist()):
        members = np.flatnonzero(chain == name)
        lines += [members[start : start + length] for start in range(0, len(members), length)]
    return lines


def draw_scan(path: str | Path, scan: SubstitutionScan) -> Path:
    """Plot scores by residue and type: red is unfavorable, blue favorable, gray has no value; dots are the wild type.

    Parameters
    ----------
    path : str or Path
        File with a suffix of matplotlib, e.g. ".png". An existing file is replaced.
    scan : SubstitutionScan
    """
    lines = scan_lines(scan)
    if 2.5 * len(lines) > _LARGEST:
        lines = scan_lines(scan, -(-len(scan.rows) * 5 // 2 // int(_LARGEST)))
    longest = max(map(len, lines))
    width, height = 2.2 + 0.115 * max(longest, 30), 1.0 + 2.5 * len(lines)
    title = [f"{scan.residues.name}, {scan.scorer}", *textwrap.wrap(scan.convention, int(width / _CHARACTER))]
    extra = _TITLE_LINE * (len(title) - 2)
    height += extra
    figure = make_figure(width, height, layout=None)  # "constrained" lays out three times: 0.3 s for 300 residues
    sides = {"left": _LEFT / width, "right": 1 - _RIGHT / width, "bottom": _BOTTOM / height}
    sides["top"] = 1 - (_TOP + extra) / height
    panels = figure.subplots(len(lines), 1, squeeze=False, gridspec_kw={**sides, "hspace": 0.14})[:, 0]
    limit = color_limit(scan)
    for panel, members in zip(panels, lines, strict=True):
        image = _draw_line(panel, scan, members, longest, limit)
    box = (1 - (_RIGHT - 0.12) / width, sides["bottom"], 0.13 / width, sides["top"] - sides["bottom"])
    bar = figure.colorbar(image, cax=figure.add_axes(box), extend="both", extendfrac=0.03)
    bar.set_label(scan.column, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.suptitle("\n".join(title), fontsize=9, x=0.01, ha="left")
    return save(figure, path)


def _draw_line(panel: Axes, scan: SubstitutionScan, members: np.ndarray, longest: int, limit: float) -> object:
    """Draw one line of residues, and return the image."""
    from matplotlib import colormaps

    columns = [ALPHABET.index(letter) for letter in SCAN_ORDER]
    colors = colormaps["RdBu_r"].with_extremes(bad="#bbbbbb")
    values = np.full((len(SCAN_ORDER), longest), np.nan)
    values[:, : len(members)] = scan.scores[members][:, columns].T
    values = np.ma.masked_invalid(values)
    image = panel.imshow(values, cmap=colors, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    panel.axvspan(len(members) - 0.5, longest - 0.5, color="white")
    wild_type = [SCAN_ORDER.index(ALPHABET[kind]) for kind in scan.wild_type[members]]
    panel.plot(range(len(members)), wild_type, ".", color="black", markersize=3)
    panel.set_yticks(range(len(SCAN_ORDER)), list(SCAN_ORDER), fontsize=6, family="monospace")
    r, rows = scan.residues, scan.rows[members]
    ticks = [n for n, row in enumerate(rows) if n == 0 or (r.res_id[row] % 10 == 0 and not r.ins_code[row])]
    ticks = [n for n in ticks if n == 0 or n > 2]
    panel.set_xticks(ticks, [f"{r.res_id[rows[n]]}{r.ins_code[rows[n]]}" for n in ticks], fontsize=6)
    panel.set_ylabel(f"chain {r.chain[rows[0]] or 'blank'}", fontsize=7)
    panel.set_xlim(-0.5, longest - 0.5)
    for side in panel.spines.values():
        side.set_visible(False)
    return image
