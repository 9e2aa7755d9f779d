"""``protgraph bench``: compare models on tasks over seeds, with a table, figures and a report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.command_group import CommandGroup
from protgraph.cli.failures import end_interrupted
from protgraph.cli.model_argument import SetValues
from protgraph.cli.output_path import check_no_standard_output, check_output_folder
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.bench import BenchSpec
    from protgraph.failure import Failure

__all__ = ["GROUP", "bench_command", "bench_compare_command"]

ENTRY_POINTS = {
    "protgraph.commands": {"bench": "GROUP", "bench.run": "bench_command", "bench.compare": "bench_compare_command"}
}

GROUP = CommandGroup(
    """Compare models; test two runs against each other; score mutations.

Without a subcommand, 'run' is used. Built-in specs: pdb_core (default), sequences, contacts, complexes, ts50, sites.

\b
Examples:
  protgraph bench
  protgraph bench spec.toml
  protgraph bench compare runs/before runs/after
  protgraph bench mutations
""",
    default="run",
    first=("run", "compare", "mutations"),
)


def bench_command(
    spec: Annotated[
        str,
        typer.Argument(help="TOML file, or a built-in spec: pdb_core, sequences, contacts, complexes, ts50, sites."),
    ] = "pdb_core",
    settings: SetValues = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Repeat finished runs too, and replace their results.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Number of worker processes; 0 starts one per core.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder of all benchmarks, or of this one if it has its name.  [default: runs]"
        ),
    ] = None,
) -> None:
    """Train and test every model of a spec on every task with every seed; write a table, figures and a report.

    Finished runs are kept: a stopped benchmark resumes, and --overwrite begins again. Exit code 1 means that some runs
    failed; the report has their errors.

    --set changes all models of the spec that have the path, and prints their names. The spec itself can have several
    models with different values, see below.

    The dataset can be a folder of your files, with or without a label table (see 'protgraph train --help'); both
    paths are relative to the spec. Runs are repeated if files or labels have changed.

    \b
    A spec:
      name = "mine"
      dataset = "pdb_core"
      tasks = ["secondary_structure"]
      models = ["majority", "gcn", "my_model"]
      baselines = ["majority"]
      seeds = [0, 1, 2]
      [fit]
      epochs = 20

    \b
    Changes for your files, with a label column 'site':
      dataset = "my_structures"
      labels = "labels.csv"
      tasks = ["site", "inverse_folding"]
      [read]
      assembly = "1"

    \b
    Several datasets, and a published score beside the models:
      tasks = ["ligand_binding", "site"]
      [datasets]
      ligand_binding = "pdb_core"
      site = "my_structures"
      [[published]]
      task = "site"
      method = "Name"
      metric = "auprc"
      value = 0.4

    \b
    Models as data: a width scan, a model of a file, and a new one:
      models = [
        "gcn",
        { name = "gcn", as = "gcn128", set = { "layers.*.dim" = 128 } },
        "my_model.toml",
        { name = "small", features = ["knn"], layers = [{ name = "embed", reads = ["aatype"] }, "gcn"] },
      ]

    \b
    Trained models beside the others, and models that may be absent:
      models = ["gcn", "esm_hybrid"]
      optional = ["esm_hybrid"]
      [trained]
      site = ["my_site/model.safetensors"]

    \b
    Examples:
      protgraph bench
      protgraph bench sequences
      protgraph bench run spec.toml --jobs 4
      protgraph bench spec.toml --set 'layers.*.dim=128' -o runs/wide
    """
    from protgraph.bench import ProgressBar, run_bench, write_report
    from protgraph.bench.job_plan import describe_folder
    from protgraph.bench.report import FAILURES
    from protgraph.bench.summaries import compare_with_baselines, summarize
    from protgraph.wording import count_noun

    if out is not None:
        check_no_standard_output(out, "--out '-'")
    bench_spec = _read_spec(spec, settings, jobs, out)
    check_output_folder(bench_spec.folder, inputs=[bench_spec.labels], overwrite=True, apart=True)
    for text in describe_folder(bench_spec):
        typer.echo(text, err=True)
    bar = ProgressBar()
    try:
        rows = run_bench(bench_spec, overwrite=overwrite, callback=bar)
    except KeyboardInterrupt as e:
        finished, total = bar.counts
        text = f"{finished} of {total} runs are finished and stay in {bench_spec.folder}."
        end_interrupted(e, f"{text} To continue, repeat the command without --overwrite.")
    report = write_report(bench_spec, rows)
    typer.echo("\n" + (bench_spec.folder / "table.md").read_text(encoding="utf-8"))
    for line in compare_with_baselines(summarize(rows), bench_spec.baselines):
        typer.echo(line)
    failures: set[Failure] = set()
    has_failed = False
    for row in rows:
        failures.update(row.failures)
        if row.error and row.model not in bench_spec.optional:
            has_failed = True
    if failures:
        typer.echo(f"{count_noun(len(failures), 'protein')} left out; see {report.parent / FAILURES}")
    typer.echo(f"\nreport: {report}")
    if has_failed:
        raise typer.Exit(1)


def _read_spec(spec: str, settings: list[str] | None, jobs: int | None, out: Path | None) -> BenchSpec:
    """Read a file or a built-in spec, and apply the options of the command."""
    from protgraph.bench import BenchSpec
    from protgraph.model import parse_settings

    is_file = spec.endswith(".toml") or Path(spec).exists()
    bench_spec = BenchSpec.from_toml(spec) if is_file else BenchSpec.built_in(spec)
    for path, value in parse_settings(settings or []).items():
        changed = bench_spec.with_setting(path, value)
        names = [name for name in changed.models if changed.graphs.get(name) != bench_spec.graphs.get(name)]
        typer.echo(f"--set {path}: {', '.join(names) or 'no model changes'}", err=True)
        bench_spec = changed
    if jobs is not None:
        bench_spec = bench_spec.replace(jobs=jobs)
    if out is not None:
        bench_spec = bench_spec.replace(out=out)
    return bench_spec


def bench_compare_command(
    a: Annotated[Path, typer.Argument(help="Folder of a finished run, e.g. runs/before.")],
    b: Annotated[Path, typer.Argument(help="Folder of another run on the same data.")],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            metavar="A=B",
            help="Compare model A of the first run with model B of the second; repeat for more.  [default: models of "
            "the same name]",
        ),
    ] = None,
) -> None:
    """Test two benchmark runs against each other, paired over proteins and seeds.

    Prints a table with a verdict per task, split, model and metric: scores, the difference with its 95 % interval over
    proteins, the mean difference per protein, and the p-value of a sign permutation test over proteins, adjusted by
    Holm's method for all rows. Runs on other versions of a dataset, other proteins or other labels are refused.

    \b
    Examples:
      protgraph bench compare runs/before runs/after
      protgraph bench compare runs/one runs/two --models gcn=mpnn
    """
    from protgraph.bench.run_comparison import compare_runs, differences_table

    for text in models or ():
        if text.count("=") != 1 or not all(text.split("=")):
            raise OptionError(f"--models {text!r}. Allowed: the name in run A, '=', and the name in run B.")
    differences = compare_runs(a, b, models=dict(text.split("=") for text in models or ()) or None)
    typer.echo(differences_table(differences))
    counts = Counter(difference.verdict for difference in differences)
    typer.echo(f"\nA: {a}, B: {b}: {', '.join(f'{verdict}: {n}' for verdict, n in counts.items())}")
