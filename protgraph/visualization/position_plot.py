"""Figure of the positional codes of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from protgraph.featurize.residue_identity import SequencePosition
from protgraph.model import ProteinModel
from protgraph.nn.positional_encoding import PositionCode
from protgraph.visualization.attention_plot import make_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_positions", "position_codes", "similarity"]

_HEADLINE = {
    "sinusoidal": "sinusoidal: added to features",
    "learned": "learned: added to features",
    "rotary": "rotary: cosines of the rotation angles of channel pairs",
    "offset": "offset bias: added to logits",
}


def position_codes(model: ProteinModel, length: int) -> dict[str, PositionCode]:
    """Return the distinct positional codes of a model, by the path of the first part that uses each.

    Parameters
    ----------
    model : ProteinModel
    length : int
        Number of positions, from 0.
    """
    codes: dict[str, PositionCode] = {}
    for where, code in _all_codes(model, length):
        if not any(_same(code, other) for other in codes.values()):
            codes[where] = code
    return codes


def _all_codes(model: ProteinModel, length: int) -> Iterator[tuple[str, PositionCode]]:
    """Yield path and positional code of featurizers and parts of layers, in the order of computation."""
    place = torch.arange(length)
    for n, featurizer in model.plan.tensor:
        if isinstance(featurizer, SequencePosition):
            encoding = featurizer({"seq_pos": place})["sequence_position"]
            yield f"features[{model.plan.components.index(n)}] ({n.name})", PositionCode("sinusoidal", encoding)
    for w, layer in zip(model.wires, model.layers, strict=True):
        for path, part in layer.named_modules():
            method = getattr(part, "position_code", None)
            code = None if method is None else method(length)
            if code is not None:
                inside = [p for p in path.split(".") if p and p != "attention"]
                yield f"{'.'.join([w.path, *inside])} ({w.component.name})", code


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
        left.set_title(f"{_HEADLINE[code.kind]}\n{where}", fontsize=9, loc="left")
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    return save(figure, path)


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


def _same(one: PositionCode, other: PositionCode) -> bool:
    return one.kind == other.kind and one.values.shape == other.values.shape and torch.equal(one.values, other.values)
