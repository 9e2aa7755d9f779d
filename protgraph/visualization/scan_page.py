"""Heat map of all substitutions of a structure as one HTML page without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np

from protgraph.design.mutation import SubstitutionScan
from protgraph.file_io import write_text_file
from protgraph.structure import ALPHABET, THREE_LETTER
from protgraph.visualization.scan_plot import SCAN_ORDER, color_limit, column_labels, scan_lines

__all__ = ["scan_page", "write_scan_page"]

_LINE = 60  # residues of a line
#: Ends of the diverging color scale (ColorBrewer RdBu): favorable, neutral, unfavorable.
_COLORS = np.array([(33, 102, 172), (247, 247, 247), (178, 24, 43)], float)

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 1.5rem; }
h1 { font-size: 1.25rem; margin: 0 0 .25rem; }
h2 { font-size: .95rem; margin: 1.25rem 0 .25rem; }
p { margin: .2rem 0; max-width: 60rem; }
.line { overflow-x: auto; }
table { border-collapse: collapse; font: 11px/1 ui-monospace, monospace; margin: .4rem 0 .9rem; }
td { width: 15px; min-width: 15px; height: 15px; padding: 0; text-align: center; border: 1px solid #fff; }
th { font-weight: normal; padding: 0 3px; text-align: center; color: #444; }
thead tr:first-child th { height: 2.6rem; vertical-align: bottom; padding-bottom: 3px; }
thead span { writing-mode: vertical-rl; transform: rotate(180deg); }
td.none { background: #bbb; }
td.wt { outline: 1px solid #000; outline-offset: -2px; }
.bar { display: inline-block; width: 16rem; height: .8rem; vertical-align: middle; margin: 0 .5rem; }
"""


def write_scan_page(path: str | Path, scan: SubstitutionScan) -> Path:
    """Write the page; an existing file is replaced."""
    path = Path(path)
    write_text_file(path, scan_page(scan))
    return path


def scan_page(scan: SubstitutionScan) -> str:
    """Return the page as HTML text: a cell per residue and type, with its score as a tooltip.

    Red is unfavorable, blue favorable, gray has no value; the wild type is framed.
    """
    limit = color_limit(scan)
    title = escape(f"{scan.residues.name}: {len(scan.rows)} residues × 20, {scan.scorer}")
    stops = ", ".join(_css(value) for value in (-1.0, 0.0, 1.0))
    absent = scan.without_value
    missing = f"<p>{len(absent)} residues without a value (gray): {escape(', '.join(absent))}</p>" if absent else ""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>{title}</h1>\n<p>{escape(scan.column)}: {escape(scan.convention)}</p>",
            f'<p>−{limit:.2f}<span class="bar" style="background: linear-gradient(90deg, {stops})"></span>+{limit:.2f}'
            " (the ends include larger values). The wild type is framed.</p>",
            missing,
            *_lines(scan, limit),
            "</body>\n</html>\n",
        ]
    )


def _lines(scan: SubstitutionScan, limit: float) -> Iterator[str]:
    r, chain, ids = scan.residues, None, scan.residues.ids
    for members in scan_lines(scan, _LINE):
        rows = scan.rows[members]
        if r.chain[rows[0]] != chain:
            chain = r.chain[rows[0]]
            yield f"<h2>Chain {escape(str(chain)) or 'blank'}</h2>"
        letters = [ALPHABET[r.aatype[row]] for row in rows]
        head = "".join(f"<th><span>{escape(label)}</span></th>" for label in column_labels(scan, members))
        yield f'<div class="line"><table><thead><tr><th></th>{head}</tr>'
        yield f"<tr><th></th>{''.join(f'<th>{letter}</th>' for letter in letters)}</tr></thead><tbody>"
        for letter in SCAN_ORDER:
            values = scan.scores[members, ALPHABET.index(letter)].tolist()
            places = zip(values, rows.tolist(), letters, strict=True)
            cells = "".join(_cell(value, ids[row], old, letter, limit) for value, row, old in places)
            yield f"<tr><th>{letter}</th>{cells}</tr>"
        yield "</tbody></table></div>"


def _cell(value: float, place: str, old: str, new: str, limit: float) -> str:
    what = escape(f"{place} {THREE_LETTER[ALPHABET.index(old)]} → {THREE_LETTER[ALPHABET.index(new)]}")
    if old == new:
        return f'<td class="wt" style="background:{_css(0.0)}" title="{what}: wild type"></td>'
    if math.isnan(value):
        return f'<td class="none" title="{what}: no value"></td>'
    return f'<td style="background:{_css(value / limit)}" title="{what}: {value:+.3f}"></td>'


def _css(value: float) -> str:
    """Return the color of a value from −1 (favorable) to 1 (unfavorable)."""
    place = min(max(value, -1.0), 1.0) + 1
    low = min(int(place), 1)
    red, green, blue = (_COLORS[low] + (place - low) * (_COLORS[low + 1] - _COLORS[low])).round().astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
