"""A picture of how a model knows where a residue is along the sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from protgraph.featurize.residue_identity import SequencePosition
from protgraph.model import ProteinModel
from protgraph.nn.positional_encoding import PositionCode
from protgraph.view.attention_plot import make_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_positions", "position_codes", "similarity"]

_HEADLINE = {
    "sinusoidal": "sinusoidal: added to features",
    "learned": "learned: added to features",
    "rotary": "rotary: cosines of the angles that channels are turned by",
    "offset": "offset bias: added to logits",
}


def position_codes(model: ProteinModel, length: int) -> dict[str, PositionCode]:
    """Every way in which a model tells places apart, each once, by the first parts that use it.

    Parameters
    ----------
    model : ProteinModel
    length : int
        Places to show, from 0.
    """
    found: dict[str, PositionCode] = {}
    for where, code in _told(model, length):
        if not any(_same(code, other) for other in found.values()):
            found[where] = code
    return found


def _told(model: ProteinModel, length: int) -> Iterator[tuple[str, PositionCode]]:
    """What featurizers and parts of layers tell, in the order of computation, by where they stand."""
    place = torch.arange(length)
    for n, featurizer in model.plan.tensor:
        if isinstance(featurizer, SequencePosition):
            made = featurizer({"seq_pos": place})["sequence_position"]
            yield f"features[{model.plan.components.index(n)}] ({n.name})", PositionCode("sinusoidal", made)
    for w, layer in zip(model.wires, model.layers, strict=True):
        for path, part in layer.named_modules():
            tell = getattr(part, "position_code", None)
            code = None if tell is None else tell(length)
            if code is not None:
                inside = [p for p in path.split(".") if p and p != "attention"]
                yield f"{'.'.join([w.path, *inside])} ({w.component.name})", code


def similarity(code: PositionCode) -> np.ndarray:
    """What places have in common by how far they are apart: ``(D,)`` for offsets 0, 1, …, 1 at 0.

    Of vectors that are added, the mean of ``p_i·p_j`` over all i, j that far apart, over its value at 0; of rotations,
    the mean over channels of ``cos(Δ ω_c)``, which is what the scalar product of two equal vectors is turned into.
    """
    values = code.values.double().cpu().numpy()
    if code.kind == "rotary":
        return values.mean(1)
    products = values @ values.T
    means = np.array([np.diagonal(products, offset).mean() for offset in range(len(values))])
    return means / means[0]


def draw_positions(path: str | Path, codes: Mapping[str, PositionCode], *, title: str = "") -> Path:
    """For each code its numbers by place, and beside them what places have in common by distance."""
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
    left.set_xlabel("place along the sequence", fontsize=8)
    left.set_ylabel("pair of channels" if code.kind == "rotary" else "channel", fontsize=8)
    shared = similarity(code)
    right.plot(shared, color="#0072B2", linewidth=1.4)
    right.axhline(0, color="#666666", linewidth=0.6)
    right.set_xlim(0, max(1, len(shared) - 1))
    right.set_xlabel("residues apart", fontsize=8)
    right.set_title("what two places have in common", fontsize=9, loc="left")


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
        panel.set_xlabel("offset j − i, residues (further counts as the end)", fontsize=8)


def _same(one: PositionCode, other: PositionCode) -> bool:
    return one.kind == other.kind and one.values.shape == other.values.shape and torch.equal(one.values, other.values)
