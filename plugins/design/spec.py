"""Options of a design run, given as selections, numbers and tables, and their constraints for one protein.

Tables have one number per residue and residue type: biases, omitted types, profiles.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from protgraph_plugins.design.constraints import Constraints
from protgraph_plugins.design.selection import parse_ties, select_residues, select_rows

from protgraph.argument_types import check_fields
from protgraph.errors import OptionError, ProtgraphError
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues import UNKNOWN

__all__ = ["DesignSpec", "ResidueTable", "read_design_specs", "read_residue_table"]

# Tolerance of the sum of the probabilities of a residue, for rounded tables.
_SUM_TOLERANCE = 0.05


@dataclass(frozen=True)
class DesignSpec:
    """Options of a design run, the same for every protein.

    Parameters
    ----------
    chains : tuple of str
        Chains to design; the others are visible and fixed. All chains by default.
    fixed : str
        Residues that keep their types: ``"A:10-20,A:30,A:50-,B"``.
    redesign : str
        The only residues to design, as in ``fixed``: ``"A:45-60"``. All by default.
    omit : str
        Letters of types that are never chosen, and tables with 1 for omitted types, ``"CM,loops.csv"``. X is always
        omitted.
    bias : str
        Terms added to the logits: ``"A=-1.5,P=0.3"`` at all residues, and tables, ``"A=-1.5,loops.csv"``.
    pssm : str or Path, optional
        A table of probabilities (a profile).
    pssm_weight : float
        Weight of the profile, from 0 to 1.
    pssm_log_odds : str or Path, optional
        A table of log-odds. Types with log-odds up to ``pssm_threshold`` become a thousand times less probable.
    pssm_threshold : float
    tied : tuple of str
        Each is ``"A,B,C"``, chains whose residues of equal number get the same type, or ``"A:1-10,B:1-10"``, residues
        in pairs. Weights of the logits: ``"A=1,B=-0.5"``.

    Raises
    ------
    OptionError
        An option is invalid or a table is not readable.

    Notes
    -----
    Tables are as in :func:`read_residue_table`.
    """

    chains: tuple[str, ...] = ()
    fixed: str = ""
    redesign: str = ""
    omit: str = ""
    bias: str = ""
    pssm: str | Path | None = None
    pssm_weight: float = 0.5
    pssm_log_odds: str | Path | None = None
    pssm_threshold: float = 0.0
    tied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, *(field.name for field in fields(self)))
        if not 0 <= self.pssm_weight <= 1:
            raise OptionError(
                f"invalid pssm_weight: {self.pssm_weight:g}. Use a number from 0 (model only) to 1 (profile only)."
            )
        if math.isnan(self.pssm_threshold):
            raise OptionError("invalid pssm_threshold: nan. Use a number.")
        _ = self._omit, self._bias, self._pssm, self._log_odds  # parse now, so that errors are raised early

    @cached_property
    def _omit(self) -> tuple[str, list[ResidueTable]]:
        letters, tables = ALPHABET[UNKNOWN], []
        for entry in _parts(self.omit):
            if set(entry.upper()) <= set(ALPHABET):
                letters += entry.upper()
            elif Path(entry).is_file():
                tables.append(read_residue_table(entry))
            else:
                raise OptionError(f"invalid omit: {entry!r}. Use letters of {ALPHABET}, or an existing table file.")
        return letters, tables

    @cached_property
    def _bias(self) -> tuple[dict[str, float], list[ResidueTable]]:
        numbers, tables = {}, []
        for entry in _parts(self.bias):
            if Path(entry).is_file():
                tables.append(read_residue_table(entry))
                continue
            letter, _, value = entry.partition("=")
            letter = letter.strip().upper()
            try:
                numbers[letter] = float(value)
            except ValueError:
                numbers[letter] = math.nan
            if letter not in tuple(ALPHABET[:UNKNOWN]) or not math.isfinite(numbers[letter]):
                raise OptionError(
                    f"invalid bias: {entry!r}. Use a letter and a number, 'A=-1.5', or an existing table file."
                )
        return numbers, tables

    @cached_property
    def _pssm(self) -> ResidueTable | None:
        return None if self.pssm is None else read_residue_table(self.pssm)

    @cached_property
    def _log_odds(self) -> ResidueTable | None:
        return None if self.pssm_log_odds is None else read_residue_table(self.pssm_log_odds)

    def constraints(self, residues: Residues, types: int = len(ALPHABET)) -> Constraints:
        """Return the constraints for one protein and a model with a number of types.

        Raises
        ------
        SelectionError
            Selected chains or residues do not exist.
        OptionError
            The options contradict each other for this protein.
        """
        chains = residues.chains(self.chains).chain_names if self.chains else residues.chain_names
        designed = np.isin(residues.chain, chains)
        if self.redesign:
            designed &= select_residues(residues, self.redesign)
        if self.fixed:
            designed &= ~select_residues(residues, self.fixed)
        if not designed.any():
            raise OptionError(f"no residue to design: {residues.name}. All are fixed.")
        ties = parse_ties(residues, self.tied)
        tie_weight = None
        if ties:
            tie_weight = torch.ones(len(residues), dtype=torch.float64)
            for tie in ties:
                tie_weight[list(tie.rows)] = torch.tensor(tie.weights, dtype=torch.float64)
        pssm = pssm_weight = unlikely = None
        if self._pssm is not None:
            pssm, has_profile = _profile(self._pssm, residues, types)
            pssm_weight = self.pssm_weight * has_profile  # model only for residues that the table leaves out
        if self._log_odds is not None:
            unlikely = self._log_odds.values(residues, types) <= self.pssm_threshold
        return Constraints(
            designed=torch.from_numpy(designed),
            omit=_tensor(self._omitted(residues, types)),
            bias=_tensor(self._biases(residues, types)),
            pssm=_tensor(pssm),
            pssm_weight=_tensor(pssm_weight),
            unlikely=_tensor(unlikely),
            groups=[tie.rows for tie in ties],
            tie_weight=tie_weight,
            residues=residues,
        )

    def _omitted(self, residues: Residues, types: int) -> np.ndarray | None:
        letters, tables = self._omit
        omitted = np.array([letter in letters for letter in ALPHABET[:types]])
        for table in tables:
            marks = table.values(residues, types)
            invalid = ~(np.isnan(marks) | np.isin(marks, (0, 1)))
            if invalid.any():
                raise OptionError(
                    f"invalid mark in an omit table: {marks[invalid][0]:g} at {_first(residues, invalid)} "
                    f"({table.path}). Use 1 for omitted types and 0 for allowed ones."
                )
            omitted = omitted | (marks == 1)
        return omitted if omitted.any() else None

    def _biases(self, residues: Residues, types: int) -> np.ndarray | None:
        numbers, tables = self._bias
        if not (numbers or tables):
            return None
        bias = np.array([numbers.get(letter, 0.0) for letter in ALPHABET[:types]])
        for table in tables:
            bias = bias + np.nan_to_num(table.values(residues, types))
        return bias


#: Columns of the table of :func:`read_design_specs`.
_COLUMNS = ("chains", "fixed", "redesign", "omit", "bias", "tied")
_SEPARATORS = {"chains": ",", "tied": ";"}


def read_design_specs(path: str | Path, base: DesignSpec) -> dict[str, DesignSpec]:
    """Read options per file: a CSV file with the column ``file``, and columns named as options.

    Columns are ``chains`` ("A,B"), ``fixed``, ``redesign``, ``omit``, ``bias`` and ``tied`` (";" between several). An
    empty cell is the option of ``base``.

    Returns
    -------
    dict
        File name of the table → options.

    Raises
    ------
    OptionError
        The file is not readable, a column is unknown, or a file has two rows.
    """
    try:
        reader = csv.DictReader(Path(path).read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as e:
        raise OptionError(f"options not readable: {path} ({e}).") from e
    columns = list(reader.fieldnames or ())
    unknown = [column for column in columns if column not in ("file", *_COLUMNS)]
    if "file" not in columns or unknown:
        raise OptionError(f"wrong columns: {columns} ({path}). Allowed: file, {', '.join(_COLUMNS)}.")
    specs: dict[str, DesignSpec] = {}
    for row in reader:
        name = (row.pop("file") or "").strip()
        if name in specs:
            raise OptionError(f"two rows for {name!r} ({path}, line {reader.line_num}). Write one row per file.")
        specs[name] = _changed_spec(base, row)
    return specs


def _changed_spec(base: DesignSpec, cells: Mapping[str, str | None]) -> DesignSpec:
    """Return options with those of the cells that are not empty."""
    changed: dict[str, str | tuple[str, ...]] = {}
    for column, cell in cells.items():
        text = (cell or "").strip()
        separator = _SEPARATORS.get(column)
        if text and separator is not None:
            changed[column] = tuple(entry.strip() for entry in text.split(separator))
        elif text:
            changed[column] = text
    return replace(base, **changed)


def _tensor(table: np.ndarray | None) -> torch.Tensor | None:
    return None if table is None else torch.from_numpy(table)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _first(residues: Residues, mask: np.ndarray) -> str:
    return residues.ids[int(np.argwhere(mask)[0, 0])]


def _profile(table: ResidueTable, residues: Residues, types: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normalized probabilities ``(N, types)``, and a mask ``(N,)`` of the residues that the table has."""
    p = table.values(residues, types)
    mask = ~np.isnan(p).all(1)
    p = np.nan_to_num(p)
    if (p < 0).any():
        raise OptionError(
            f"negative probability: {p[p < 0][0]:g} at {_first(residues, p < 0)} ({table.path}). Use pssm_log_odds for "
            "log-odds."
        )
    total = p.sum(1)
    invalid = mask & (abs(total - 1) > _SUM_TOLERANCE)
    if invalid.any():
        raise OptionError(
            f"probabilities with sum {total[invalid][0]:.4g} at {_first(residues, invalid[:, None])} ({table.path}). "
            "They must add up to 1. Divide counts and percentages by their sum."
        )
    return p / np.where(mask, total, 1)[:, None], mask


@dataclass(frozen=True, eq=False)
class ResidueTable:
    """Numbers per residue type for selections of residues.

    Parameters
    ----------
    path : str
        Table file, for error messages.
    rows : tuple of (int, str, mapping of str to float)
        Line number, selection of residues as in the option ``fixed``, and numbers by one-letter code.
    """

    path: str
    rows: tuple[tuple[int, str, Mapping[str, float]], ...]

    def values(self, residues: Residues, types: int) -> np.ndarray:
        """Return ``(N, types)`` float64 for these residues; NaN where the table has no number.

        Raises
        ------
        SelectionError
            A row selects residues that do not exist.
        OptionError
            Two rows select the same residue.
        """
        single = {name: [n] for n, name in enumerate(residues.ids)}
        table, lines = np.full((len(residues), types), np.nan), np.zeros(len(residues), int)
        for line, selection, numbers in self.rows:
            try:
                rows = single[selection] if selection in single else select_rows(residues, selection)
            except ProtgraphError as e:
                raise type(e)(f"{self.path}, line {line}: {e}") from e
            twice = [n for n in rows if lines[n]]
            if twice:
                raise OptionError(
                    f"duplicate residue in a table: {residues.ids[twice[0]]} of {residues.name} "
                    f"({self.path}, lines {lines[twice[0]]} and {line})."
                )
            lines[rows] = line
            for letter, number in numbers.items():
                if ALPHABET.index(letter) < types:
                    table[rows, ALPHABET.index(letter)] = number
        return table


def read_residue_table(path: str | Path) -> ResidueTable:
    """Read a CSV file with the columns ``chain``, ``res_id``, optionally ``ins_code``, and one-letter codes.

    ``res_id`` is a number, a range ``10-20`` or ``10-``, or empty for the whole chain. Empty cells have no number.
    Other columns are ignored.

    Raises
    ------
    OptionError
        The file is not readable, lacks these columns or has cells that are not numbers.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as e:
        raise OptionError(f"table not readable: {path} ({e.strerror}).") from e
    except UnicodeDecodeError as e:
        raise OptionError(f"table not readable: {path}. The content is not UTF-8 text.") from e
    reader = csv.DictReader(text.splitlines())
    columns = list(reader.fieldnames or ())
    letters = [c for c in columns if c in tuple(ALPHABET)]
    if not {"chain", "res_id"} <= set(columns) or not letters:
        raise OptionError(f"wrong columns: {columns} ({path}). Required: chain, res_id and one-letter codes.")
    rows = tuple(_row(path, reader.line_num, row, letters) for row in reader)
    if not rows:
        raise OptionError(f"empty table: {path}.")
    return ResidueTable(str(path), rows)


def _row(path: str | Path, line: int, row: Mapping[str, str], letters: list[str]) -> tuple[int, str, dict[str, float]]:
    place = f"{(row['res_id'] or '').strip()}{(row.get('ins_code') or '').strip()}"
    selection = f"{row['chain'].strip()}:{place}" if place else row["chain"].strip()
    numbers: dict[str, float] = {}
    for letter in letters:
        text = (row[letter] or "").strip()
        try:
            number = float(text) if text else None
        except ValueError as e:
            raise OptionError(f"not a number: {text!r} ({path}, line {line}, column {letter}).") from e
        if number is not None and not math.isfinite(number):
            raise OptionError(f"not a finite number: {text!r} ({path}, line {line}, column {letter}).")
        if number is not None:
            numbers[letter] = number
    return line, selection, numbers
