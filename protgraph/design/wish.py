"""Wishes in words, ``A:10-20`` or ``A=-1.5``, or in tables, for the residues of one protein."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protgraph.design.constraint import Constraints
from protgraph.errors import OptionError, SelectionError
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.alphabet import UNKNOWN

__all__ = ["Wish", "chosen_chains", "letters", "read_table", "select", "tied_groups"]

_PART = re.compile(r"(?P<chain>[^:,]+)(:(?P<first>-?\d+)(?P<code>[A-Za-z]?)(-(?P<last>-?\d+)(?P<code2>[A-Za-z]?))?)?")
_LAST = "~"  # after every insertion code: a range to 20 holds 20A


@dataclass(frozen=True)
class Wish:
    """What is wished of every protein of a run.

    Parameters
    ----------
    chains : tuple of str
        Chains to design; the others are seen and stay. All where there are none.
    fixed : str
        Residues that keep their types: ``"A:10-20,A:30,B"``.
    omit : str
        Letters of types that are not to be chosen.
    bias : str
        ``"A=-1.5,P=0.3"``, added to the logits of these types everywhere; or a table, see :func:`read_table`.
    pssm : str or Path, optional
        A table of probabilities.
    pssm_weight : float
        From 0 to 1, how much they count.
    tied : tuple of str
        Each ``"A,B,C"``, chains whose residues of one number are to be alike; or ``"A:1-10,B:1-10"``, one by one.
    """

    chains: tuple[str, ...] = ()
    fixed: str = ""
    omit: str = "X"
    bias: str = ""
    pssm: str | Path | None = None
    pssm_weight: float = 0.5
    tied: tuple[str, ...] = ()

    def constraints(self, residues: Residues, types: int = len(ALPHABET)) -> Constraints:
        """These wishes for one protein and a model of so many types.

        Raises
        ------
        SelectionError
            Chains or residues that are not there.
        OptionError
            What cannot be read, or cannot be wished.
        """
        chains = residues.chains(self.chains).chain_names if self.chains else residues.chain_names
        designed = np.isin(residues.chain, chains)
        if self.fixed:
            designed &= ~select(residues, self.fixed)
        if not designed.any():
            raise OptionError(f"{residues.name}: no residue is left to design")
        omitted = letters(self.omit, types)
        pssm = None if self.pssm is None else torch.from_numpy(read_table(self.pssm, residues, types))
        weight = None
        if pssm is not None:
            weight = self.pssm_weight * (pssm.sum(1) > 0)  # residues that the table leaves out go by the model alone
        return Constraints(
            designed=torch.from_numpy(designed),
            omit=torch.from_numpy(omitted) if omitted.any() else None,
            bias=torch.from_numpy(_bias(self.bias, residues, types)) if self.bias else None,
            pssm=pssm,
            pssm_weight=weight,
            groups=[g for words in self.tied for g in tied_groups(residues, words)],
        )


def select(residues: Residues, words: str) -> np.ndarray:
    """``(N,)`` bool: ``"A"`` is a chain, ``"A:10"`` or ``"A:52B"`` a residue, ``"A:10-20"`` a range.

    A range goes by numbers, then insertion codes; its ends belong to it, with all insertions after the last one.

    Raises
    ------
    SelectionError
        Nothing is there of a part.
    """
    chosen = np.zeros(len(residues), bool)
    for part in filter(None, (p.strip() for p in words.split(","))):
        chosen[_part(residues, part)] = True
    return chosen


def _part(residues: Residues, part: str) -> np.ndarray:
    """Rows of one part of a selection, ascending."""
    found = _PART.fullmatch(part)
    if found is None:
        raise OptionError(f"{part!r} is no selection: give a chain 'A', a residue 'A:10' or a range 'A:10-20'")
    own = np.flatnonzero(residues.chain == found["chain"])
    if found["first"] is not None:
        first = int(found["first"]), found["code"]
        last = (int(found["last"]), found["code2"] or _LAST) if found["last"] else first
        keys = zip(residues.res_id[own].tolist(), residues.ins_code[own].tolist(), strict=True)
        own = own[[first <= key <= last for key in keys]]
    if len(own) == 0:
        raise SelectionError(
            f"{residues.name}: no residue {part!r}; chains here: {', '.join(map(repr, residues.chain_names))}"
        )
    return own


def tied_groups(residues: Residues, words: str) -> list[list[int]]:
    """Groups of residues that are to be alike: the k-th residues of all parts, or those of one number in whole chains.

    Raises
    ------
    OptionError
        Parts of different lengths.
    """
    parts = [p.strip() for p in words.split(",") if p.strip()]
    rows = [_part(residues, part).tolist() for part in parts]
    if len(parts) < 2:
        raise OptionError(f"tied={words!r}: give two parts or more, 'A,B' or 'A:1-10,B:1-10'")
    if all(":" not in part for part in parts):  # homo-oligomer: chains may lack residues
        by_number: dict[tuple[int, str], list[int]] = {}
        for row in (row for part in rows for row in part):
            by_number.setdefault((int(residues.res_id[row]), str(residues.ins_code[row])), []).append(row)
        return [group for group in by_number.values() if len(group) > 1]
    if len({len(part) for part in rows}) > 1:
        told = ", ".join(f"{part} has {len(r)}" for part, r in zip(parts, rows, strict=True))
        raise OptionError(f"{residues.name}: tied parts are not equally long: {told} residues")
    return [list(group) for group in zip(*rows, strict=True)]


def letters(words: str, types: int) -> np.ndarray:
    """``(types,)`` bool, which of ACDEFGHIKLMNPQRSTVWYX are named."""
    odd = set(words) - set(ALPHABET)
    if odd:
        raise OptionError(f"{sorted(odd)[0]!r} in {words!r} is no residue type: {ALPHABET}")
    return np.array([letter in words for letter in ALPHABET[:types]])


def _bias(words: str, residues: Residues, types: int) -> np.ndarray:
    if Path(words).is_file():
        return read_table(words, residues, types)
    bias = np.zeros(types)
    for part in filter(None, (p.strip() for p in words.split(","))):
        letter, _, value = part.partition("=")
        try:
            bias[ALPHABET[:UNKNOWN].index(letter.strip())] = float(value)
        except ValueError as e:
            raise OptionError(f"bias {part!r}: give a letter and a number, 'A=-1.5', or the file of a table") from e
    return bias


def read_table(path: str | Path, residues: Residues, types: int) -> np.ndarray:
    """A number a residue and type, ``(N, types)`` float64; residues and types that are not named have 0.

    The file is a CSV with the columns ``chain``, ``res_id``, maybe ``ins_code``, and one-letter codes.

    Raises
    ------
    OptionError
        A file that is missing, without these columns, or with other than numbers.
    SelectionError
        A row of a residue that is not there.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = list(reader.fieldnames or ()), list(reader)
    except OSError as e:
        raise OptionError(f"table {str(path)!r} cannot be read: {e.strerror}") from e
    known = [c for c in columns if c in ALPHABET[:types] and len(c) == 1]
    if not {"chain", "res_id"} <= set(columns) or not known:
        raise OptionError(f"{path}: a table has the columns chain, res_id and one-letter codes; this one: {columns}")
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    place = {key: n for n, key in enumerate(keys)}
    table = np.zeros((len(residues), types))
    for line, row in enumerate(rows, 2):
        try:
            key = row["chain"], int(row["res_id"]), row.get("ins_code") or ""
            table[place[key], [ALPHABET.index(c) for c in known]] = [float(row[c] or 0) for c in known]
        except KeyError as e:
            raise SelectionError(f"{path}, line {line}: {residues.name} has no residue {e.args[0]}") from e
        except (TypeError, ValueError) as e:
            raise OptionError(f"{path}, line {line}: {e}") from e
    return table


def chosen_chains(residues: Residues, designed: Sequence[bool]) -> tuple[list[str], list[str]]:
    """Chains with a residue that is designed, and the others, by order of appearance."""
    some = set(residues.chain[np.asarray(designed)].tolist())
    return [c for c in residues.chain_names if c in some], [c for c in residues.chain_names if c not in some]
