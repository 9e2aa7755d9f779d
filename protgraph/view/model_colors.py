"""What a trained model says of a protein, as colors and edges of a scene."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from protgraph.errors import OptionError, SelectionError
from protgraph.structure import Residues
from protgraph.train import Failure, load_checkpoint, predict
from protgraph.train.files import read_proteins
from protgraph.view.scene import Color, EdgeSet, edge_set

__all__ = ["attended", "predicted"]

_KEYS = ("file", "chain", "res_id", "ins_code", "res_name")
_AS_USUAL: Mapping[str, Any] = MappingProxyType({})
_SEPARATION = 3  # residues; nearer ones lie under the backbone


def predicted(
    checkpoint: str | Path, path: str | Path, residues: Residues, *, reading: Mapping[str, Any] = _AS_USUAL
) -> dict[str, Color]:
    """Every column that a model predicts a residue, by name; NaN for residues that it says nothing of.

    ``reading`` says how the residues were read from the file: ``chains``, ``model``, ``altloc``, ``assembly`` of
    :func:`protgraph.train.predict`.

    Raises
    ------
    OptionError
        Its predictions are not per residue.
    SelectionError
        The file cannot be predicted for.
    """
    found = predict(checkpoint, [path], **reading)
    if found.failures and not found.rows:
        raise SelectionError(f"{path}: {found.failures[0].reason}")
    if found.columns[: len(_KEYS)] != _KEYS:
        raise OptionError(f"{checkpoint} does not predict per residue; its columns are {', '.join(found.columns)}")
    place = {row[1:4]: row[len(_KEYS) :] for row in found.rows}
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    rows = [place.get(key) for key in keys]
    return {name: _color(name, [r and r[i] for r in rows]) for i, name in enumerate(found.columns[len(_KEYS) :])}


def _color(name: str, values: list[object]) -> Color:
    labels = tuple(sorted({v for v in values if isinstance(v, str)}))
    number = [np.nan if v is None else labels.index(v) if labels else float(v) for v in values]
    return Color(name, np.array(number), labels)


def attended(
    checkpoint: str | Path, path: str | Path, residues: Residues, *, reading: Mapping[str, Any] = _AS_USUAL
) -> EdgeSet:
    """As many pairs as there are residues, those with the most attention: the mean over layers and heads of A + Aᵀ.

    ``reading`` is as :func:`predicted` has it.

    Raises
    ------
    WiringError
        The model has no attention between residues.
    SelectionError
        The file cannot be read for it.
    """
    trained = load_checkpoint(checkpoint)
    failures: list[Failure] = []
    given = {"hidden": trained.hidden, "one_chain": trained.one_chain, **reading}
    proteins = list(read_proteins([path], trained.model.plan, failures, **given))
    if failures:
        raise SelectionError(f"{path} {failures[0].id}: {failures[0].reason}")
    number = {key: i for i, key in enumerate(residues.ids)}
    pairs, weights = [], []
    trained.model.eval()
    for p in proteins:
        maps = trained.model.attention(p.graph)
        mean = torch.stack([m[0].weights.mean(0) for m in maps.values()]).mean(0).double().numpy()  # (L, L)
        both = np.triu(mean + mean.T, _SEPARATION)
        best = np.argsort(-both, axis=None, kind="stable")[: len(mean)]
        own = np.array([number[key] for key in p.residues.ids])
        pairs.append(own[np.stack(np.unravel_index(best, both.shape), 1)])
        weights.append(both.ravel()[best])
    width = np.concatenate(weights)
    kept = width > 0
    return edge_set("attention", np.concatenate(pairs)[kept], width[kept] / width.max())
