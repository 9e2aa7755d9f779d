"""Figures of attention: a heat map per head, an overview of all heads of a model, and its positional codes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from protgraph.bench import make_figure, save_figure
from protgraph.model import AttentionMap, ProteinModel
from protgraph.nn import PositionCode
from protgraph.registry import featurizers
from protgraph.structure import Residues

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from protgraph_plugins.view.attention import HeadReport

__all__ = [
    "draw_heads",
    "draw_overview",
    "draw_positions",
    "file_name",
    "position_codes",
    "residue_ticks",
    "similarity",
]

_CONTACT = "#D55E00"  # Okabe & Ito 2008, color-blind safe
_UNSEEN, _GRAY = "#E8E8E8", "#666666"
_TICK_STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)
_MAX_TICKS = 9
_MAX_HEADS_IN_ROW = 8  # of an overview; with more heads, its tables are below each other
# Size of a heat map: residues per inch, and its bounds in inches.
_PER_INCH, _SMALLEST, _LARGEST = 85, 2.6, 4.6

#: Kind of positional code → title of its figure.
_HEADLINES = {
    "sinusoidal": "sinusoidal: added to features",
    "learned": "learned: added to features",
    "rotary": "rotary: cosines of the rotation angles of channel pairs",
    "offset": "offset bias: added to logits",
}


def draw_heads(
    path: str | Path,
    layer: str,
    attention: AttentionMap,
    residues: Residues,
    reports: Sequence[HeadReport],
    *,
    in_contact: np.ndarray | None = None,
    title: str = "",
) -> Path:
    """Plot the weights of every head of one layer, relative to uniform weights, on one logarithmic scale.

    Parameters
    ----------
    path : str or Path
        Output file, PNG.
    layer : str
        Path of the layer in the model.
    attention : AttentionMap
    residues : Residues
    reports : sequence of HeadReport
        Numbers of these heads, for the titles.
    in_contact : ndarray, optional
        ``(L, L)`` bool, pairs to mark in the upper triangle.
    title : str
        Title of the figure.
    """
    from matplotlib.colors import LogNorm

    weights = attention.weights.double().cpu().numpy()  # (H, L, L)
    visible = np.ones(weights.shape[1:], bool) if attention.visible is None else attention.visible.cpu().numpy()
    relative = np.where(visible & (weights > 0), weights * visible.sum(1, keepdims=True), np.nan)
    columns, rows = _grid(len(relative))
    side = min(max(len(residues) / _PER_INCH, _SMALLEST), _LARGEST)
    figure = make_figure(columns * (side + 0.25) + 1.5, rows * (side + 0.35) + 1.3)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    low, high = _range(relative)
    for number, panel in enumerate(axes.flat):
        if number >= len(relative):
            panel.set_axis_off()
            continue
        panel.set_facecolor(_UNSEEN)
        image = panel.imshow(relative[number], norm=LogNorm(low, high), cmap="Blues", interpolation="nearest")
        _mark(panel, in_contact, side)
        panel.set_title(_headline(number, reports), fontsize=9)
    lowest = [axes[(len(relative) - 1 - column) // columns, column] for column in range(columns)]
    for panel in (*axes[:, 0], *lowest):
        residue_ticks(panel, residues)
    for panel in lowest:
        panel.tick_params(labelbottom=True, labelrotation=90, axis="x")
    bar = figure.colorbar(image, ax=axes, shrink=min(1.0, 4.0 / (rows * side)), aspect=25, pad=0.01)
    ticks = [m * 10.0**e for e in range(-4, 5) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
    bar.minorticks_off()
    bar.set_label("weight × number of visible residues (1: uniform)", fontsize=9)
    figure.suptitle(f"{title}\n{layer}" if title else layer, fontsize=11, x=0.01, ha="left")
    figure.supxlabel("key residue", fontsize=9)
    _legend(figure, in_contact, attention)
    figure.supylabel("query residue", fontsize=9)
    return save_figure(figure, path)


def draw_overview(path: str | Path, reports: Sequence[HeadReport], *, title: str = "") -> Path:
    """Plot the agreement of all heads of all layers with contacts (if any) and with sequence separation."""
    layers = list(dict.fromkeys(r.layer for r in reports))
    heads = max(r.head for r in reports) + 1
    panels = [
        ("r_contact", "correlation with contacts (APC)", 1.0),
        ("p_at_l", f"precision of the top L pairs ({_chance(reports)})", None),
        ("r_separation", "rank correlation with separation", 1.0),
    ]
    tables = [(_table(reports, layers, heads, name), label, bound) for name, label, bound in panels]
    tables = [part for part in tables if not np.isnan(part[0]).all()]
    count, names = max(1, len(tables)), max(map(len, layers)) * 0.075
    columns = count if heads <= _MAX_HEADS_IN_ROW else 1
    rows = math.ceil(count / columns)
    figure = make_figure(names + columns * (0.42 * heads + 1.5) + 0.3, rows * (0.32 * len(layers) + 0.9) + 0.7)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for panel, (table, label, bound) in zip(axes.flat, tables, strict=False):
        _matrix(panel, table, label, bound)
        panel.set_yticks(range(len(layers)), layers, fontsize=8)
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    return save_figure(figure, path)


def file_name(layer: str) -> str:
    """Return ``layers_0_blocks_1_encoder.png`` for ``layers[0].blocks.1 (encoder)``."""
    return re.sub(r"[^A-Za-z0-9]+", "_", layer).strip("_") + ".png"


def residue_ticks(axes: Axes, residues: Residues) -> None:
    """Set ticks at round residue numbers, "A:20", and lines between chains, on both axes."""
    chain = residues.chain_number
    starts = np.flatnonzero(np.diff(chain, prepend=-1))
    for start in starts[1:]:
        axes.axhline(start - 0.5, color=_GRAY, linewidth=0.6)
        axes.axvline(start - 0.5, color=_GRAY, linewidth=0.6)
    ids = residues.ids
    for step in _TICK_STEPS:
        places = np.flatnonzero((residues.res_id % step == 0) & (residues.ins_code == ""))
        if len(starts) > 1:
            near = np.abs(places[:, None] - starts).min(1, initial=len(chain)) if len(places) else places
            places = np.union1d(starts, places[near > len(chain) / (2 * _MAX_TICKS)])
        if len(places) <= max(_MAX_TICKS, len(starts)):
            break
    places = places if len(places) else starts
    labels = [ids[i].removeprefix(":") for i in places]  # a chain without a name
    axes.set_xticks(places, labels, rotation=90, fontsize=7)
    axes.set_yticks(places, labels, fontsize=7)


def _grid(count: int) -> tuple[int, int]:
    """Return columns and rows: at most four columns, five for many heads, in rows of similar length."""
    rows = math.ceil(count / (4 if count <= 12 else 5))
    return math.ceil(count / rows), rows


def _range(shown: np.ndarray) -> tuple[float, float]:
    """Return the bounds of the scale: nearly all values and 1 inside, and a factor of 4 or more."""
    finite = shown[np.isfinite(shown)]
    low, high = np.percentile(finite, [2, 99.5]) if finite.size else (1.0, 1.0)
    return min(low, 0.5), max(high, 2.0)


def _mark(panel: Axes, in_contact: np.ndarray | None, side: float) -> None:
    if in_contact is None or not in_contact.any():
        return
    i, j = np.nonzero(np.triu(in_contact, 1))
    width = 72 * side / len(in_contact)  # points of one residue
    size = max(1.1, 0.85 * width) ** 2
    if width > 1.6:
        panel.scatter(j, i, s=size, marker="s", facecolors="none", edgecolors=_CONTACT, linewidths=0.6)
    else:
        panel.scatter(j, i, s=size, marker="s", color=_CONTACT, linewidths=0, alpha=0.7)


def _headline(number: int, reports: Sequence[HeadReport]) -> str:
    report = next((r for r in reports if r.head == number), None)
    if report is None or math.isnan(report.p_at_l):
        return f"head {number}"
    return f"head {number}: r = {report.r_contact:z.2f}, P@L = {report.p_at_l:.2f}"


def _legend(figure: Figure, in_contact: np.ndarray | None, attention: AttentionMap) -> None:
    from matplotlib.patches import Patch

    entries = []
    if in_contact is not None:
        label = "upper right: contacts, CB within 8 Å; r, P@L: agreement with them"
        entries.append(Patch(facecolor="none", edgecolor=_CONTACT, label=label))
    if attention.visible is not None:
        entries.append(Patch(facecolor=_UNSEEN, edgecolor="none", label="no attention: masked, or no edge"))
    if entries:
        figure.legend(handles=entries, loc="outside lower left", ncols=2, fontsize=8, frameon=False, handlelength=1.0)


def _chance(reports: Sequence[HeadReport]) -> str:
    prevalences = [report.prevalence for report in reports]
    low, high = min(prevalences), max(prevalences)
    return f"random: {low:.2f}" if high - low < 0.005 else f"random: {low:.2f}–{high:.2f}"


def _table(reports: Sequence[HeadReport], layers: Sequence[str], heads: int, name: str) -> np.ndarray:
    """Return one number of every report as a table ``(layers, heads)``."""
    table = np.full((len(layers), heads), np.nan)
    for r in reports:
        table[layers.index(r.layer), r.head] = getattr(r, name)
    return table


def _matrix(panel: Axes, table: np.ndarray, label: str, bound: float | None) -> None:
    """Plot numbers in colored cells: a diverging scale with a bound, a sequential one without."""
    if bound is None:
        high = max(float(np.nanmax(table)), 0.1)
        panel.imshow(table, cmap="Blues", vmin=0, vmax=high, aspect="auto")
    else:
        high = max(float(np.nanmax(np.abs(table))), 0.1)
        panel.imshow(table, cmap="RdBu_r", vmin=-high, vmax=high, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        if not math.isnan(value):
            color = "white" if abs(value) > 0.65 * high else "black"
            panel.text(j, i, f"{value:z.2f}", ha="center", va="center", fontsize=7, color=color)
    panel.set_xticks(range(table.shape[1]), range(table.shape[1]), fontsize=8)
    panel.set_xlabel("head", fontsize=8)
    panel.set_title(label, fontsize=9)


def position_codes(model: ProteinModel, length: int) -> dict[str, PositionCode]:
    """Return the distinct codes of positions 0 to ``length - 1``, by the path of the first part that uses each."""
    codes: dict[str, PositionCode] = {}
    for path, code in _all_codes(model, length):
        if not any(_is_equal(code, earlier) for earlier in codes.values()):
            codes[path] = code
    return codes


def _all_codes(model: ProteinModel, length: int) -> Iterator[tuple[str, PositionCode]]:
    """Yield path and positional code of featurizers and parts of layers, in the order of computation."""
    sequence_position = featurizers.get("sequence_position")
    for component, featurizer in model.plan.tensor:
        if isinstance(featurizer, sequence_position):
            encoding = featurizer({"seq_pos": torch.arange(length)})["sequence_position"]
            index = model.plan.components.index(component)
            yield f"features[{index}] ({component.name})", PositionCode("sinusoidal", encoding)
    for wired, layer in model.steps:
        for path, module in layer.named_modules():
            if not hasattr(module, "position_code"):
                continue
            code = module.position_code(length)
            if code is not None:
                names = [name for name in path.split(".") if name and name != "attention"]
                yield f"{'.'.join([wired.path, *names])} ({wired.component.name})", code


def _is_equal(a: PositionCode, b: PositionCode) -> bool:
    return a.kind == b.kind and a.values.shape == b.values.shape and torch.equal(a.values, b.values)


def similarity(code: PositionCode) -> np.ndarray:
    """Compute the similarity of positions by offset, ``(D,)`` for offsets 0, 1, …; 1 at offset 0.

    For added vectors, the mean of ``p_i·p_j`` over all pairs at that offset, divided by its value at 0. For rotations,
    the mean over channels of ``cos(Δ ω_c)``, the scalar product of two equal unit vectors after rotation.
    """
    values = code.values.double().cpu().numpy()
    if code.kind == "rotary":
        return values.mean(1)
    products = values @ values.T
    means = np.array([np.diagonal(products, offset).mean() for offset in range(len(values))])
    return means / means[0]


def draw_positions(path: str | Path, codes: Mapping[str, PositionCode], *, title: str = "") -> Path:
    """Plot each code by position, and the similarity of positions by offset."""
    figure = make_figure(10.0, 2.9 * len(codes) + 0.6)
    axes = figure.subplots(len(codes), 2, squeeze=False, width_ratios=(3, 2))
    for (left, right), (where, code) in zip(axes, codes.items(), strict=True):
        if code.kind == "offset":
            _draw_offsets(left, right, code)
        else:
            _draw_vectors(left, right, code)
        left.set_title(f"{_HEADLINES[code.kind]}\n{where}", fontsize=9, loc="left")
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    return save_figure(figure, path)


def _draw_vectors(left: Axes, right: Axes, code: PositionCode) -> None:
    values = code.values.double().cpu().numpy().T  # (C, L)
    bound = max(float(np.abs(values).max()), 1e-12)
    image = left.imshow(values, cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
    left.figure.colorbar(image, ax=left, pad=0.01)
    left.set_xlabel("position in the sequence", fontsize=8)
    left.set_ylabel("pair of channels" if code.kind == "rotary" else "channel", fontsize=8)
    shared = similarity(code)
    right.plot(shared, color="#0072B2", linewidth=1.4)
    right.axhline(0, color="#666666", linewidth=0.6)
    right.set_xlim(0, max(1, len(shared) - 1))
    right.set_xlabel("residues apart", fontsize=8)
    right.set_title("similarity of two positions", fontsize=9, loc="left")


def _draw_offsets(left: Axes, right: Axes, code: PositionCode) -> None:
    table = code.values.double().cpu().numpy()  # (H, 2 reach + 1)
    reach = table.shape[1] // 2
    bound = max(float(np.abs(table).max()), 1e-12)
    extent = (-reach - 0.5, reach + 0.5, len(table) - 0.5, -0.5)
    image = left.imshow(table, cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto", extent=extent)
    left.figure.colorbar(image, ax=left, pad=0.01)
    left.set_yticks(range(len(table)))
    left.set_ylabel("head", fontsize=8)
    for head, row in enumerate(table):
        right.plot(np.arange(-reach, reach + 1), row, linewidth=1.1, label=f"head {head}")
    right.axhline(0, color="#666666", linewidth=0.6)
    right.legend(fontsize=7, ncols=2)
    right.set_title("bias by offset", fontsize=9, loc="left")
    for panel in (left, right):
        panel.set_xlabel("offset j − i, residues (clipped at the ends)", fontsize=8)
