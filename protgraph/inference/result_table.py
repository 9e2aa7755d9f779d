"""Tables of results: columns and rows, conversion to pandas and Arrow, and CSV or Parquet files."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from protgraph.errors import MissingExtraError, OptionError, UnknownNameError, suggest
from protgraph.file_io import atomic_write
from protgraph.wording import count_noun, html_table

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from protgraph.structure.residues.residues import Residues

__all__ = ["TABLE_SUFFIXES", "ResultTable", "Row", "residue_keys", "rows_by_file"]

Row = tuple[str | int | float, ...]

TABLE_SUFFIXES = (".csv", ".parquet")
"""Suffixes of files of :meth:`ResultTable.write`."""

_SHOWN_ROWS = 5
_CELL = 24  # characters


@dataclass(frozen=True, eq=False, repr=False)
class ResultTable:
    """Table with named columns; its text has the first five rows."""

    columns: tuple[str, ...]
    rows: list[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return self.text(_SHOWN_ROWS)

    @property
    def _heading(self) -> str:
        return f"{type(self).__name__}({count_noun(len(self), 'row')})"

    def text(self, rows: int) -> str:
        """Return the first rows as aligned text, with long cells shortened."""
        cells = [list(self.columns)]
        for row in self.rows[:rows]:
            cells.append([_cell(value) for value in row])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self._heading]
        for texts in cells:
            padded = [text.rjust(width) for text, width in zip(texts, widths, strict=True)]
            lines.append("  ".join(padded))
        if len(self) > rows:
            lines.append(f"… {count_noun(len(self) - rows, 'more row')}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        more = len(self) - _SHOWN_ROWS
        note = f"… {count_noun(more, 'more row')}" if more > 0 else ""
        return html_table(self._heading, self.columns, self.rows[:_SHOWN_ROWS], note=note)

    def column(self, name: str) -> np.ndarray:
        """Return one column, ``(rows,)`` str, int64 or float64."""
        if name not in self.columns:
            hint = suggest(name, self.columns)
            raise UnknownNameError(f"no column {name!r}. The columns are {', '.join(self.columns)}.{hint}")
        place = self.columns.index(name)
        return np.array([row[place] for row in self.rows])

    def to_frame(self) -> pandas.DataFrame:
        """Return the table as a pandas data frame."""
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

        A CSV file has 9 significant digits, which identify each float32. An existing file is replaced.
        """
        path = Path(path)
        if path.suffix not in TABLE_SUFFIXES:
            raise OptionError(f"wrong suffix of a table: {str(path)!r}. Allowed: {', '.join(TABLE_SUFFIXES)}.")
        with atomic_write(path) as temporary:
            if path.suffix == ".csv":
                with open(temporary, "w", encoding="utf-8", newline="") as file:
                    self.write_csv(file)
            else:
                import pyarrow.parquet as pq

                pq.write_table(self.to_arrow(), temporary)
        return path

    def write_csv(self, file: TextIO, *, line_end: str = "\r\n") -> None:
        """Write the table as CSV to an open file, e.g. ``sys.stdout``; see :meth:`write`."""
        writer = csv.writer(file, lineterminator=line_end)
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([f"{v:.9g}" if isinstance(v, float) else v for v in row])


def rows_by_file(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each file, which is their first value."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[0]), []).append(row)
    return groups


def residue_keys(residues: Residues) -> list[Row]:
    """Return chain, number, insertion code and name of each residue."""
    columns = (residues.chain, residues.res_id, residues.ins_code, residues.res_name)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _CELL else "…" + text[1 - _CELL :]
