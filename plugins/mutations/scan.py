"""``protgraph scan``: score every single substitution of structures, with a heat map of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from protgraph_plugins.design import Device, protein_files
from protgraph_plugins.mutations.options import (
    Ensemble,
    Files,
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
    end_with_files_left,
    print_reader_notes,
    progress_bar,
    reads_structures,
    report_failures,
)
from protgraph.errors import Interrupted, ProtgraphError, SelectionError, list_first
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from protgraph_plugins.mutations.scorer import MutationScorer
    from protgraph_plugins.mutations.substitution_scan import SubstitutionScan

    from protgraph.featurize import Failure
    from protgraph.inference import ResultTable
    from protgraph.structure import ReadOptions, Residues

__all__ = ["scan_command"]
ENTRY_POINTS = {"protgraph.commands": {"scan": "scan_command"}}

ScannedChains = chains_option("Chains to scan, 'A,B'; the others are visible.  [default: all]")


@reads_structures(chains=False, deferred=True)
def scan_command(
    files: Files,
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
        bool,
        typer.Option(
            "--heat-map/--no-heat-map",
            help="Also draw OUT.png and OUT.html, without OUT's suffix; OUT.FILE.png of several files.",
        ),
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

    Several files give one table, and a heat map each. Files that fail are listed in OUT.failures.csv, and the others
    continue; the exit code is 1 (2 if all fail).

    \b
    Examples:
      protgraph scan 1ubq.cif -o scan.csv
      protgraph scan complex.pdb --chain A --positions A:10-40 -o scan.csv
      protgraph scan structures/ -o scan.csv
      protgraph scan complex.pdb --partners A/B --chain A -o scan.csv    (binding)
      protgraph scan 1ubq.cif --mode unconditional -o scan.csv
      protgraph scan 1ubq.cif --orders 8 --no-heat-map -o scan.parquet
    """
    from protgraph.inference import TABLE_SUFFIXES

    sources = protein_files(files)
    inputs = [*files, *sources, weights]
    output = TableOutput(out, inputs=inputs, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    heat_maps = _heat_maps(out, sources) if heat_map and not output.is_standard_output else {}
    for picture, page in heat_maps.values():
        check_output(picture, option="heat map of --out", inputs=inputs, overwrite=overwrite)
        check_output(page, option="heat map of --out", inputs=inputs, overwrite=overwrite)
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
    result = _scan_files(scorer, sources, read, chain_names(chains), positions)
    if result.scans:
        _write_scans(scorer, result, output, sources)
    if result.stopped is not None:
        _end(result, output.path, sources)
    if heat_maps:
        _draw_scans(result.scans, heat_maps)
    report_failures(result.failures, output.path, any_succeeded=bool(result.scans))


def _write_scans(scorer: MutationScorer, result: _ScannedFiles, output: TableOutput, sources: Sequence[str]) -> None:
    """Print notes and the number of substitutions of each call, and write the table."""
    from protgraph_plugins.mutations.answers import scan_columns

    scans = result.scans
    print_reader_notes({source: scan.residues.report for source, scan in scans.items()})
    print_convention(scorer, output)
    _print_left_out(result)
    columns = {source: scan_columns(scorer, scan) for source, scan in scans.items()}
    counts: Counter[float | str] = Counter()
    for columns_of_file in columns.values():
        counts.update(call for call in columns_of_file.get("call", ()) if call)
    if counts:
        output.print(", ".join(f"{number} {name}" for name, number in counts.most_common()))
    scanned = count_noun(sum(len(scan.rows) for scan in scans.values()), "residue")
    of_files = f" of {len(scans)} of {count_noun(len(sources), 'file')}" if len(sources) > 1 else ""
    output.write(_table(scans, columns), f"{scanned} × 20{of_files}")


def _draw_scans(scans: Mapping[str, SubstitutionScan], heat_maps: Mapping[str, tuple[Path, Path]]) -> None:
    """Draw the heat map of each file as a picture and a page."""
    from protgraph_plugins.mutations.heat_map import draw_scan

    for source, scan in scans.items():
        picture, page = heat_maps[source]
        draw_scan(picture, page, scan)
        typer.echo(f"heat map → {picture}, {page}")


def _heat_maps(out: Path, sources: Sequence[str]) -> dict[str, tuple[Path, Path]]:
    """Return the picture and the page of each source: OUT.png of one, OUT.NAME.png of several, with different names."""
    if len(sources) == 1:
        return {sources[0]: (out.with_suffix(".png"), out.with_suffix(".html"))}
    drawn: dict[str, tuple[Path, Path]] = {}
    used: Counter[str] = Counter()
    for source in sources:
        name = Path(source.replace(":", "_")).name.partition(".")[0]
        used[name] += 1
        if used[name] > 1:
            name = f"{name}_{used[name]}"
        stem = f"{out.with_suffix('').name}.{name}"
        drawn[source] = out.with_name(f"{stem}.png"), out.with_name(f"{stem}.html")
    return drawn


@dataclass
class _ScannedFiles:
    """Scans of files by source, the requested rows of each, files that failed, and what stopped the command."""

    scans: dict[str, SubstitutionScan] = field(default_factory=dict)
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    stopped: KeyboardInterrupt | None = None


def _scan_files(
    scorer: MutationScorer, sources: Sequence[str], read: ReadOptions, chains: Sequence[str], positions: str
) -> _ScannedFiles:
    """Scan each file, with a progress bar if there are several.

    After Ctrl-C, a single file has the residues that were finished; several files have those that were finished.
    """
    from protgraph_plugins.mutations.substitution_scan import scan_mutations

    from protgraph.featurize import Failure
    from protgraph.structure.io import open_source, read_residues

    result = _ScannedFiles()
    bar = progress_bar()
    task = bar.add_task("files", total=len(sources), visible=len(sources) > 1)
    with bar:
        for source in sources:
            try:
                residues = read_residues(open_source(source), read)
                result.rows[source] = _chosen_rows(residues, chains, positions)
                result.scans[source] = scan_mutations(scorer, residues, result.rows[source])
            except KeyboardInterrupt as e:
                result.stopped = e
                if isinstance(e, Interrupted) and len(sources) == 1:
                    result.scans[source] = e.result
                    result.rows[source] = result.rows[source][result.rows[source] <= e.result.rows[-1]]
                break
            except ProtgraphError as e:
                result.failures.append(Failure.of(source, "", e))
            bar.advance(task)
    return result


def _end(result: _ScannedFiles, out: Path | None, sources: Sequence[str]) -> NoReturn:
    """Print what was finished before Ctrl-C and how to continue, and exit."""
    assert result.stopped is not None
    if len(sources) > 1 or not result.scans:
        done = [*result.scans, *(failure.source for failure in result.failures)]
        end_with_files_left(result.stopped, out, sources, done)
    (scan,) = result.scans.values()
    last = scan.residues.ids[scan.rows[-1]]
    text = f"the residues up to {last} are finished, and {out or 'standard output'} has their values."
    end_interrupted(
        result.stopped, f"{text} To continue, give the residues after {last} as --positions, and another --out."
    )


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


def _print_left_out(result: _ScannedFiles) -> None:
    """Print residues without one of the 20 types, and those without a value."""
    unknown: list[str] = []
    absent: list[str] = []
    for source, scan in result.scans.items():
        residues, scanned = scan.residues, set(scan.rows.tolist())
        of_file = f" of {source}" if len(result.scans) > 1 else ""
        for row in result.rows[source].tolist():
            if row not in scanned:
                unknown.append(f"{residues.ids[row]} ({residues.res_name[row]}){of_file}")
        absent += [f"{residue}{of_file}" for residue in scan.without_value]
    if unknown:
        typer.echo(
            f"note: {count_noun(len(unknown), 'residue')} left out, not one of the 20 types: {list_first(unknown, 8)}",
            err=True,
        )
    if absent:
        typer.echo(
            f"note: {count_noun(len(absent), 'residue')} without a value, e.g. without a complete backbone: "
            f"{list_first(absent, 8)}",
            err=True,
        )


def _table(
    scans: Mapping[str, SubstitutionScan], columns: Mapping[str, Mapping[str, Sequence[float | str]]]
) -> ResultTable:
    """Return a row per residue and type of each file, with more columns, which are the same for all files."""
    from protgraph.inference import ResultTable

    first = next(iter(scans))
    names = ("file", "chain", "res_id", "ins_code", "wild_type", "mutant", scans[first].column, *columns[first])
    rows = [row for file, scan in scans.items() for row in _rows_of_file(file, scan, columns[file])]
    return ResultTable(names, rows)


def _rows_of_file(
    file: str, scan: SubstitutionScan, columns: Mapping[str, Sequence[float | str]]
) -> Iterator[tuple[str | int | float, ...]]:
    """Yield the 20 rows of each residue of a file."""
    from protgraph.structure import ALPHABET

    r, further = scan.residues, zip(*columns.values(), strict=True)
    for row, scores in zip(scan.rows.tolist(), scan.scores.tolist(), strict=True):
        residue = (file, str(r.chain[row]), int(r.res_id[row]), str(r.ins_code[row]), ALPHABET[r.aatype[row]])
        for mutant, value in zip(ALPHABET[:20], scores, strict=True):
            yield (*residue, mutant, value, *next(further))
