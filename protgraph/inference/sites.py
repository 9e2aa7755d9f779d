"""Sites: residues that a model calls and that are in contact, ranked, with selections for molecular viewers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.inference.prediction_table import Predictions, target_names
from protgraph.inference.result_table import ResultTable, Row, rows_by_file
from protgraph.structure.io.sources import read_residues
from protgraph.structure.neighbors.search import close_pairs
from protgraph.structure.residues.residues import Residues

__all__ = ["SITE_COLUMNS", "SITE_CUTOFF", "chimerax_selection", "find_sites", "has_sites", "pymol_selection"]

SITE_CUTOFF = 5.0
"""Largest distance of heavy atoms of two residues of one site, Å."""

SITE_COLUMNS = ("file", "rank", "size", "mean_probability", "expected_residues", "residues", "pymol", "chimerax")
"""Columns of :func:`find_sites`."""

Places = list[tuple[str, list[str]]]  # each chain, and its residue numbers and ranges


def has_sites(target: Target) -> bool:
    """Return True if a model predicts one yes/no label per residue."""
    return (target.level, target.kind, target.size) == ("node", "multilabel", 1)


def find_sites(predictions: Predictions, *, cutoff: float = SITE_CUTOFF) -> ResultTable:
    """Group the called residues of each file into sites, and rank the sites of a file.

    Two called residues are in one site if a heavy atom of one is within ``cutoff`` of one of the other, or if called
    residues connect them in this way. Sites are ranked by the sum of their probabilities, which is the expected number
    of residues with the label if probabilities are calibrated.

    Parameters
    ----------
    predictions : Predictions
        Of structure files, by a model with one yes/no label per residue. The column ``predicted_<label>`` states which
        residues are called.
    cutoff : float
        Å.

    Returns
    -------
    ResultTable
        One row per site: ``file``, ``rank`` from 1, ``size`` (residues), ``mean_probability``, ``expected_residues``
        (sum of probabilities), ``residues`` ("A:45-47,52; B:7"), and commands that select the site in PyMOL and in
        ChimeraX.

    Raises
    ------
    OptionError
        The model predicts something else.
    """
    if not has_sites(predictions.target):
        target = predictions.target
        raise OptionError(
            f"no sites: the model predicts {target.name!r}, {target.kind} per {target.level}. Allowed: models with one "
            "yes/no label per residue."
        )
    label = target_names(predictions.target)[0]
    rows: list[Row] = []
    for file, file_rows in rows_by_file(predictions.rows).items():
        residues = read_residues(file, predictions.read)
        rows += _sites_of_file(file, residues, file_rows, label, cutoff)
    return ResultTable(SITE_COLUMNS, rows)


def _sites_of_file(file: str, residues: Residues, rows: Sequence[Row], label: str, cutoff: float) -> list[Row]:
    """Return the rows of the sites of one file, the first one first."""
    # Called residues with their probabilities, as rows of the structure.
    probability_of = {tuple(row[1:4]): float(row[-2]) for row in rows if row[-1]}
    keys = list(zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True))
    called = np.array([i for i, key in enumerate(keys) if key in probability_of], np.int64)  # (R,)
    probabilities = np.array([probability_of[keys[i]] for i in called.tolist()])  # (R,)
    if len(called) == 0:
        return []

    # Sites are the connected parts of the graph of contacts.
    number = _sites_of_residues(residues, called, cutoff)  # (R,) number of the site
    expected = np.bincount(number, weights=probabilities)
    order = np.argsort(-expected, kind="stable")

    table: list[Row] = []
    for rank, site in enumerate(order.tolist(), 1):
        places = _places(residues, called[number == site])
        text = "; ".join(f"{chain}:{','.join(numbers)}" for chain, numbers in places)
        size = int((number == site).sum())
        name = f"{re.sub(r'[^A-Za-z0-9_]', '_', label)}_{rank}"
        commands = pymol_selection(name, places), chimerax_selection(places)
        table.append((file, rank, size, float(expected[site] / size), float(expected[site]), text, *commands))
    return table


def _sites_of_residues(residues: Residues, called: np.ndarray, cutoff: float) -> np.ndarray:
    """Return the number of the site of each called residue ``(R,)``."""
    number = np.full(len(residues), -1)  # of each called residue
    number[called] = np.arange(len(called))
    atoms = np.flatnonzero(number[residues.atom_residue] >= 0)
    first, second = close_pairs(residues.atom_pos[atoms].astype(np.float64), cutoff)
    pairs = number[residues.atom_residue[atoms]][np.stack([first, second])]  # (2, P)
    contacts = coo_matrix((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(len(called), len(called)))
    return connected_components(contacts, directed=False)[1]


def _places(residues: Residues, rows: np.ndarray) -> Places:
    """Return chains with numbers and ranges of ascending rows; a range has consecutive numbers from 1 upward."""
    places: Places = []
    last_row, last_number = -2, 0
    for row in rows.tolist():
        chain, number, code = str(residues.chain[row]), int(residues.res_id[row]), str(residues.ins_code[row])
        if not places or places[-1][0] != chain:
            places.append((chain, []))
            last_row = -2
        numbers = places[-1][1]
        follows = row == last_row + 1 and number == last_number + 1 and number > 1
        if follows and not code:
            numbers[-1] = f"{numbers[-1].partition('-')[0]}-{number}"
        else:
            numbers.append(f"{number}{code}")
        # A residue with an insertion code, or before 1, is neither in a range nor its begin.
        last_row, last_number = (-2 if code or number < 1 else row), number
    return places


def pymol_selection(name: str, places: Places) -> str:
    r"""Return the command that selects residues in PyMOL, under a name.

    Examples
    --------
    >>> pymol_selection("site_1", [("A", ["45-47", "52A", "-3"])])
    "select site_1, (chain 'A' and resi 45-47+52A+\\-3)"
    """
    chains = []
    for chain, numbers in places:
        escaped = [number.replace("-", "\\-") if number.startswith("-") else number for number in numbers]
        chains.append(f"(chain '{chain}' and resi {'+'.join(escaped)})")
    return f"select {name}, {' or '.join(chains)}"


def chimerax_selection(places: Places) -> str:
    """Return the command that selects residues in ChimeraX.

    Examples
    --------
    >>> chimerax_selection([("A", ["45-47", "52A"]), ("B", ["7"])])
    'select /A:45-47,52A/B:7'
    """
    chains = [f"/{chain}:{','.join(numbers)}" if chain else f":{','.join(numbers)}" for chain, numbers in places]
    return f"select {''.join(chains)}"
