"""Parse selections of residues, ``A``, ``A:52B``, ``A:10-20``, ``A:10-``, ``10-20``, and ties between residues."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError, SelectionError
from protgraph.structure import Residues

__all__ = ["Tie", "select_rows", "select_residues", "parse_tie", "parse_ties"]

_PART = re.compile(
    r"(?P<chain>[^:,]*)"
    r"(?P<place>:(?P<first>-?\d+)(?P<code>[A-Za-z]?)(?P<range>-((?P<last>-?\d+)(?P<code2>[A-Za-z]?))?)?)?"
)
_BRACKETS = re.compile(r"(?<=\d)\[([A-Za-z])\]")  # 52[A] of a mutation is 52A
_PLACE = re.compile(r"-?\d+[A-Za-z]?(-(-?\d+[A-Za-z]?)?)?")
_SYNTAX = "Use a chain 'A', a residue 'A:10', a range 'A:10-20' or 'A:10-'."


@dataclass(frozen=True)
class Tie:
    """Residues that get the same type.

    Parameters
    ----------
    rows : tuple of int
        Row of each residue, in decoding order.
    weights : tuple of float
        Factor of the logits of each residue before averaging.
    """

    rows: tuple[int, ...]
    weights: tuple[float, ...]


def select_residues(residues: Residues, selection: str) -> np.ndarray:
    """Return a mask ``(N,)`` of comma-separated parts, each as in :func:`select_rows`.

    Raises
    ------
    OptionError
        A part has invalid syntax.
    SelectionError
        A part selects residues that do not exist.
    """
    mask = np.zeros(len(residues), bool)
    for part in filter(None, (p.strip() for p in selection.split(","))):
        mask[select_rows(residues, part)] = True
    return mask


def select_rows(residues: Residues, selection: str) -> np.ndarray:
    """Return the ascending rows of a chain ``"A"``, a residue ``"A:52B"``, or a range ``"A:10-20"`` or ``"A:10-"``.

    The result is ``(R,)`` int64. The chain may be left out if there is one only, ``"10-20"``.

    A range has the residues whose numbers are between those of its ends, and of the numbers of the ends those that are
    between the ends in the order of the chain: after 111 come 111A, 111B, 112B, 112A and 112 in IMGT numbering. An end
    without insertion code includes all residues of this number that follow. Ends may be unresolved residues, and a
    range may begin before the first resolved residue, but it must not end after the last one.

    Raises
    ------
    OptionError
        The syntax is invalid, or the range ends before it begins.
    SelectionError
        No residue is selected, or the chain ends before the range does.
    """
    selection = _with_chain(residues, _BRACKETS.sub(r"\1", selection))
    match = _PART.fullmatch(selection)
    if match is None or not selection:
        raise OptionError(f"invalid selection: {selection!r}. {_SYNTAX}")
    rows_of_chain = np.flatnonzero(residues.chain == match["chain"])
    if len(rows_of_chain) == 0:
        chains = ", ".join(map(repr, residues.chain_names))
        raise SelectionError(f"unknown chain in selection {selection!r} ({residues.name}). Chains: {chains}.")
    if match["place"] is None:
        return rows_of_chain

    # number and insertion code of each residue of the chain
    keys = list(zip(residues.res_id[rows_of_chain].tolist(), residues.ins_code[rows_of_chain].tolist(), strict=True))
    if match["range"] is None:
        requested = int(match["first"]), match["code"]
        is_selected = [key == requested for key in keys]
    else:
        codes = _codes_of_numbers(keys)
        low, high = _ends(residues, selection, match, codes)
        is_selected = [low <= _place(codes, key) <= high for key in keys]
    rows = rows_of_chain[is_selected]
    if len(rows) == 0:
        lowest = _residue_number(min(keys))
        highest = _residue_number(max(keys))
        raise SelectionError(
            f"no residue in selection {selection!r} ({residues.name}). Chain {match['chain']!r} has {len(keys)} "
            f"residues, {lowest} to {highest}."
        )
    return rows


def _with_chain(residues: Residues, selection: str) -> str:
    """Return "A:10-20" for "10-20" if A is the only chain; a chain of this name has priority."""
    chains = residues.chain_names
    if selection in chains or _PLACE.fullmatch(selection) is None:
        return selection
    if len(chains) > 1:
        raise SelectionError(
            f"no chain in selection {selection!r} ({residues.name}). Chains: {', '.join(map(repr, chains))}. Write "
            f"'{chains[0]}:{selection}'."
        )
    return f"{chains[0]}:{selection}"


def _ends(
    residues: Residues, selection: str, match: re.Match[str], codes: Mapping[int, Sequence[str]]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the places of the first and the last residue of a range, checked against those of its chain."""
    first = int(match["first"])
    low = _place(codes, (first, match["code"]))
    if match["last"] is None:
        return low, (math.inf, math.inf)
    last = int(match["last"])
    high = _place(codes, (last, match["code2"])) if match["code2"] else (last, math.inf)
    if high < low:
        order = ", ".join(f"{first}{code}" for code in codes.get(first, ()))
        in_chain = f" ({residues.name}). The order in the chain is {order}." if first == last else "."
        raise OptionError(f"selection {selection!r} ends before it begins{in_chain}")
    chain = match["chain"]
    last_number = max(codes)
    if last > last_number >= first:
        end = _residue_number((last_number, max(codes[last_number])))
        begin = f"{match['first']}{match['code']}"
        raise SelectionError(
            f"selection {selection!r} ends after chain {chain!r} ({residues.name}). The chain ends at {end}. "
            f"Use '{chain}:{begin}-' for all residues from {first}{match['code']}."
        )
    return low, high


def _codes_of_numbers(keys: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
    """Return the insertion codes of each residue number, in the order of the chain."""
    codes: dict[int, list[str]] = {}
    for number, code in keys:
        codes.setdefault(number, []).append(code)
    return codes


def _place(codes: Mapping[int, Sequence[str]], key: tuple[int, str]) -> tuple[float, float]:
    """Return a residue number and the place of an insertion code among those of this number.

    The place of a residue that the chain lacks is between two others: codes ascend, or descend as before 112 in IMGT
    numbering.
    """
    number, code = key
    of_number = list(codes.get(number, ()))
    if code in of_number:
        return number, of_number.index(code)
    is_descending = bool(of_number) and of_number[0] > of_number[-1]
    before = [other for other in of_number if (other > code if is_descending else other < code)]
    return number, len(before) - 0.5


def _residue_number(key: tuple[int, str]) -> str:
    return f"{key[0]}{key[1]}"


def parse_ties(residues: Residues, specs: Sequence[str]) -> list[Tie]:
    """Return the ties of several specifications, each as in :func:`parse_tie`.

    Raises
    ------
    OptionError
        A residue is in two ties.
    """
    result: list[Tie] = []
    spec_of: dict[int, str] = {}
    for spec in specs:
        for tie in parse_tie(residues, spec):
            for row in tie.rows:
                if row in spec_of:
                    both = repr(spec) if spec_of[row] == spec else f"{spec_of[row]!r} and {spec!r}"
                    raise OptionError(
                        f"residue in two ties: {residues.ids[row]} of {residues.name} ({both}). List all tied chains "
                        "or residues in one tie: 'A,B,C'."
                    )
                spec_of[row] = spec
            result.append(tie)
    return result


def parse_tie(residues: Residues, spec: str) -> list[Tie]:
    """Return tied residues: those with equal numbers in whole chains, or the k-th residues of all parts.

    Parameters
    ----------
    residues : Residues
    spec : str
        ``"A,B,C"`` or ``"A:1-9,B:101-109"``, each part optionally with a weight, ``"A=1,B=-0.5"``; 1 by default.

    Raises
    ------
    OptionError
        Parts have different lengths, chains have no common number, or a weight is not a number.
    SelectionError
        A part selects residues that do not exist.
    """
    selections, weights = zip(*(_parse_weight(text.strip()) for text in spec.split(",")), strict=True)
    if len(selections) < 2:
        raise OptionError(f"invalid tie: {spec!r}. Use two or more parts, 'A,B' or 'A:1-10,B:1-10'.")
    selections = tuple(_with_chain(residues, selection) for selection in selections)
    rows = [select_rows(residues, selection).tolist() for selection in selections]
    if all(":" not in selection for selection in selections):  # homo-oligomer: chains may lack residues
        return _tie_by_number(residues, spec, rows, weights)
    lengths = [len(rows_of_selection) for rows_of_selection in rows]
    if len(set(lengths)) > 1:
        listed = ", ".join(f"{text}: {length}" for text, length in zip(selections, lengths, strict=True))
        raise OptionError(f"tied parts of different lengths: {spec!r} ({residues.name}). Residues: {listed}.")
    return [Tie(tuple(group), weights) for group in zip(*rows, strict=True)]


def _tie_by_number(residues: Residues, spec: str, rows: Sequence[Sequence[int]], weights: Sequence[float]) -> list[Tie]:
    groups: dict[tuple[int, str], list[tuple[int, float]]] = {}
    for chain, weight in zip(rows, weights, strict=True):
        for row in chain:
            key = int(residues.res_id[row]), str(residues.ins_code[row])
            groups.setdefault(key, []).append((row, weight))
    tied = [Tie(*zip(*group, strict=True)) for group in groups.values() if len(group) > 1]
    if not tied:
        ranges = [
            f"{residues.chain[chain[0]]}:{residues.res_id[chain].min()}-{residues.res_id[chain].max()}"
            for chain in rows
        ]
        raise OptionError(
            f"no common residue number in tied chains: {spec!r} ({residues.name}). Tie ranges of equal length: "
            f"'{','.join(ranges)}'."
        )
    return tied


def _parse_weight(text: str) -> tuple[str, float]:
    name, separator, value = text.partition("=")
    if not separator:
        return text, 1.0
    try:
        weight = float(value)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise OptionError(f"invalid weight of a tied part: {text!r}. Use a finite number, 'A=1,B=-0.5'.")
    return name.strip(), weight
