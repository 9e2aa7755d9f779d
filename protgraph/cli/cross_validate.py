"""Cross-validation of ``protgraph train --cv``: folds, printed table, files and interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from protgraph.cli.failures import failures_of_errors, report_failures
from protgraph.cli.output_path import check_output
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from lightning.pytorch import Callback
    from lightning.pytorch.loggers import Logger

    from protgraph.data.datasets.dataset import Dataset
    from protgraph.evaluation.bootstrap import SplitSize
    from protgraph.inference import ResultTable
    from protgraph.model import ModelSpec
    from protgraph.train import CrossValidation, FitConfig, FoldResult

__all__ = ["check_cross_validation_output", "run_cross_validation"]

_SUFFIXES = (".csv", ".parquet")


def check_cross_validation_output(out: Path, inputs: Iterable[str | Path | None], *, overwrite: bool) -> Path:
    """Check the paths of the table of predictions and of the table of folds; return the first."""
    inputs = list(inputs)
    if not out.name.endswith(_SUFFIXES):
        raise OptionError(
            f"--out {str(out)!r} with --cv. The output is a table of predictions: .csv or .parquet. Models are in the "
            "folder '.run' beside it."
        )
    check_output(out, inputs=inputs, overwrite=overwrite)
    check_output(_fold_path(out), inputs=[*inputs, out], overwrite=overwrite)
    return out


def run_cross_validation(
    model: str | ModelSpec,
    dataset: Dataset,
    task: str,
    cv: str,
    devices: int,
    make_loggers: Callable[[Path], list[Logger]],
    *,
    out: Path,
    resume: bool,
    config: FitConfig,
    workers: int,
    callbacks: Sequence[Callback],
) -> None:
    """Cross-validate, print the table, and write the predictions of all test folds and a row per fold."""
    if devices != 1:
        raise OptionError(f"--devices {devices} with --cv. Folds are trained on one device: remove --devices.")
    from protgraph.train import TrainingInterrupted, cross_validate

    run_dir = out.with_suffix(".run")
    typer.echo("cross-validation: the splits of the dataset are not used", err=True)
    try:
        with failures_of_errors(out):
            result = cross_validate(
                model,
                dataset,
                task,
                folds=_folds(cv),
                run_dir=run_dir,
                make_loggers=make_loggers,
                resume=resume,
                on_fold=_print_fold,
                config=config,
                workers=workers,
                callbacks=callbacks,
            )
            for note in result.notes:
                typer.echo(note, err=True)
            typer.echo(result.summary())
            result.predictions.write(out)
            _fold_table(result).write(_fold_path(out))
    except TrainingInterrupted as e:
        typer.echo(f"interrupted by {e.signal.name}. To continue, add --resume to the same command.", err=True)
        raise typer.Exit(128 + e.signal) from None
    typer.echo(f"predictions: {out}\nfolds: {_fold_path(out)}\nmodels: {run_dir}")
    report_failures(result.failures, out, any_succeeded=True)


def _folds(text: str) -> int | Literal["leave-one-group-out"]:
    if text == "leave-one-group-out":
        return "leave-one-group-out"
    if not text.isdecimal() or int(text) < 2:
        raise OptionError(f"--cv {text!r}. Allowed: a whole number from 2, or leave-one-group-out.")
    return int(text)


def _fold_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.folds.csv")


def _print_fold(fold: FoldResult) -> None:
    from protgraph.wording import format_decimals

    figures = "  ".join(f"{name} {format_decimals(value, 4)}" for name, value in fold.metrics.items())
    typer.echo(f"fold {fold.fold}  {fold.size.text()}  {figures}{'  (resumed)' if fold.is_resumed else ''}")


def _fold_table(result: CrossValidation) -> ResultTable:
    """Return a row per fold and one for all folds: proteins, best epoch, metrics, and those of the baseline."""
    from protgraph.inference import ResultTable

    names = [metric.name for metric in result.task.metrics]
    limits = [f"{name}_{end}" for name in names for end in ("low", "high")]
    positives = [] if result.size.with_positives is None else ["with_positives"]
    columns = ["fold", "proteins", *positives, "best_epoch", *names, *(f"majority_{n}" for n in names), *limits]

    def row(fold: int | str, size: SplitSize, epoch: int | str, *metrics: Mapping[str, float]) -> list[Any]:
        counts = [getattr(size, name) for name in ("proteins", *positives)]
        return [fold, *counts, epoch, *(values[name] for values in metrics for name in names)]

    rows = [row(f.fold, f.size, f.best_epoch, f.metrics, f.baseline) + [""] * len(limits) for f in result.folds]
    pooled = row("pooled", result.size, "", result.pooled, result.baseline)
    for name in names:
        pooled += [result.intervals[name].low, result.intervals[name].high]
    return ResultTable(tuple(columns), [tuple(cells) for cells in [*rows, pooled]])
