"""Predictions and attention of a trained model as colors and edges of a scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from protgraph.errors import OptionError, SelectionError
from protgraph.featurize import Failure, ProteinRequest
from protgraph.structure import Residues
from protgraph.train import explain, predict
from protgraph.train.checkpoint import Checkpoint, as_checkpoint
from protgraph.train.predict import featurized_proteins
from protgraph.train.value_column import choose_value
from protgraph.visualization.scene import Color, EdgeSet, edge_set

__all__ = ["attention_edges", "attribution_color", "prediction_colors"]

_KEYS = ("file", "chain", "res_id", "ins_code", "res_name")
_SEPARATION = 3  # residues; edges between closer ones are hidden by the backbone


def prediction_colors(
    checkpoint: str | Path | Checkpoint, residues: Residues
) -> tuple[dict[str, Color], tuple[str, ...]]:
    """Return every column that a model predicts per residue, by name, and notes; NaN for residues without a prediction.

    The notes are those of :func:`protgraph.predict`, e.g. that the protein is unlike the training set.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        Trained model.
    residues : Residues
        Protein; with ligands if the model reads them.

    Raises
    ------
    OptionError
        The predictions are not per residue.
    SelectionError
        The protein cannot be featurized for the model.
    """
    trained = as_checkpoint(checkpoint)
    predictions = predict(trained, _request(residues))
    if predictions.failures and not predictions.rows:
        raise SelectionError(f"{residues.name}: {predictions.failures[0].reason}")
    if predictions.columns[: len(_KEYS)] != _KEYS:
        columns = ", ".join(predictions.columns)
        raise OptionError(f"predictions of the model are not per residue. Columns: {columns}.")
    place = {row[1:4]: row[len(_KEYS) :] for row in predictions.rows}
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    rows = [place.get(key) for key in keys]
    found = {name: _color(name, [r and r[i] for r in rows]) for i, name in enumerate(predictions.columns[len(_KEYS) :])}
    target = trained.model.target
    colors = {
        name: replace(color, is_probability=True) if choose_value(target, name).is_probability else color
        for name, color in found.items()
    }
    return colors, predictions.notes


def attribution_color(
    checkpoint: str | Path | Checkpoint, residues: Residues, *, value: str | None = None
) -> tuple[Color, tuple[str, ...]]:
    """Return the attribution of each residue to the mean prediction, and a note if attributions are incomplete.

    Parameters
    ----------
    checkpoint, residues
        See :func:`prediction_colors`.
    value : str, optional
        Predicted column that is explained; see :func:`protgraph.explain`.

    Raises
    ------
    OptionError
        The value cannot be explained.
    SelectionError
        The protein cannot be featurized for the model.
    """
    result = explain(checkpoint, _request(residues), value=value)
    if result.failures and not result.rows:
        raise SelectionError(f"{residues.name}: {result.failures[0].reason}")
    column = result.columns.index("attribution")
    place = {row[1:4]: float(row[column]) for row in result.rows}
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    values = np.array([place.get(key, np.nan) for key in keys])
    notes = [f"attributions to {result.value}"]
    if result.incomplete:
        notes.append(f"attributions are incomplete by over 1 %: {'; '.join(result.completeness)}")
    return Color("attribution", values, is_signed=True), tuple(notes)


def _request(residues: Residues) -> ProteinRequest:
    return ProteinRequest(residues.name, read=lambda: residues)


def _color(name: str, values: list[object]) -> Color:
    labels = tuple(sorted({v for v in values if isinstance(v, str)}))
    number = [np.nan if v is None else labels.index(v) if labels else float(v) for v in values]
    return Color(name, np.array(number), labels)


def attention_edges(checkpoint: str | Path | Checkpoint, residues: Residues) -> EdgeSet:
    """Return the L pairs with the largest attention, the mean of A + Aᵀ over layers and heads, for L residues.

    Parameters
    ----------
    checkpoint, residues
        See :func:`prediction_colors`.

    Raises
    ------
    WiringError
        The model has no attention between residues.
    SelectionError
        The protein cannot be featurized for the model.
    """
    trained = as_checkpoint(checkpoint)
    failures: list[Failure] = []
    proteins = list(featurized_proteins(trained, _request(residues), failures, [], read=None, jobs=1))
    if failures:
        raise SelectionError(str(failures[0]))
    number = {key: i for i, key in enumerate(residues.ids)}
    pairs, weights = [], []
    network = trained.single_model("attention").eval()
    for p in proteins:
        maps = network.attention(p.graph)
        mean = torch.stack([m[0].weights.mean(0) for m in maps.values()]).mean(0).double().numpy()  # (L, L)
        both = np.triu(mean + mean.T, _SEPARATION)
        best = np.argsort(-both, axis=None, kind="stable")[: len(mean)]
        rows = np.array([number[key] for key in p.residues.ids])
        pairs.append(rows[np.stack(np.unravel_index(best, both.shape), 1)])
        weights.append(both.ravel()[best])
    width = np.concatenate(weights)
    positive = width > 0
    return edge_set("attention", np.concatenate(pairs)[positive], width[positive] / width.max())
