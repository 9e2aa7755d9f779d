"""Columns beside the scores of mutations: spread of the members, call, burial, percentile; and the printed list."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation, format_variant
from protgraph_plugins.mutations.residue_index import ResidueIndex
from protgraph_plugins.mutations.scorer import MutationScorer, call_rules, name_of_call, score_column
from protgraph_plugins.mutations.substitution_scan import SubstitutionScan, scan_mutations
from protgraph_plugins.mutations.variant_scores import ScoredVariants, StructureFolder

from protgraph.checkpoint import CallRule
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.descriptors import MAX_SASA, residue_sasa

__all__ = ["relative_sasa", "scan_columns", "variant_columns", "variant_lines"]

_SHOWN = 40  # printed variants
_BURIED = 0.2  # relative accessible surface, below which a residue is called buried (Rost & Sander 1994)

Columns = dict[str, list[float | str]]


def relative_sasa(residues: Residues) -> np.ndarray:
    """Return the accessible surface of each residue as a fraction of the largest one of its type, ``(N,)``.

    From 0 (buried) to about 1 (exposed). All chains of the structure bury each other.
    """
    return residue_sasa(residues, points=200) / MAX_SASA[residues.aatype]


def variant_columns(
    scorer: MutationScorer, scored: ScoredVariants, structures: StructureFolder, *, percentile: bool
) -> Columns:
    """Return the columns ``spread``, ``call``, ``relative_sasa`` and ``percentile`` of scored variants.

    A scorer of one model has no spread, and one without a card no calls. Cards are of single mutations, so variants
    with several have no call. ``relative_sasa`` is the mean over the mutated residues.

    Parameters
    ----------
    percentile : bool
        Scan the mutated chains: the percentage of their substitutions with a lower score.
    """
    columns: Columns = {}
    if not all(map(math.isnan, scored.spread)):
        columns["spread"] = list(scored.spread)
    if rules := call_rules(scorer):
        columns["call"] = [_call(rules, row.variant, value) for row, _, value in scored.rows]
    sources = dict.fromkeys(source for _, source, _ in scored.rows)
    exposed = {source: relative_sasa(structures.residues(source)) for source in sources}
    columns["relative_sasa"] = [
        _mean_over_residues(exposed[source], structures.residues(source), row.variant) for row, source, _ in scored.rows
    ]
    if percentile:
        columns["percentile"] = _percentiles(scorer, scored, structures)
    return columns


def _call(rules: Sequence[CallRule], variant: Sequence[Mutation], value: float) -> str:
    """Return the call of a variant with one mutation; "" for others."""
    changed = [m for m in variant if not m.is_synonymous]
    return name_of_call(rules, value) if len(changed) == 1 else ""


def _mean_over_residues(values: np.ndarray, residues: Residues, variant: Sequence[Mutation]) -> float:
    """Return the mean of values ``(N,)`` over the residues of a variant; NaN for the wild type."""
    return float(values[ResidueIndex(residues).rows(variant)].mean()) if variant else math.nan


def _percentiles(scorer: MutationScorer, scored: ScoredVariants, structures: StructureFolder) -> list[float | str]:
    """Return the percentage of the substitutions in the mutated chains of a structure with a lower score."""
    known: dict[str, np.ndarray] = {}
    for source in dict.fromkeys(source for _, source, _ in scored.rows):
        residues = structures.residues(source)
        chains = {m.chain for row, of_row, _ in scored.rows if of_row == source for m in row.variant}
        rows = np.flatnonzero(np.isin(residues.chain, sorted(chains)))
        values = scan_mutations(scorer, residues, rows).substitutions if len(rows) else np.zeros(0)
        known[source] = values[np.isfinite(values)]
    return [
        float(100 * (known[source] < value).mean()) if row.variant and len(known[source]) else math.nan
        for row, source, value in scored.rows
    ]


def variant_lines(scorer: MutationScorer, scored: ScoredVariants, columns: Columns) -> list[str]:
    """Return the printed list of variants, most unfavorable first, and the number of each call."""
    order = sorted(range(len(scored.rows)), key=lambda i: -scored.rows[i][2])
    lines = [f"  {score_column(scorer)}"]
    for i in order[:_SHOWN]:
        row, source, value = scored.rows[i]
        spread = f" ± {columns['spread'][i]:.2f}" if "spread" in columns else ""
        call = f"  {columns['call'][i] or 'no call':<13}" if "call" in columns else ""
        lines.append(f"  {value:+6.2f}{spread}{call}  {_burial(columns, i)}  {format_variant(row.variant)}  {source}")
    if len(order) > _SHOWN:
        lines.append(f"  … {len(order) - _SHOWN} more")
    if "call" in columns:
        counts = Counter(str(name) or "without a call" for name in columns["call"])
        lines.append(", ".join(f"{number} {name}" for name, number in counts.most_common()))
    return lines


def _burial(columns: Columns, i: int) -> str:
    """Return "buried" or "exposed" with the accessible surface in percent."""
    fraction = float(columns["relative_sasa"][i])
    if math.isnan(fraction):
        return " " * len("exposed 100 %")
    return f"{'buried' if fraction < _BURIED else 'exposed':<7} {fraction:4.0%}"


def scan_columns(scorer: MutationScorer, scan: SubstitutionScan) -> Columns:
    """Return the columns ``spread``, ``call``, ``relative_sasa`` and ``percentile`` of a scan, 20 rows per residue."""
    columns: Columns = {}
    if scan.spread is not None:
        columns["spread"] = scan.spread.flatten().tolist()
    if rules := call_rules(scorer):
        wild_types = [ALPHABET[kind] for kind in scan.wild_type.tolist()]
        columns["call"] = [
            name_of_call(rules, value) if new != old else ""
            for old, values in zip(wild_types, scan.scores.tolist(), strict=True)
            for new, value in zip(ALPHABET[:20], values, strict=True)
        ]
    columns["relative_sasa"] = np.repeat(relative_sasa(scan.residues)[scan.rows], 20).tolist()
    columns["percentile"] = scan.percentiles.flatten().tolist()
    return columns
