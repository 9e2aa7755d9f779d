"""``protgraph scan``: score every single substitution of a structure, with a heat map."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from protgraph_plugins.design import Device
from protgraph_plugins.mutations.options import (
    Ensemble,
    Mode,
    Orders,
    Partners,
    ScorerName,
    ScorerWeights,
    Seed,
    load_scorer,
    print_convention,
)

from protgraph.cli import (
    Overwrite,
    TableOutput,
    chain_names,
    chains_option,
    check_output,
    end_interrupted,
    print_reader_notes,
    reads_structures,
)
from protgraph.errors import Interrupted, SelectionError, list_first
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from protgraph_plugins.mutations.substitution_scan import SubstitutionScan

    from protgraph.inference import ResultTable
    from protgraph.structure import ReadOptions, Residues

__all__ = ["scan_command"]
ENTRY_POINTS = {"protgraph.commands": {"scan": "scan_command"}}

ScannedChains = chains_option("Chains to scan, 'A,B'; the others are visible.  [default: all]")


@reads_structures(chains=False, deferred=True)
def scan_command(
    file: Annotated[str, typer.Argument(help="Structure file (PDB, mmCIF, BinaryCIF, .gz), or pdb:1ubq.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file, .csv, .parquet, or '-'.")],
    chains: ScannedChains = None,
    positions: Annotated[
        str,
        typer.Option(
            help="Residues to scan, 'A:10-40,A:52B' or 'B:90-'; with one chain '10-40'.  [default: all of the chains]"
        ),
    ] = "",
    model: ScorerName = None,
    weights: ScorerWeights = None,
    mode: Mode = "conditional",
    orders: Orders = 1,
    seed: Seed = 0,
    ensemble: Ensemble = "mean",
    partners: Partners = "",
    heat_map: Annotated[
        bool, typer.Option("--heat-map/--no-heat-map", help="Also draw OUT.png and OUT.html, without OUT's suffix.")
    ] = True,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Score all substitutions of each residue, one at a time, and draw them as a heat map.

    A row per residue and type, 20 per residue, with the columns file, chain, res_id, ins_code, wild_type, mutant and
    the score: ΔΔG = ΔG(mutant) − ΔG(wild type) in kcal/mol, positive = destabilizing (ddg_kcal_mol), or log p(wild
    type) − log p(mutant), positive = unfavorable (unfavorable_log_odds). It is 0 for the wild type.

    Then spread (standard deviation of the members of the model), call (destabilizing, neutral or stabilizing, from
    thresholds that validation chose; only with a card that supports it), relative_sasa (0 = buried) and percentile, the
    percentage of the scanned substitutions with a lower score.

    Residues without one of the 20 types are left out, and those without a value have empty cells; both are printed.

    The heat map is a picture (scan.png for scan.csv) and a page with the values as tooltips (scan.html).

    \b
    Examples:
      protgraph scan 1ubq.cif -o scan.csv
      protgraph scan complex.pdb --chain A --positions A:10-40 -o scan.csv
      protgraph scan complex.pdb --partners A/B --chain A -o scan.csv    (binding)
      protgraph scan 1ubq.cif --mode unconditional -o scan.csv
      protgraph scan 1ubq.cif --orders 8 --no-heat-map -o scan.parquet
    """
    from protgraph_plugins.mutations.answers import scan_columns
    from protgraph_plugins.mutations.substitution_scan import scan_mutations

    from protgraph.inference import TABLE_SUFFIXES
    from protgraph.structure.io import open_source, read_residues

    output = TableOutput(out, inputs=[file, weights], overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    draws = heat_map and not output.is_standard_output
    drawn = [out.with_suffix(suffix) for suffix in (".png", ".html")] if draws else []
    for path in drawn:
        check_output(path, option="heat map of --out", inputs=[file, weights], overwrite=overwrite)
    scorer = load_scorer(
        model,
        weights,
        mode=mode,
        orders=orders,
        seed=seed,
        ensemble=ensemble,
        partners=partners,
        device=device,
    )
    read = read.with_ligands(getattr(scorer, "needs_ligands", False))
    residues = read_residues(open_source(file), read)
    print_reader_notes({file: residues.report})
    rows = _chosen_rows(residues, chain_names(chains), positions)
    stopped = None
    try:
        scan = scan_mutations(scorer, residues, rows)
    except Interrupted as e:
        scan, stopped = e.result, e
        rows = rows[rows <= scan.rows[-1]]
    print_convention(scorer, output)
    _print_left_out(scan, residues, rows)
    columns = scan_columns(scorer, scan)
    if "call" in columns:
        counts = Counter(name for name in columns["call"] if name)
        output.print(", ".join(f"{number} {name}" for name, number in counts.most_common()))
    output.write(_table(scan, file, columns), f"{count_noun(len(scan.rows), 'residue')} × 20")
    if stopped is not None:
        last = residues.ids[scan.rows[-1]]
        text = f"the residues up to {last} are finished, and {out} has their values."
        end_interrupted(
            stopped, f"{text} To continue, give the residues after {last} as --positions, and another --out."
        )
    if drawn:
        from protgraph_plugins.mutations.heat_map import draw_scan

        draw_scan(*drawn, scan)
        typer.echo(f"heat map → {', '.join(map(str, drawn))}")


def _chosen_rows(residues: Residues, chains: Sequence[str], positions: str) -> np.ndarray:
    """Return the rows of residues in the chains and at the positions, ``(R,)``."""
    import numpy as np
    from protgraph_plugins.design import select_residues

    mask = np.ones(len(residues), bool)
    if chains:
        residues.chains(chains)  # raises for unknown chains
        mask &= np.isin(residues.chain, chains)
    if positions:
        mask &= select_residues(residues, positions)
    if not mask.any():
        raise SelectionError(
            f"no residue of --chain {','.join(chains)!r} is in --positions {positions!r} ({residues.name})."
        )
    return np.flatnonzero(mask)


def _print_left_out(scan: SubstitutionScan, residues: Residues, rows: np.ndarray) -> None:
    """Print residues without one of the 20 types, and those without a value."""
    scanned = set(scan.rows.tolist())
    unknown = [f"{residues.ids[row]} ({residues.res_name[row]})" for row in rows.tolist() if row not in scanned]
    if unknown:
        typer.echo(
            f"note: {count_noun(len(unknown), 'residue')} left out, not one of the 20 types: {list_first(unknown, 8)}",
            err=True,
        )
    absent = scan.without_value
    if absent:
        typer.echo(
            f"note: {count_noun(len(absent), 'residue')} without a value, e.g. without a complete backbone: "
            f"{list_first(absent, 8)}",
            err=True,
        )


def _table(scan: SubstitutionScan, file: str, columns: Mapping[str, Sequence[float | str]]) -> ResultTable:
    """Return a row per residue and type, with more columns."""
    from protgraph.inference import ResultTable
    from protgraph.structure import ALPHABET

    r, rows = scan.residues, []
    for row, scores in zip(scan.rows.tolist(), scan.scores.tolist(), strict=True):
        place = (file, str(r.chain[row]), int(r.res_id[row]), str(r.ins_code[row]), ALPHABET[r.aatype[row]])
        rows += [(*place, new, value) for new, value in zip(ALPHABET[:20], scores, strict=True)]
    names = ("file", "chain", "res_id", "ins_code", "wild_type", "mutant", scan.column, *columns)
    return ResultTable(
        names, [(*row, *more) for row, more in zip(rows, zip(*columns.values(), strict=True), strict=True)]
    )
