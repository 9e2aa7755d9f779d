"""Labels of a table as colors, and their agreement with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.column_interpretation import interpret_column
from protgraph.data.datasets.label_table import parse_residue_numbers, read_label_table
from protgraph.data.datasets.labels import ResidueLabels
from protgraph.errors import LabelError, OptionError, list_first
from protgraph.structure import Residues
from protgraph.visualization.scene import Color
from protgraph.wording import count_noun

__all__ = ["agreement", "label_color"]

_NO_YES = ("no", "yes")


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
    known = interpret_column(table, name, is_alone=False)
    number, code = parse_residue_numbers(table)
    if "chain" not in table.keys and len(residues.chain_names) > 1:
        chains = ", ".join(residues.chain_names)
        raise OptionError(f"{table.where}: no column chain; {residues.name} has the chains {chains}. Add the column.")
    chain = table.keys.get("chain", np.full(len(table), residues.chain_names[0]))
    keep = known.is_known & _of_protein(table.keys["file"], residues.name)
    if not keep.any():
        raise LabelError(f"{table.where}: column {name!r} has no label of {residues.name}. Check the column file.")
    labels = ResidueLabels(chain[keep], number[keep], code[keep], known.values[keep], name=name)
    absent = labels.absent(residues)
    if absent.all():
        raise LabelError(f"{table.where}: no labeled residue is in {residues.name}. First: {labels.ids[0]}.")
    y = labels.align(residues, strict=False).astype(float).reshape(len(residues))
    y[y < 0 if known.kind == "classification" else np.isnan(y)] = np.nan
    ids = [labels.ids[i] for i in np.flatnonzero(absent)]
    unused = f"{count_noun(len(ids), 'label')} of residues that are absent: {list_first(ids, 5)}"
    names = {"classification": tuple(known.classes), "multilabel": _NO_YES, "regression": ()}[known.kind]
    return Color(name, y, names), (unused,) if ids else ()


def _of_protein(files: np.ndarray, name: str) -> np.ndarray:
    """Return the rows of a protein, ``(R,)`` bool, by name of the file with or without folder and suffixes."""
    return np.array([name in (file, Path(file).name, Path(file).name.split(".")[0]) for file in files.tolist()])


def agreement(label: Color, predictions: Sequence[Color]) -> Color | None:
    """Return categories of agreement of labels with the predicted classes; None if these have no classes in common."""
    predicted = next((p for p in predictions if p.name == "predicted" or p.name.startswith("predicted_")), None)
    if predicted is None or not label.labels:
        return None
    known = ~np.isnan(label.values) & ~np.isnan(predicted.values)
    if predicted.labels:
        if not set(label.labels) <= set(predicted.labels):
            return None
        places = np.array([predicted.labels.index(name) for name in label.labels], float)
        same = places[np.where(known, label.values, 0).astype(int)] == predicted.values
        return Color("agreement", np.where(known, same, np.nan), ("wrong", "correct"))
    if label.labels != _NO_YES:
        return None
    kinds = 2 * label.values + predicted.values
    return Color("agreement", kinds, ("true negative", "false positive", "false negative", "true positive"))
