"""Command ``protgraph bench affinity``: predictions of pK beside floors and published scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import Overwrite, check_output, progress_bar

if TYPE_CHECKING:
    from protgraph_datasets.affinity.dataset import Affinity
    from protgraph_datasets.affinity.floors import ComplexSize
    from protgraph_datasets.affinity.scores import AffinityScore, Complexes

__all__ = ["bench_affinity_command"]
ENTRY_POINTS = {"protgraph.commands": {"bench.affinity": "bench_affinity_command"}}


def bench_affinity_command(
    core: Annotated[
        list[Path] | None, typer.Option(help="Table of protgraph predict, scored on the core set; repeat.")
    ] = None,
    cold: Annotated[
        list[Path] | None,
        typer.Option(help="Tables of the models of the cold folds, in the order of the folds; repeat five times."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table of scores to write, a .csv file.")] = Path(
        "affinity.csv"
    ),
    overwrite: Overwrite = False,
) -> None:
    """Score predictions of pK: RMSE and Pearson's r on the core set and on five folds without relatives in train.

    Beside them are the mean of train, and lines through the ligand's size, its weight and the buried area, fitted on
    the train split of each test set; and, for the core set, the published scores of the card. Intervals are over
    families of proteins (95 %).

    \b
    Examples:
      protgraph bench affinity
      protgraph bench affinity --core core.csv --cold cold_0.csv --cold cold_1.csv --cold cold_2.csv \\
        --cold cold_3.csv --cold cold_4.csv -o scores.csv
    """
    from protgraph_datasets.affinity.dataset import FOLDS, Affinity
    from protgraph_datasets.affinity.scores import floor_scores, prediction_scores, read_affinities, read_complexes

    from protgraph.errors import OptionError

    core, cold = core or [], cold or []
    if len(cold) not in (0, FOLDS):
        raise OptionError(f"--cold: {len(cold)} tables. Allowed: one for each of the {FOLDS} folds, in their order.")
    check_output(out, inputs=[*core, *cold], overwrite=overwrite, suffixes=[".csv"])
    dataset = Affinity()
    complexes = read_complexes(dataset)
    scores = []
    for path in core:
        scores += prediction_scores(path.stem, complexes, {"core": read_affinities(path)})
    if cold:
        folds = {f"cold {fold}": read_affinities(path) for fold, path in enumerate(cold)}
        scores += prediction_scores("models of the folds", complexes, folds)
    scores = [*floor_scores(complexes, _sizes(dataset, complexes)), *scores]
    _print_scores(scores, dataset)
    _write_scores(out, scores)
    typer.echo(f"table → {out}")


def _sizes(dataset: Affinity, complexes: Complexes) -> list[ComplexSize]:
    """Return the sizes of all complexes."""
    from protgraph_datasets.affinity.floors import complex_size

    from protgraph.structure import clean, load_structure

    path_of_file = {example.path.name: example.path for example in dataset.examples("pK")}
    sizes = []
    with progress_bar() as progress:
        for file in progress.track(complexes.files, description="sizes of complexes"):
            sizes.append(complex_size(clean(load_structure(path_of_file[file]), ligands=True)))
    return sizes


def _print_scores(scores: list[AffinityScore], dataset: Affinity) -> None:
    """Print the scores of each test set, and the published ones of the core set."""
    from protgraph.cli import print_rows

    rows = [("test set", "method", "Pearson r", "RMSE", "complexes", "families")]
    for name in dict.fromkeys(score.test_set for score in scores):
        for score in scores:
            if score.test_set != name:
                continue
            pearson = _with_interval(score.pearson, score.pearson_interval)
            rmse = _with_interval(score.rmse, score.rmse_interval)
            rows.append((name, score.method, pearson, rmse, str(score.complexes), str(score.families)))
        if name == "core":
            rows += _published_rows(dataset)
    print_rows(rows)


def _published_rows(dataset: Affinity) -> list[tuple[str, str, str, str, str, str]]:
    """Return the published scores of the card, a row for each method."""
    values: dict[str, dict[str, float]] = {}
    for score in dataset.card.tasks["pK"].published:
        values.setdefault(score.method, {})[score.metric] = score.value
    rows = []
    for method, of_metric in values.items():
        rows.append(
            ("core", f"{method}, published", f"{of_metric['pearson_overall']:.3f}", f"{of_metric['rmse']:.3f}", "", "")
        )
    return rows


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    if value != value:  # NaN: a constant has no correlation
        return "–"
    low, high = interval
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _write_scores(path: Path, scores: list[AffinityScore]) -> None:
    """Write a row for each method and test set."""
    import csv

    from protgraph.file_io import atomic_write

    columns = ("test_set", "method", "complexes", "families", "pearson", "pearson_low", "pearson_high")
    with atomic_write(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow((*columns, "rmse", "rmse_low", "rmse_high"))
        for score in scores:
            intervals = (score.pearson, *score.pearson_interval, score.rmse, *score.rmse_interval)
            numbers = [round(number, 4) for number in intervals]
            table.writerow((score.test_set, score.method, score.complexes, score.families, *numbers))
