"""Tables of predictions: per residue, protein, pair or interface; and one value per residue to show on a structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, suggest
from protgraph.failure import Failure
from protgraph.inference.input_warnings import InputWarning
from protgraph.inference.result_table import ResultTable, Row, rows_by_file
from protgraph.structure.compare.interfaces import INTERFACE_CUTOFF, chain_interfaces
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.residue_values import ResidueValues
from protgraph.structure.io.sources import read_residues
from protgraph.structure.residues.residues import Residues
from protgraph.wording import count_noun

__all__ = [
    "Predictions",
    "ValueColumn",
    "choose_value",
    "interface_table",
    "pooled_columns",
    "prediction_columns",
    "target_names",
]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(ResultTable):
    """Table of predictions, and the files that failed.

    Parameters
    ----------
    columns : tuple of str
        Identity of a residue, protein, pair or edge, then the prediction. Classification: ``predicted`` (name of the
        class) and the probability ``p_<class>`` of each. Multilabel: ``p_<label>`` and ``predicted_<label>`` (0 or 1,
        at the threshold chosen in training). Regression: one column per value; vectors and coordinates: three each.
    rows : list of tuple
        In the order of files, chains and residues.
    failures : list of Failure
        Files and chains without rows.
    target : Target
        What the model predicts.
    notes : tuple of str
        Messages for the user, e.g. that features of a graph store are recomputed, and one for each kind of warning.
    warnings : tuple of InputWarning
        Inputs with missing atoms or residues, or unlike the training set.
    origin : tuple of str
        Model, task and version, one text each, for the headers of written files.
    read : ReadOptions
        Options that the files were read with.

    Examples
    --------
    >>> target = Target("site", "node", "multilabel", 1, ("site",))
    >>> columns = ("file", "chain", "res_id", "ins_code", "res_name", "p_site", "predicted_site")
    >>> predictions = Predictions(columns, [("1abc.pdb", "A", 7, "", "GLY", 0.75, 1)], [], target)
    >>> predictions
    Predictions(1 row of 1 file)
        file  chain  res_id  ins_code  res_name  p_site  predicted_site
    1abc.pdb      A       7                 GLY    0.75               1
    >>> predictions.column("p_site")
    array([0.75])
    """

    failures: list[Failure]
    target: Target
    notes: tuple[str, ...] = ()
    warnings: tuple[InputWarning, ...] = ()
    origin: tuple[str, ...] = ()
    read: ReadOptions = field(default_factory=ReadOptions)

    @property
    def _heading(self) -> str:
        files = count_noun(len({row[0] for row in self.rows}), "file")
        failed = f", {count_noun(len(self.failures), 'failure')}" if self.failures else ""
        return f"Predictions({count_noun(len(self), 'row')} of {files}{failed})"

    def residue_values(self, value: str | None = None) -> dict[str, ResidueValues]:
        """Return one value per residue of each file, by file, to write into structure files.

        Parameters
        ----------
        value : str, optional
            Predicted column, or "confidence", the probability of the predicted class. Default: the only value per
            residue; the probability of the second of two classes; the confidence for more classes.

        Raises
        ------
        OptionError
            There is no such value, several values have no default, or the predictions are not per residue.
        """
        chosen = choose_value(self.target, value)
        return {file: self._values_of(rows, chosen) for file, rows in rows_by_file(self.rows).items()}

    def file_means(self) -> dict[str, tuple[int, tuple[float, ...]]]:
        """Return the number of residues of each file, and the mean over them of each predicted value.

        Raises
        ------
        OptionError
            The predictions are not values per residue.
        """
        target = self.target
        if (target.level, target.kind) != ("node", "regression"):
            raise OptionError(
                f"means per file: target {target.name!r} is {target.kind} per {target.level}. Allowed: values per "
                "residue."
            )
        means = {}
        for file, rows in rows_by_file(self.rows).items():
            values = np.array([row[-target.size :] for row in rows], np.float64)
            means[file] = len(rows), tuple(values.mean(axis=0).tolist())
        return means

    def _values_of(self, rows: list[Row], chosen: ValueColumn) -> ResidueValues:
        chain, number, code, name = (np.array(column) for column in list(zip(*rows, strict=True))[1:5])
        return ResidueValues(
            name=chosen.name,
            chain=chain,
            res_id=number,
            ins_code=code,
            res_name=name,
            values=chosen.of_rows(self.columns, rows),
            is_probability=chosen.is_probability,
            classes=chosen.classes,
            origin=self.origin,
        )


_KEYS = ("chain_1", "chain_2")


def pooled_columns(target: Target, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the predicted columns that are pooled: probabilities and values, not classes."""
    if target.level not in ("node", "pair") or target.is_geometric:
        raise OptionError(
            f"no prediction per interface: the model predicts {target.name!r}, {target.kind} per {target.level}. "
            "Allowed: probabilities and values per residue or per pair of residues."
        )
    return tuple(name for name in columns if not name.startswith("predicted"))


def interface_table(predictions: Predictions, *, cutoff: float = INTERFACE_CUTOFF) -> ResultTable:
    """Return one row per pair of chains with the predictions pooled over their interface.

    Returns
    -------
    ResultTable
        Per residue: ``file``, ``chain_1``, ``chain_2``, the numbers of residues of both in contact and of pairs in
        contact in the structure, and the mean of each predicted column over the residues of chain 1, of chain 2 and of
        both. Chains without contact have no row.
        Per pair: ``file``, ``chain_1``, ``chain_2``, the number of pairs of residues, and the sum and the maximum of
        each column over all pairs of the two chains. The sum of probabilities is the expected number of contacts. The
        positions of the chains in the file are not used.
    """
    identity = predictions.columns.index("res_name" if predictions.target.level == "node" else "res_name_2") + 1
    names = pooled_columns(predictions.target, predictions.columns[identity:])
    places = [predictions.columns.index(name) for name in names]
    groups = rows_by_file(predictions.rows)
    rows: list[Row] = []
    if predictions.target.level == "pair":
        columns = ["file", *_KEYS, "pairs"]
        for name in names:
            columns += [f"sum_{name}", f"max_{name}"]
        for file, pair_rows in groups.items():
            rows += _of_pairs(file, pair_rows, predictions.columns, places)
        return ResultTable(tuple(columns), rows)
    columns = ["file", *_KEYS, "residues_1", "residues_2", "contacts"]
    for name in names:
        columns += [f"{name}_1", f"{name}_2", name]
    for file, pair_rows in groups.items():
        residues = read_residues(file, predictions.read)
        rows += _of_residues(file, residues, pair_rows, places, cutoff)
    return ResultTable(tuple(columns), rows)


def _of_residues(
    file: str, residues: Residues, rows: Sequence[Row], places: Sequence[int], cutoff: float
) -> Iterator[Row]:
    """Yield the rows of one file from predictions per residue; residues without a prediction are not pooled."""
    known = {}
    for row in rows:
        known[tuple(row[1:4])] = [row[i] for i in places]
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    missing = [np.nan] * len(places)
    values = np.array([known.get(key, missing) for key in keys], np.float64)  # (N, V)
    for interface in chain_interfaces(residues, cutoff):
        first, second = interface.residues
        both = np.concatenate([first, second])
        means = [_mean(values[first]), _mean(values[second]), _mean(values[both])]
        pooled = np.stack(means, axis=1).flatten().tolist()  # of each column: chain 1, chain 2, both
        yield (file, *interface.chains, len(first), len(second), interface.pairs.shape[1], *pooled)


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of known rows, ``(R, V)`` to ``(V,)``; NaN without any."""
    known = values[~np.isnan(values).any(axis=1)]
    return known.mean(axis=0) if len(known) else np.full(values.shape[1], np.nan)


def _of_pairs(file: str, rows: Sequence[Row], columns: Sequence[str], places: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of one file from predictions per pair of residues."""
    sides = columns.index("chain_1"), columns.index("chain_2")
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        first, second = (str(row[side]) for side in sides)
        if first != second:
            groups.setdefault((first, second), []).append([float(row[i]) for i in places])
    for chains, values in groups.items():
        table = np.array(values)  # (P, V)
        pooled = np.stack([table.sum(axis=0), table.max(axis=0)], axis=1).flatten().tolist()
        yield (file, *chains, len(values), *pooled)


_CONFIDENCE = "confidence"


@dataclass(frozen=True)
class ValueColumn:
    """One value per row of predictions."""

    name: str  # predicted column, or "confidence", the largest probability of a class
    is_probability: bool = False  # True for values from 0 to 1
    classes: tuple[str, ...] = ()  # names of the classes whose index is the value; empty for numbers

    def of_rows(self, columns: Sequence[str], rows: Sequence[Row]) -> np.ndarray:
        """Return the value of each row of a table, ``(rows,)`` float64."""
        if self.name == _CONFIDENCE and _CONFIDENCE not in columns:
            first = columns.index("predicted") + 1
            return np.array([max(map(float, row[first:])) for row in rows], np.float64)
        place = columns.index(self.name)
        return np.array([self.classes.index(r[place]) if self.classes else r[place] for r in rows], np.float64)


def target_names(target: Target) -> tuple[str, ...]:
    """Return the names of the classes, labels or values of a target."""
    if target.names:
        return target.names
    return (target.name,) if target.size == 1 else tuple(map(str, range(target.size)))


def prediction_columns(target: Target) -> tuple[str, ...]:
    """Return the names of the predicted columns of a target; see :class:`protgraph.inference.Predictions`."""
    names = target_names(target)
    if target.kind == "classification":
        return ("predicted", *(f"p_{name}" for name in names))
    if target.kind == "multilabel":
        return tuple(column for name in names for column in (f"p_{name}", f"predicted_{name}"))
    if target.is_geometric:
        return tuple(f"{name}_{axis}" for name in names for axis in "xyz")
    return names


def choose_value(target: Target, name: str | None = None) -> ValueColumn:
    """Return the value of a residue that is shown on a structure.

    Examples
    --------
    >>> choose_value(Target("site", "node", "multilabel", 1, ("site",))).name
    'p_site'
    """
    if target.level != "node":
        what = {"graph": "protein", "pair": "pair of residues", "edge": "edge"}[target.level]
        raise OptionError(
            f"no value per residue: the model predicts {target.name!r} per {what}. Structure files and attributes need "
            "a value per residue; write the table alone."
        )
    columns = prediction_columns(target)
    allowed = (*columns, *((_CONFIDENCE,) if target.kind == "classification" else ()))
    name = _default(target, columns) if name is None else name
    if name is None or name not in allowed:
        problem = "several values per residue" if name is None else f"no value {name!r}"
        hint = "" if name is None else suggest(name, allowed)
        raise OptionError(f"{problem}. Select one with --value (in Python value=): {', '.join(allowed)}.{hint}")
    is_class = target.kind == "classification" and name == "predicted"
    probabilities = {"classification": not is_class, "multilabel": name.startswith("p_")}
    classes = target_names(target) if is_class else ()
    return ValueColumn(name, is_probability=probabilities.get(target.kind, False), classes=classes)


def _default(target: Target, columns: Sequence[str]) -> str | None:
    if target.kind == "classification":
        return columns[-1] if target.size == 2 else _CONFIDENCE
    return columns[0] if target.size == 1 and not target.is_geometric else None
