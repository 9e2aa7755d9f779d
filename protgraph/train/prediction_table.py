"""Table of predictions, and their values per residue."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.failure import Failure
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.residue_values import ResidueValues
from protgraph.train.input_warnings import InputWarning
from protgraph.train.result_table import ResultTable, Row
from protgraph.train.value_column import ValueColumn, choose_value
from protgraph.wording import count_noun

__all__ = ["Predictions"]


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
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(str(row[0]), []).append(row)
        return {file: self._values_of(rows, chosen) for file, rows in groups.items()}

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
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(str(row[0]), []).append(row[-target.size :])
        return {
            file: (len(rows), tuple(np.mean(np.array(rows, np.float64), axis=0).tolist()))
            for file, rows in groups.items()
        }

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
