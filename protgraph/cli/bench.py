"""``protgraph bench``: models × tasks × seeds to a table, figures and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["bench_command"]


def bench_command(
    spec: Annotated[
        str, typer.Argument(help="TOML file, or a built-in comparison: pdb_core, sequences, contacts, ts50.")
    ] = "pdb_core",
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything again, finished rows too.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Worker processes; 0 takes one a core.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of all benchmarks.  [default: runs]")] = None,
) -> None:
    """Train and test every model of a spec on every task with every seed, and write the table, the figures, the report.

    Finished rows are kept: a run that was stopped goes on where it was. Exit code 1 means that some runs failed; their
    rows say why.

    The dataset may be a folder of one's own files, with a table of labels or without (see 'protgraph train --help');
    both are relative to the spec. Changed files or labels make its rows stale.

    \b
    A spec names what to compare:
      name = "mine"
      dataset = "pdb_core"
      tasks = ["secondary_structure"]
      models = ["majority", "gcn", "my_model"]
      baselines = ["majority"]
      seeds = [0, 1, 2]
      [fit]
      epochs = 20

    \b
    On one's own files, with a label column 'site':
      dataset = "my_structures"
      labels = "labels.csv"
      tasks = ["site", "inverse_folding"]

    \b
    Examples:
      protgraph bench
      protgraph bench sequences
      protgraph bench spec.toml --jobs 4
    """
    from protgraph.bench import BenchSpec, ProgressBar, run_bench, write_report
    from protgraph.bench.summary_table import compare_with_baselines, summarize
    from protgraph.cli.wording import count_noun

    is_file = spec.endswith(".toml") or Path(spec).exists()
    chosen = BenchSpec.from_toml(spec) if is_file else BenchSpec.built_in(spec)
    if jobs is not None:
        chosen = chosen.replace(jobs=jobs)
    if out is not None:
        chosen = chosen.replace(out=out)
    rows = run_bench(chosen, fresh=fresh, callback=ProgressBar())
    report = write_report(chosen, rows)
    typer.echo("\n" + (chosen.folder / "table.md").read_text(encoding="utf-8"))
    for line in compare_with_baselines(summarize(rows), chosen.baselines):
        typer.echo(line)
    left_out = {line for row in rows for line in row.left_out}
    if left_out:
        typer.echo(f"{count_noun(len(left_out), 'protein')} could not be used; the report says why")
    typer.echo(f"\nreport: {report}")
    if any(row.error for row in rows):
        raise typer.Exit(1)
