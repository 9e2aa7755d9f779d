"""``protgraph bench tu``: graph classification under the protocol of Errica et al. 2020."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.errors import OptionError

__all__ = ["bench_tu_command"]


def bench_tu_command(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(help="Datasets of graphs.  [default: tu_enzymes and tu_proteins]", show_default=False),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="gin or sage; repeat for both.  [default: both]")
    ] = None,
    grid: Annotated[str, typer.Option(help="small: 2 candidates; full: the grid of the paper.")] = "small",
    folds: Annotated[
        Path | None,
        typer.Option(help="JSON file of folds in the layout of the paper's program.  [default: 10 folds, seed 0]"),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs.  [default: 100; grid full: 1000, patience 500]")] = None,
    runs: Annotated[int, typer.Option(help="Tested runs per fold.")] = 3,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of all benchmarks.")] = Path("runs"),
) -> None:
    """Classify graphs with GIN and GraphSAGE: ten folds, model selection within each (Errica et al. 2020).

    In each fold, every candidate of the grid is trained once. The one with the best accuracy on a holdout of 10 % is
    trained three more times and tested. The table has the mean and standard deviation over folds beside the published
    score. Finished runs are kept: a stopped command resumes.

    \b
    Examples:
      protgraph data prepare tu_enzymes --download
      protgraph bench tu tu_enzymes --model gin
      protgraph bench tu tu_enzymes --folds ENZYMES_splits.json --grid full
    """
    from protgraph.bench.nested_folds import read_folds
    from protgraph.bench.nested_selection import NestedRun
    from protgraph.bench.nested_table import assess_graph_model, nested_table
    from protgraph.file_io import write_text_file
    from protgraph.train import load_dataset

    names = datasets or ["tu_enzymes", "tu_proteins"]
    if folds is not None and len(names) != 1:
        raise OptionError(f"--folds with {len(names)} datasets. The file is of one dataset: name it.")

    def show(run: NestedRun) -> None:
        test = "" if run.test is None else f", test {run.test:.3f}"
        typer.echo(f"fold {run.fold + 1}, {run.candidate}, seed {run.seed}: validation {run.val:.3f}{test}", err=True)

    scores = []
    for name in names:
        dataset = load_dataset(name)
        (task,) = dataset.card.tasks
        parts = None if folds is None else read_folds(folds, dataset, task)
        for model in models or ["gin", "sage"]:
            options = {"grid": grid, "epochs": epochs, "runs": runs, "folds": parts}
            rows = out / "tu" / f"{dataset.name}_{model}.jsonl"
            scores.append(assess_graph_model(model, dataset, task, rows=rows, on_run=show, **options))
    table = nested_table(scores)
    write_text_file(out / "tu" / "table.md", table + "\n")
    typer.echo(table)
