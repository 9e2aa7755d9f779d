"""Table of predictions: columns and rows, conversion to pandas and Arrow, and CSV or Parquet files."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.errors import MissingExtraError, OptionError, UnknownNameError, suggest
from protgraph.failure import Failure
from protgraph.file_io import atomic_write
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.residue_values import ResidueValues
from protgraph.train.input_warnings import InputWarning
from protgraph.train.value_column import ValueColumn, choose_value
from protgraph.wording import count_noun

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Predictions", "Row", "check_table_suffix"]

Row = tuple[str | int | float, ...]

_SHOWN_ROWS = 5
_CELL = 24  # characters


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
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

    columns: tuple[str, ...]
    rows: list[Row]
    failures: list[Failure]
    target: Target
    notes: tuple[str, ...] = ()
    warnings: tuple[InputWarning, ...] = ()
    origin: tuple[str, ...] = ()
    read: ReadOptions = field(default_factory=ReadOptions)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        files = count_noun(len({row[0] for row in self.rows}), "file")
        failed = f", {count_noun(len(self.failures), 'failure')}" if self.failures else ""
        lines = [f"Predictions({count_noun(len(self), 'row')} of {files}{failed})"]
        cells = [list(self.columns), *([_cell(v) for v in row] for row in self.rows[:_SHOWN_ROWS])]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        if len(self) > _SHOWN_ROWS:
            lines.append(f"… {count_noun(len(self) - _SHOWN_ROWS, 'more row')}")
        return "\n".join(lines)

    def column(self, name: str) -> np.ndarray:
        """Return one column, ``(rows,)`` str, int64 or float64.

        Raises
        ------
        UnknownNameError
            The table does not have this column.
        """
        if name not in self.columns:
            hint = suggest(name, self.columns)
            raise UnknownNameError(f"no column {name!r}. The columns are {', '.join(self.columns)}.{hint}")
        place = self.columns.index(name)
        return np.array([row[place] for row in self.rows])

    def to_frame(self) -> pandas.DataFrame:
        """Return the table as a pandas data frame.

        Raises
        ------
        MissingExtraError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as e:
            raise MissingExtraError("to_frame needs pandas: pip install 'protgraph-pyg[pandas]'") from e
        return pd.DataFrame.from_records(self.rows, columns=list(self.columns))

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as an Arrow table."""
        import pyarrow as pa

        values = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        return pa.table({name: pa.array(column) for name, column in zip(self.columns, values, strict=True)})

    def write(self, path: str | Path) -> Path:
        """Write the table to a ``.csv`` or ``.parquet`` file, chosen by the suffix, and return the path.

        A CSV file has 9 significant digits, which identify each float32.

        Raises
        ------
        OptionError
            The path has another suffix.
        """
        path = check_table_suffix(path)
        with atomic_write(path) as temporary:
            if path.suffix == ".csv":
                self._write_csv(temporary)
            else:
                import pyarrow.parquet as pq

                pq.write_table(self.to_arrow(), temporary)
        return path

    def _write_csv(self, path: Path) -> None:
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in self.rows:
                writer.writerow([f"{v:.9g}" if isinstance(v, float) else v for v in row])

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


def check_table_suffix(path: str | Path) -> Path:
    """Return the path of a table.

    Raises
    ------
    OptionError
        Its suffix is neither .csv nor .parquet.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise OptionError(f"wrong suffix of predictions: {str(path)!r}. Allowed: .csv, .parquet.")
    return path


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _CELL else "…" + text[1 - _CELL :]
