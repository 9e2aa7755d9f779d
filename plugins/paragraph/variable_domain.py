"""Positions of antibody variable domains, by alignment to profiles of heavy and light chains: ``variable_domain``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import ClassVar

import numpy as np

from protgraph import FieldSpec, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.errors import SelectionError
from protgraph.structure import ALPHABET

__all__ = ["DomainProfile", "VariableDomain", "domain_profiles", "number_domains"]
ENTRY_POINTS = {"protgraph.featurizers": {"variable_domain": "VariableDomain"}}

_TYPES = "ACDEFGHIKLMNPQRSTVWY"
_POSITIONS = 253  # rows of variable_domains.csv
_INSERTION = 3.0  # natural logarithm, cost of a residue between two positions
_DOMAIN_SCORE = 40.0  # natural logarithm, least score of a variable domain; other chains stay below 20
_PSEUDO = 10.0  # pseudo-residues with the background composition at each position


@dataclass(frozen=True)
class DomainProfile:
    """Log-odds of residue types and costs of missing residues at the positions of a variable domain.

    Parameters
    ----------
    kind : str
        "H" or "L".
    positions : tuple of str
        Martin numbers with insertion codes, e.g. "100A".
    match : ndarray
        ``(P, 21)`` log-odds against the background, with the logarithm of the fraction of domains with this position.
    missing : ndarray
        ``(P,)`` logarithm of the fraction of domains without it.
    """

    kind: str
    positions: tuple[str, ...]
    match: np.ndarray
    missing: np.ndarray

    def align(self, types: np.ndarray) -> tuple[float, np.ndarray]:
        """Align the whole profile to the best segment of a chain.

        Parameters
        ----------
        types : ndarray
            ``(N,)`` indices in :data:`protgraph.structure.ALPHABET`.

        Returns
        -------
        tuple
            Score, and ``(N,)`` int64 index of the position of each residue, -1 for the others.
        """
        n, steps = len(types), np.arange(len(types) + 1) * _INSERTION
        score, is_match, is_insertion = np.zeros(n + 1), [], []
        for odds, missing in zip(self.match, self.missing, strict=True):
            matched = np.concatenate([[-np.inf], score[:-1] + odds[types]])
            best = np.maximum(matched, score + missing)
            raised = best + steps  # the cost of insertions is linear: their best score is a running maximum
            greatest = np.maximum.accumulate(raised)
            is_match.append(matched == best)
            is_insertion.append(greatest > raised)
            score = greatest - steps
        end = int(score.argmax())
        place, row, column = np.full(n, -1), end, len(self.positions) - 1
        while column >= 0:
            if is_insertion[column][row]:
                row -= 1
            elif is_match[column][row]:
                row -= 1
                place[row] = column
                column -= 1
            else:
                column -= 1
        return float(score[end]), place


@cache
def domain_profiles() -> tuple[DomainProfile, ...]:
    """Return the profiles of heavy and light chains, from ``variable_domains.csv``.

    Their counts are those of 174 antibodies of the PDB with Martin numbering (Abhinandan & Martin 2008,
    doi:10.1016/j.molimm.2008.05.022); ``tools/variable_domain_profile.py`` writes the table.
    """
    text = (files("protgraph_plugins.paragraph") / "variable_domains.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    counts = np.array([[int(row[t]) for t in _TYPES] for row in rows], np.float64)
    total = np.array([int(row["domains"]) for row in rows])
    background = counts.sum(0) / counts.sum()
    present = counts.sum(1) / total
    odds = np.log((counts / counts.sum(1, keepdims=True) * total[:, None] + _PSEUDO * background) / background)
    odds -= np.log(total + _PSEUDO)[:, None]
    columns = [_TYPES.find(letter) for letter in ALPHABET]
    table = np.where(np.array(columns) >= 0, odds[:, columns], 0.0) + np.log(present.clip(1e-3, 1.0))[:, None]
    missing = np.log((1.0 - present).clip(0.02, 1.0))
    profiles = []
    for kind in ("H", "L"):
        own = np.array([row["domain"] == kind for row in rows])
        positions = tuple(row["position"] for row in rows if row["domain"] == kind)
        profiles.append(DomainProfile(kind, positions, table[own], missing[own]))
    return tuple(profiles)


def number_domains(residues: Residues) -> np.ndarray:
    """Find antibody variable domains in the chains of a protein, and number their residues.

    Parameters
    ----------
    residues : Residues
        Its numbering and chain names are not used.

    Returns
    -------
    ndarray
        ``(N,)`` int64: 0 outside variable domains and for residues between two positions; else 1 + the index of the
        position, first those of the heavy profile, then those of the light one. A chain may have one domain of each
        kind (single-chain Fv).
    """
    number, offset = np.zeros(len(residues), np.int64), 1
    starts = []
    for profile in domain_profiles():
        starts.append(offset)
        offset += len(profile.positions)
    for chain in range(len(residues.chain_names)):
        rows = np.flatnonzero(residues.chain_number == chain)
        rows = rows[np.argsort(residues.seq_pos[rows], kind="stable")]
        found = [(*p.align(residues.aatype[rows]), start) for p, start in zip(domain_profiles(), starts, strict=True)]
        for score, place, start in sorted(found, key=lambda item: -item[0]):
            inside = place >= 0
            if score >= _DOMAIN_SCORE and not number[rows[inside]].any():
                number[rows[inside]] = start + place[inside]
    return number


class VariableDomain(StructureFeaturizer):
    """Position of each residue in an antibody variable domain, from the sequence alone.

    Parameters
    ----------
    required : bool
        Refuse proteins without a variable domain. False: all their values are 0.

    Writes
    ------
    variable_domain : (N,) int64, category
        0 outside variable domains; see :func:`protgraph_plugins.paragraph.variable_domain.number_domains`.

    Notes
    -----
    Chain names and residue numbers of the file are not used. Residue types must be visible; without them all values
    are 0.

    Raises
    ------
    SelectionError
        With ``required``: no chain has a variable domain.

    References
    ----------
    Abhinandan & Martin 2008, doi:10.1016/j.molimm.2008.05.022 (numbering).
    """

    writes: ClassVar[tuple[str, ...]] = ("variable_domain",)
    needs_coordinates: ClassVar[bool] = False
    conformity: ClassVar[Conformity] = Conformity(
        offline={"required": False},  # the test proteins are not antibodies, also for models with the option
        expected_failures={"non_trivial": "the test proteins are not antibodies"},
    )

    def __init__(self, *, required: bool = False) -> None:
        super().__init__()
        self.required = required

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        number = number_domains(residues)
        if self.required and not number.any():
            raise SelectionError(
                f"no antibody variable domain in {residues.name}: chains {', '.join(residues.chain_names)}. The model "
                "needs a heavy or light chain of an antibody."
            )
        return {"variable_domain": number}


register_field(
    FieldSpec(
        "variable_domain",
        "node",
        "0e",
        "int64",
        shape=(),
        classes=1 + _POSITIONS,
        doc="position in the variable domain of an antibody: 0 outside, then heavy, then light",
    )
)
