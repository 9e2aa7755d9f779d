"""Predictions, attributions and labels as colors of a scene, and the attention of a model as its edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from protgraph_plugins.view.scene import Color, EdgeSet, edge_set

from protgraph.checkpoint import Checkpoint, as_checkpoint
from protgraph.data import ResidueLabels
from protgraph.data.datasets import interpret_column, parse_residue_numbers, read_label_table
from protgraph.errors import LabelError, OptionError, SelectionError, list_first
from protgraph.featurize import Failure, ProteinRequest
from protgraph.inference import choose_value, featurized_proteins, predict
from protgraph.structure import Residues
from protgraph.wording import count_noun

__all__ = ["agreement", "attention_edges", "attribution_color", "label_color", "prediction_colors"]

_KEYS = ("file", "chain", "res_id", "ins_code", "res_name")
_SEPARATION = 3  # residues; edges between closer ones are hidden by the backbone
_NO_YES = ("no", "yes")


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
    colors = {}
    for place in range(len(_KEYS), len(predictions.columns)):
        name = predictions.columns[place]
        values = _values_of_residues(residues, predictions.rows, place)
        is_probability = choose_value(trained.model.target, name).is_probability
        colors[name] = replace(_color(name, values), is_probability=is_probability)
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
    from protgraph_plugins.attribution import explain  # another extension, which may be absent

    result = explain(checkpoint, _request(residues), value=value)
    if result.failures and not result.rows:
        raise SelectionError(f"{residues.name}: {result.failures[0].reason}")
    values = _values_of_residues(residues, result.rows, result.columns.index("attribution"))
    notes = [f"attributions to {result.value}"]
    if result.incomplete:
        notes.append(f"attributions are incomplete by over 1 %: {'; '.join(result.completeness)}")
    return replace(_color("attribution", values), is_signed=True), tuple(notes)


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
    row_of = {key: row for row, key in enumerate(residues.ids)}
    network = trained.single_model("attention").eval()
    pairs, weights = [], []
    for protein in proteins:  # one for each chain if the model was trained on single chains
        # Mean over heads, then over layers, (L, L).
        maps = [attention[0].weights.mean(0) for attention in network.attention(protein.graph).values()]
        mean = torch.stack(maps).mean(0).double().numpy()

        # The L pairs with the largest attention in both directions.
        both_ways = np.triu(mean + mean.T, _SEPARATION)
        best = np.argsort(-both_ways, axis=None, kind="stable")[: len(mean)]
        first, second = np.unravel_index(best, both_ways.shape)
        rows = np.array([row_of[key] for key in protein.residues.ids])
        pairs.append(np.stack([rows[first], rows[second]], 1))
        weights.append(both_ways[first, second])

    width = np.concatenate(weights)
    is_positive = width > 0
    return edge_set("attention", np.concatenate(pairs)[is_positive], width[is_positive] / width.max())


def label_color(source: Any, residues: Residues, *, column: str | None = None) -> tuple[Color, tuple[str, ...]]:
    """Return a column of a label table as color, NaN for residues without a label, and notes on what was left out.

    Parameters
    ----------
    source : str, Path or data frame
        Table with the columns file, chain (optional for one chain), res_id, ins_code (optional), and a label column,
        as for training. Rows of other files than the protein's name, with or without folder and suffix, are ignored.
    residues : Residues
    column : str, optional
        Label column; required if there are several.

    Raises
    ------
    LabelError
        The table has no labels per residue, or none of this protein, or several label columns and none is chosen.
    OptionError
        The table names no chains, and the protein has several.
    """
    table = read_label_table(source)
    if not table.is_per_residue:
        raise LabelError(f"{table.where}: no column res_id. Labels per residue require one, with e.g. 42 or 100B.")
    if column is None and len(table.labels) > 1:
        raise LabelError(
            f"{table.where} has {len(table.labels)} label columns: {list_first(list(table.labels), 8)}. "
            "Choose one with --label (label=)."
        )
    name = table.select(None, column)[0]
    interpreted = interpret_column(table, name, is_alone=False)
    number, code = parse_residue_numbers(table)
    if "chain" not in table.keys and len(residues.chain_names) > 1:
        chains = ", ".join(residues.chain_names)
        raise OptionError(f"{table.where}: no column chain; {residues.name} has the chains {chains}. Add the column.")
    chain = table.keys.get("chain", np.full(len(table), residues.chain_names[0]))

    # Labels of this protein, in the order of its residues.
    rows = interpreted.is_known & _is_of_protein(table.keys["file"], residues.name)
    if not rows.any():
        raise LabelError(f"{table.where}: column {name!r} has no label of {residues.name}. Check the column file.")
    labels = ResidueLabels(chain[rows], number[rows], code[rows], interpreted.values[rows], name=name)
    absent = labels.absent(residues)
    if absent.all():
        raise LabelError(f"{table.where}: no labeled residue is in {residues.name}. First: {labels.ids[0]}.")
    y = labels.align(residues, strict=False).astype(float).reshape(len(residues))
    categories: tuple[str, ...] = ()
    if interpreted.kind == "classification":
        categories = tuple(interpreted.classes)
        y[y < 0] = np.nan  # no label
    elif interpreted.kind == "multilabel":
        categories = _NO_YES
    notes = []
    if absent.any():
        ids = [labels.ids[i] for i in np.flatnonzero(absent)]
        notes.append(f"{count_noun(len(ids), 'label')} of residues that are absent: {list_first(ids, 5)}")
    return Color(name, y, categories), tuple(notes)


def agreement(label: Color, predictions: Sequence[Color]) -> Color | None:
    """Return categories of agreement of labels with the predicted classes; None if these have no classes in common."""
    predicted = next((p for p in predictions if p.name == "predicted" or p.name.startswith("predicted_")), None)
    if predicted is None or not label.labels:
        return None
    if predicted.labels:
        if not set(label.labels) <= set(predicted.labels):
            return None
        # The classes of the labels, as numbers of the predicted classes.
        is_known = ~np.isnan(label.values) & ~np.isnan(predicted.values)
        class_number = np.array([predicted.labels.index(name) for name in label.labels], float)
        label_class = np.where(is_known, label.values, 0).astype(int)
        is_equal = class_number[label_class] == predicted.values
        return Color("agreement", np.where(is_known, is_equal, np.nan), ("wrong", "correct"))
    if label.labels != _NO_YES:
        return None
    kinds = 2 * label.values + predicted.values
    return Color("agreement", kinds, ("true negative", "false positive", "false negative", "true positive"))


def _request(residues: Residues) -> ProteinRequest:
    return ProteinRequest(residues.name, read=lambda: residues)


def _values_of_residues(residues: Residues, rows: Sequence[tuple[Any, ...]], column: int) -> list[Any]:
    """Return the value of each residue in a table with the columns of ``_KEYS``; None for residues without a row."""
    value_of = {row[1:4]: row[column] for row in rows}
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    return [value_of.get(key) for key in keys]


def _color(name: str, values: list[Any]) -> Color:
    """Return numbers, or texts as categories in alphabetical order; None is no value."""
    labels = tuple(sorted({value for value in values if isinstance(value, str)}))
    numbers = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if value is not None:
            numbers[i] = labels.index(value) if labels else float(value)
    return Color(name, numbers, labels)


def _is_of_protein(files: np.ndarray, name: str) -> np.ndarray:
    """Return the rows of a protein, ``(R,)`` bool, by name of the file with or without folder and suffixes."""
    is_of_protein = []
    for file in files.tolist():
        base = Path(file).name
        is_of_protein.append(name in (file, base, base.split(".")[0]))
    return np.array(is_of_protein)
