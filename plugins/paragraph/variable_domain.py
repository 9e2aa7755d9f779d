"""Positions of antibody variable domains, by alignment to profiles of heavy and light chains: ``variable_domain``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import ClassVar, NamedTuple

import numpy as np

from protgraph import FieldSpec, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.errors import SelectionError
from protgraph.structure import ALPHABET

__all__ = [
    "Domain",
    "DomainProfile",
    "VariableDomain",
    "domain_profiles",
    "find_domains",
    "number_domains",
    "variable_fragments",
]
ENTRY_POINTS = {"protgraph.featurizers": {"variable_domain": "VariableDomain"}}

_TYPES = "ACDEFGHIKLMNPQRSTVWY"
_POSITIONS = 253  # rows of variable_domains.csv
_INSERTION = 3.0  # natural logarithm, cost of a residue between two positions
_DOMAIN_SCORE = 40.0  # natural logarithm, least score of a variable domain; T cell receptors stay below 3
_SHORTEST = 60  # residues; a part of a domain that is shorter scores less
_CONTACT = 8.0  # Å between CA atoms
_PAIR_CONTACTS = 18  # of 637 Fv of the PDB the least is 21, of heavy and light domains of different Fv at most 14
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
        column_of_row, row, column = np.full(n, -1), end, len(self.positions) - 1
        while column >= 0:
            if is_insertion[column][row]:
                row -= 1
            elif is_match[column][row]:
                row -= 1
                column_of_row[row] = column
                column -= 1
            else:
                column -= 1
        return float(score[end]), column_of_row


@cache
def domain_profiles() -> tuple[DomainProfile, ...]:
    """Return the profiles of heavy and light chains, from ``variable_domains.csv``.

    Their counts are those of 174 antibodies of the PDB with Martin numbering (Abhinandan & Martin 2008,
    doi:10.1016/j.molimm.2008.05.022).
    """
    text = (files("protgraph_plugins.paragraph") / "variable_domains.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    counts = np.zeros((len(rows), len(_TYPES)))
    for number, row in enumerate(rows):
        counts[number] = [int(row[letter]) for letter in _TYPES]
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


class Domain(NamedTuple):
    """One variable domain.

    Parameters
    ----------
    kind : str
        "H" or "L".
    rows : ndarray
        ``(M,)`` int64, rows of its residues in the protein.
    position : ndarray
        ``(M,)`` int64, index of the position of each residue in the profile, -1 between two positions.
    """

    kind: str
    rows: np.ndarray
    position: np.ndarray


def find_domains(residues: Residues) -> list[Domain]:
    """Find the antibody variable domains of all chains, from the sequence alone.

    The domain with the best score is found first, then others on both sides of it: a single-chain Fv has two domains
    in one chain, and so have chains of bispecific antibodies.

    Parameters
    ----------
    residues : Residues
        Its numbering and chain names are not used.
    """
    domains: list[Domain] = []
    for chain in range(len(residues.chain_names)):
        rows = np.flatnonzero(residues.chain_number == chain)
        segments = [rows[np.argsort(residues.seq_pos[rows], kind="stable")]]
        while segments:
            segment = segments.pop()
            if len(segment) < _SHORTEST:
                continue
            aligned = [(*profile.align(residues.aatype[segment]), profile) for profile in domain_profiles()]
            score, position, profile = max(aligned, key=lambda item: item[0])
            if score < _DOMAIN_SCORE:
                continue
            inside = np.flatnonzero(position >= 0)
            # residues in the place of positions that the alignment skips at either end belong to the domain
            first = max(inside[0] - position[inside[0]], 0)
            skipped = len(profile.positions) - 1 - position[inside[-1]]
            end = min(inside[-1] + 1 + skipped, len(segment))
            domains.append(Domain(profile.kind, segment[first:end], position[first:end]))
            segments += [segment[:first], segment[end:]]
    return sorted(domains, key=lambda domain: domain.rows[0])


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
        position, first those of the heavy profile, then those of the light one.
    """
    heavy, _ = domain_profiles()
    first = {"H": 1, "L": 1 + len(heavy.positions)}
    number = np.zeros(len(residues), np.int64)
    for domain in find_domains(residues):
        numbered = domain.position >= 0
        number[domain.rows[numbered]] = first[domain.kind] + domain.position[numbered]
    return number


def variable_fragments(residues: Residues) -> list[np.ndarray]:
    """Return the rows of each variable fragment: a heavy and a light domain in contact, or a domain without a partner.

    Pairs are those with the most contacts. A single residue between a domain and an end of its chain belongs to the
    domain, since some numberings begin at 0 or end one residue later than the profile.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    list of ndarray
        ``(M,)`` int64, ascending, one for each fragment; empty without a variable domain.
    """
    domains = find_domains(residues)
    partner = _partners(residues, domains)
    rows = [_with_chain_ends(residues, domain.rows) for domain in domains]
    fragments = []
    for i in range(len(domains)):
        if i not in partner:
            fragments.append(np.sort(rows[i]))
        elif i < partner[i]:
            fragments.append(np.sort(np.concatenate([rows[i], rows[partner[i]]])))
    return fragments


def _partners(residues: Residues, domains: Sequence[Domain]) -> dict[int, int]:
    """Return the partner of each domain that has one: the heavy and light domains with the most contacts are paired."""
    contacts = {}
    for i, heavy in enumerate(domains):
        for j, light in enumerate(domains):
            if (heavy.kind, light.kind) == ("H", "L"):
                contacts[i, j] = _count_contacts(residues, heavy, light)
    partner: dict[int, int] = {}
    for i, j in sorted(contacts, key=lambda pair: -contacts[pair]):
        if contacts[i, j] >= _PAIR_CONTACTS and i not in partner and j not in partner:
            partner[i], partner[j] = j, i
    return partner


def _count_contacts(residues: Residues, a: Domain, b: Domain) -> int:
    distance = np.linalg.norm(residues.pos[a.rows][:, None] - residues.pos[b.rows], axis=2)
    return int((distance < _CONTACT).sum())


def _with_chain_ends(residues: Residues, rows: np.ndarray) -> np.ndarray:
    """Return the rows of a domain with a single residue between it and the beginning or the end of its chain."""
    chain = np.flatnonzero(residues.chain_number == residues.chain_number[rows[0]])
    chain = chain[np.argsort(residues.seq_pos[chain], kind="stable")]
    first, last = np.flatnonzero(np.isin(chain, rows))[[0, -1]]
    if first == 1:
        first = 0
    if last == len(chain) - 2:
        last += 1
    return chain[first : last + 1]


class VariableDomain(StructureFeaturizer):
    """Position of each residue in an antibody variable domain, from the sequence alone.

    Parameters
    ----------
    required : bool
        Refuse proteins without a variable domain, and predict variable fragments alone: constant domains and other
        proteins are left out, and each pair of a heavy and a light domain is a protein of its own. False: values are 0
        outside variable domains.

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
        self.part = "antibody domains" if required else ""

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        number = number_domains(residues)
        if self.required and not number.any():
            raise SelectionError(
                f"no antibody variable domain in {residues.name}: chains {', '.join(residues.chain_names)}. The "
                "sequence of each chain was compared with heavy (VH, VHH) and light (VL) domains. Give a file with an "
                "antibody, Fab, Fv or nanobody."
            )
        return {"variable_domain": number}

    def parts(self, residues: Residues) -> list[Residues]:
        """Return each variable fragment; see :func:`variable_fragments`."""
        numbers = np.arange(len(residues))
        return [residues.select(np.isin(numbers, rows)) for rows in variable_fragments(residues)]


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
