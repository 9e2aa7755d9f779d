"""Residues in words: ``A``, ``A:52B``, ``A:10-20``, ``A:10-``; and which of them are tied."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError, SelectionError
from protgraph.structure import Residues

__all__ = ["Tie", "select_rows", "select_residues", "parse_tie", "parse_ties"]

_PART = re.compile(
    r"(?P<chain>[^:,]*)"
    r"(?P<place>:(?P<first>-?\d+)(?P<code>[A-Za-z]?)(?P<range>-((?P<last>-?\d+)(?P<code2>[A-Za-z]?))?)?)?"
)
_LAST = "~"  # after every insertion code: a range to 20 holds 20A
_HOW = "give a chain 'A', a residue 'A:10', a range 'A:10-20', or 'A:10-' to the end"


@dataclass(frozen=True)
class Tie:
    """Residues that are to have one type.

    Parameters
    ----------
    rows : tuple of int
        In the order in which they are worked out.
    weights : tuple of float
        What the logits of each are multiplied by before they are averaged.
    """

    rows: tuple[int, ...]
    weights: tuple[float, ...]


def select_residues(residues: Residues, words: str) -> np.ndarray:
    """``(N,)`` bool: parts with commas between them, each as in :func:`select_rows`.

    Raises
    ------
    OptionError
        A part that cannot be read.
    SelectionError
        A part that is not there.
    """
    chosen = np.zeros(len(residues), bool)
    for part in filter(None, (p.strip() for p in words.split(","))):
        chosen[select_rows(residues, part)] = True
    return chosen


def select_rows(residues: Residues, part: str) -> np.ndarray:
    """Rows of one part, ascending: a chain ``"A"``, a residue ``"A:52B"``, a range ``"A:10-20"`` or ``"A:10-"``.

    A range goes by numbers, then insertion codes; its ends belong to it, with all insertions after the last one. They
    may lie in a gap of the numbers, and it may begin before the first residue that is resolved, but not end behind the
    last one.

    Raises
    ------
    OptionError
        It cannot be read, or ends before it begins.
    SelectionError
        Nothing of it is there, or the chain ends before it does.
    """
    found = _PART.fullmatch(part)
    if found is None or not part:
        raise OptionError(f"{part!r} is no selection: {_HOW}")
    own = np.flatnonzero(residues.chain == found["chain"])
    if len(own) == 0:
        told = ", ".join(map(repr, residues.chain_names))
        raise SelectionError(f"{residues.name}: {part!r} is of no chain here; chains: {told}")
    if found["place"] is None:
        return own
    keys = list(zip(residues.res_id[own].tolist(), residues.ins_code[own].tolist(), strict=True))
    first = int(found["first"]), found["code"]
    last = _end(residues, part, found, keys)
    own = own[[first <= key <= last for key in keys]]
    if len(own) == 0:
        low, high = (_written(key) for key in (min(keys), max(keys)))
        raise SelectionError(
            f"{residues.name}: no residue {part!r}; chain {found['chain']!r} has {len(keys)}, {low} to {high}"
        )
    return own


def _end(residues: Residues, part: str, found: re.Match[str], keys: Sequence[tuple[int, str]]) -> tuple[float, str]:
    """Number and code of the last residue of a part, checked against those of its chain."""
    first = int(found["first"]), found["code"]
    if found["range"] is None:
        return first
    if found["last"] is None:
        return math.inf, ""
    last = int(found["last"]), found["code2"] or _LAST
    if last < first:
        raise OptionError(f"{part!r} ends before it begins")
    chain, high = found["chain"], max(keys)
    begin = f"{chain}:{found['first']}{found['code']}"
    if last[0] > high[0] >= first[0]:
        raise SelectionError(
            f"{residues.name}: {part!r} goes on behind chain {chain!r}, which ends at {_written(high)}: "
            f"write '{begin}-' for all from {first[0]}{first[1]} on"
        )
    return last


def _written(key: tuple[int, str]) -> str:
    return f"{key[0]}{key[1]}"


def parse_ties(residues: Residues, wishes: Sequence[str]) -> list[Tie]:
    """The ties of several wishes, each as in :func:`parse_tie`.

    Raises
    ------
    OptionError
        A residue is in two of them.
    """
    found: list[Tie] = []
    of: dict[int, str] = {}
    for words in wishes:
        for tie in parse_tie(residues, words):
            for row in tie.rows:
                if row in of:
                    both = repr(words) if of[row] == words else f"{of[row]!r} and {words!r}"
                    raise OptionError(
                        f"{residues.name}: {residues.ids[row]} is tied twice, in {both}; "
                        "name all that are to be alike at once: 'A,B,C'"
                    )
                of[row] = words
            found.append(tie)
    return found


def parse_tie(residues: Residues, words: str) -> list[Tie]:
    """Residues that are to be alike: those of one number in whole chains, or the k-th ones of all parts.

    Parameters
    ----------
    residues : Residues
    words : str
        ``"A,B,C"`` or ``"A:1-9,B:101-109"``; each part maybe with a weight, ``"A=1,B=-0.5"``, which is 1 by default.

    Raises
    ------
    OptionError
        Parts of different lengths, or chains of which no number is in two; a weight that is no number.
    SelectionError
        A part that is not there.
    """
    parts, weights = zip(*(_weighed(p.strip()) for p in words.split(",")), strict=True)
    if len(parts) < 2:
        raise OptionError(f"tied={words!r}: give two parts or more, 'A,B' or 'A:1-10,B:1-10'")
    rows = [select_rows(residues, part).tolist() for part in parts]
    if all(":" not in part for part in parts):  # homo-oligomer: chains may lack residues
        return _by_number(residues, words, rows, weights)
    if len({len(part) for part in rows}) > 1:
        told = ", ".join(f"{part} has {len(r)}" for part, r in zip(parts, rows, strict=True))
        raise OptionError(f"{residues.name}: tied parts are not equally long: {told} residues")
    return [Tie(tuple(group), weights) for group in zip(*rows, strict=True)]


def _by_number(residues: Residues, words: str, rows: Sequence[Sequence[int]], weights: Sequence[float]) -> list[Tie]:
    groups: dict[tuple[int, str], list[tuple[int, float]]] = {}
    for own, weight in zip(rows, weights, strict=True):
        for row in own:
            key = int(residues.res_id[row]), str(residues.ins_code[row])
            groups.setdefault(key, []).append((row, weight))
    found = [Tie(*zip(*group, strict=True)) for group in groups.values() if len(group) > 1]
    if not found:
        ranges = [f"{residues.chain[own[0]]}:{residues.res_id[own].min()}-{residues.res_id[own].max()}" for own in rows]
        raise OptionError(
            f"{residues.name}: the chains of tied={words!r} have no residue number in common; "
            f"tie ranges, the first with the first: '{','.join(ranges)}'"
        )
    return found


def _weighed(part: str) -> tuple[str, float]:
    name, given, value = part.partition("=")
    if not given:
        return part, 1.0
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise OptionError(f"tied part {part!r}: the weight is a number, 'A=1,B=-0.5'")
    return name.strip(), weight
