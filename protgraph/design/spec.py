"""Wishes in words, ``A:10-20`` or ``A=-1.5``, or in tables, for the residues of one protein."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from protgraph.design.constraint import Constraints, any_in_group, residues_without_types
from protgraph.design.residue_table import ResidueTable, read_residue_table
from protgraph.design.selection import Tie, select_residues, parse_ties
from protgraph.errors import OptionError
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues.alphabet import UNKNOWN

__all__ = ["DesignSpec", "split_chains", "one_letter_codes"]

# How far the probabilities of a residue may be from 1 together: they were rounded.
_ROUNDED = 0.05


@dataclass(frozen=True)
class DesignSpec:
    """What is wished of every protein of a run.

    Parameters
    ----------
    chains : tuple of str
        Chains to design; the others are seen and stay. All where there are none.
    fixed : str
        Residues that keep their types: ``"A:10-20,A:30,A:50-,B"``; see :func:`protgraph.design.selection.select_rows`.
    omit : str
        Letters of types that are not to be chosen anywhere, and tables with 1 where they are not, ``"CM,loops.csv"``.
        X never is.
    bias : str
        Added to logits: ``"A=-1.5,P=0.3"`` everywhere, and tables, ``"A=-1.5,loops.csv"``.
    pssm : str or Path, optional
        A table of probabilities.
    pssm_weight : float
        From 0 to 1, how much they count.
    pssm_log_odds : str or Path, optional
        A table of log-odds. Types that are not above ``pssm_threshold`` become a thousand times less likely.
    pssm_threshold : float
    tied : tuple of str
        Each ``"A,B,C"``, chains whose residues of one number are to be alike; or ``"A:1-10,B:1-10"``, one by one. With
        weights of their logits: ``"A=1,B=-0.5"``.

    Raises
    ------
    OptionError
        What cannot be read.

    Notes
    -----
    Tables are as in :func:`protgraph.design.residue_table.read_residue_table`.
    """

    chains: tuple[str, ...] = ()
    fixed: str = ""
    omit: str = ""
    bias: str = ""
    pssm: str | Path | None = None
    pssm_weight: float = 0.5
    pssm_log_odds: str | Path | None = None
    pssm_threshold: float = 0.0
    tied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.pssm_weight <= 1:
            raise OptionError(f"pssm_weight={self.pssm_weight:g}: from 0 (the model alone) to 1 (the profile alone)")
        if math.isnan(self.pssm_threshold):
            raise OptionError("pssm_threshold is no number")
        _ = self._omit, self._bias, self._pssm, self._log_odds  # what cannot be read is told at once

    @cached_property
    def _omit(self) -> tuple[str, list[ResidueTable]]:
        letters, tables = ALPHABET[UNKNOWN], []
        for part in _parts(self.omit):
            if set(part.upper()) <= set(ALPHABET):
                letters += part.upper()
            elif Path(part).is_file():
                tables.append(read_residue_table(part))
            else:
                raise OptionError(f"omit {part!r}: give letters of {ALPHABET}, or the file of a table, which it is not")
        return letters, tables

    @cached_property
    def _bias(self) -> tuple[dict[str, float], list[ResidueTable]]:
        numbers, tables = {}, []
        for part in _parts(self.bias):
            if Path(part).is_file():
                tables.append(read_residue_table(part))
                continue
            letter, _, value = part.partition("=")
            letter = letter.strip().upper()
            try:
                numbers[letter] = float(value)
            except ValueError:
                numbers[letter] = math.nan
            if letter not in tuple(ALPHABET[:UNKNOWN]) or not math.isfinite(numbers[letter]):
                raise OptionError(f"bias {part!r}: give a letter and a number, 'A=-1.5', or the file of a table")
        return numbers, tables

    @cached_property
    def _pssm(self) -> ResidueTable | None:
        return None if self.pssm is None else read_residue_table(self.pssm)

    @cached_property
    def _log_odds(self) -> ResidueTable | None:
        return None if self.pssm_log_odds is None else read_residue_table(self.pssm_log_odds)

    def constraints(self, residues: Residues, types: int = len(ALPHABET)) -> Constraints:
        """These wishes for one protein and a model of so many types.

        Raises
        ------
        SelectionError
            Chains or residues that are not there.
        OptionError
            What cannot be wished of this protein.
        """
        chains = residues.chains(self.chains).chain_names if self.chains else residues.chain_names
        designed = np.isin(residues.chain, chains)
        if self.fixed:
            designed &= ~select_residues(residues, self.fixed)
        if not designed.any():
            raise OptionError(f"{residues.name}: no residue is left to design")
        tied = parse_ties(residues, self.tied)
        _check_ties(residues, designed, tied)
        pssm = weight = None
        if self._pssm is not None:
            pssm, named = _profile(self._pssm, residues, types)
            weight = self.pssm_weight * named  # residues that the table leaves out go by the model alone
        wished = {
            "designed": designed,
            "omit": self._omitted(residues, types),
            "bias": self._biases(residues, types),
            "pssm": pssm,
            "pssm_weight": weight,
            "unlikely": None if self._log_odds is None else self._log_odds.of(residues, types) <= self.pssm_threshold,
        }
        made = {name: None if table is None else torch.from_numpy(table) for name, table in wished.items()}
        groups = [tie.rows for tie in tied]
        none = residues_without_types(made["designed"], any_in_group(made["omit"], groups), made["pssm"], made["pssm_weight"])
        if none:
            raise OptionError(f"{residues.name}: omit leaves no type to be chosen at {residues.ids[none[0]]}")
        weights = torch.ones(len(residues), dtype=torch.float64)
        for tie in tied:
            weights[list(tie.rows)] = torch.tensor(tie.weights, dtype=torch.float64)
        return Constraints(**made, groups=groups, tie_weight=weights if tied else None)

    def _omitted(self, residues: Residues, types: int) -> np.ndarray | None:
        letters, tables = self._omit
        omitted = np.array([letter in letters for letter in ALPHABET[:types]])
        for table in tables:
            marks = table.of(residues, types)
            odd = ~(np.isnan(marks) | np.isin(marks, (0, 1)))
            if odd.any():
                raise OptionError(
                    f"{table.path}: {marks[odd][0]:g} at {_first(residues, odd)}; 1 is a type that is not to be "
                    "chosen, 0 one that may be"
                )
            omitted = omitted | (marks == 1)
        return omitted if omitted.any() else None

    def _biases(self, residues: Residues, types: int) -> np.ndarray | None:
        numbers, tables = self._bias
        if not (numbers or tables):
            return None
        bias = np.array([numbers.get(letter, 0.0) for letter in ALPHABET[:types]])
        for table in tables:
            bias = bias + np.nan_to_num(table.of(residues, types))
        return bias


def _parts(words: str) -> list[str]:
    return [part.strip() for part in words.split(",") if part.strip()]


def _first(residues: Residues, where: np.ndarray) -> str:
    return residues.ids[int(np.argwhere(where)[0, 0])]


def _profile(table: ResidueTable, residues: Residues, types: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities ``(N, types)`` that add up to 1 where the table says something, ``(N,)``, and are 0 elsewhere."""
    p = table.of(residues, types)
    named = ~np.isnan(p).all(1)
    p = np.nan_to_num(p)
    if (p < 0).any():
        raise OptionError(
            f"{table.path}: {p[p < 0][0]:g} at {_first(residues, p < 0)} is no probability; a table of log-odds is for "
            "pssm_log_odds"
        )
    total = p.sum(1)
    off = named & (abs(total - 1) > _ROUNDED)
    if off.any():
        raise OptionError(
            f"{table.path}: the probabilities of {_first(residues, off[:, None])} add up to {total[off][0]:.4g}, not "
            "to 1; divide counts and percentages by their sum"
        )
    return p / np.where(named, total, 1)[:, None], named


def _check_ties(residues: Residues, designed: np.ndarray, tied: Sequence[Tie]) -> None:
    for tie in tied:
        rows = list(tie.rows)
        stays = [row for row in rows if not designed[row]]
        if stays and designed[rows].any():
            chosen = next(row for row in rows if designed[row])
            raise OptionError(
                f"{residues.name}: {residues.ids[chosen]} is to be designed, and {residues.ids[stays[0]]}, tied to it, "
                "is to stay: fix both, or design both"
            )


def split_chains(residues: Residues, designed: Sequence[bool]) -> tuple[list[str], list[str]]:
    """Chains with a residue that is designed, and the others, by order of appearance."""
    some = set(residues.chain[np.asarray(designed)].tolist())
    return [c for c in residues.chain_names if c in some], [c for c in residues.chain_names if c not in some]


def one_letter_codes(aatype: np.ndarray) -> str:
    """One-letter codes."""
    return "".join(ALPHABET[t] for t in aatype)
