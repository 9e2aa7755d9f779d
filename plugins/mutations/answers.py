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
from protgraph.structure import Residues
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
    exposed: dict[str, np.ndarray] = {}
    columns["relative_sasa"] = []
    for row, source, _ in scored.rows:
        residues = structures.residues(source)
        if source not in exposed:
            exposed[source] = relative_sasa(residues)
        columns["relative_sasa"].append(_mean_over_residues(exposed[source], residues, row.variant))
    if percentile:
        columns["percentile"] = _percentiles(scorer, scored, structures)
    return columns


def _call(rules: Sequence[CallRule], variant: Sequence[Mutation], value: float) -> str:
    """Return the call of a variant with one mutation; "" for others."""
    changed = [m for m in variant if not m.is_synonymous]
    return name_of_call(rules, value) if len(changed) == 1 else ""


def _mean_over_residues(values: np.ndarray, residues: Residues, variant: Sequence[Mutation]) -> float:
    """Return the mean of values ``(N,)`` over the residues of a variant; NaN for the wild type."""
    if not variant:
        return math.nan
    rows = ResidueIndex(residues).rows(variant)
    return float(values[rows].mean())


def _percentiles(scorer: MutationScorer, scored: ScoredVariants, structures: StructureFolder) -> list[float | str]:
    """Return the percentage of the substitutions in the mutated chains of a structure with a lower score."""
    mutated_chains: dict[str, set[str]] = {}
    for row, source, _ in scored.rows:
        mutated_chains.setdefault(source, set()).update(m.chain for m in row.variant)

    # Scores of all substitutions in these chains.
    substitutions: dict[str, np.ndarray] = {}
    for source, chains in mutated_chains.items():
        residues = structures.residues(source)
        rows = np.flatnonzero(np.isin(residues.chain, sorted(chains)))
        values = scan_mutations(scorer, residues, rows).substitutions if len(rows) else np.zeros(0)
        substitutions[source] = values[np.isfinite(values)]

    percentiles: list[float | str] = []
    for row, source, value in scored.rows:
        if row.variant and len(substitutions[source]):
            percentiles.append(float(100 * (substitutions[source] < value).mean()))
        else:
            percentiles.append(math.nan)
    return percentiles


def variant_lines(scorer: MutationScorer, scored: ScoredVariants, columns: Columns) -> list[str]:
    """Return the printed list of variants, most unfavorable first, and the number of each call."""
    order = sorted(range(len(scored.rows)), key=lambda i: -scored.rows[i][2])
    lines = [f"  {score_column(scorer)}"]
    for i in order[:_SHOWN]:
        row, source, value = scored.rows[i]
        text = f"  {value:+6.2f}"
        if "spread" in columns:
            text += f" ± {columns['spread'][i]:.2f}"
        if "call" in columns:
            text += f"  {columns['call'][i] or 'no call':<13}"
        lines.append(f"{text}  {_burial(columns, i)}  {format_variant(row.variant)}  {source}")
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
    word = "buried" if fraction < _BURIED else "exposed"
    return f"{word:<7} {fraction:4.0%}"


def scan_columns(scorer: MutationScorer, scan: SubstitutionScan) -> Columns:
    """Return the columns ``spread``, ``call``, ``relative_sasa`` and ``percentile`` of a scan, 20 rows per residue."""
    columns: Columns = {}
    if scan.spread is not None:
        columns["spread"] = scan.spread.flatten().tolist()
    if rules := call_rules(scorer):
        columns["call"] = []
        for wild_type, values in zip(scan.wild_type.tolist(), scan.scores.tolist(), strict=True):
            for mutant, value in enumerate(values):
                columns["call"].append("" if mutant == wild_type else name_of_call(rules, value))
    columns["relative_sasa"] = np.repeat(relative_sasa(scan.residues)[scan.rows], 20).tolist()
    columns["percentile"] = scan.percentiles.flatten().tolist()
    return columns
