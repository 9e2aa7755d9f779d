"""``protgraph bench probes``: what frozen vectors of a model are worth, on ten tasks, beside other vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import check_output_folder, progress_bar
from protgraph.errors import OptionError, suggest

if TYPE_CHECKING:
    from protgraph_plugins.probes.heads import ProbeRows
    from protgraph_plugins.probes.scores import ProbeScore, SkippedTask
    from protgraph_plugins.probes.tasks import ProbeTask
    from protgraph_plugins.probes.vectors import ProteinFiles, VectorSource

__all__ = ["bench_probes_command"]
ENTRY_POINTS = {"protgraph.commands": {"bench.probes": "bench_probes_command"}}

_MODEL = "structure_encoder"


def bench_probes_command(
    models: Annotated[
        list[str] | None,
        typer.Option("--model", help="Trained model, or checkpoint file; repeat.  [default: structure_encoder]"),
    ] = None,
    tasks: Annotated[list[str] | None, typer.Option("--task", help="Task; repeat.  [default: all ten]")] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=2,
            help="Most training and test proteins of a task, half as many for validation; scop_fold: ten times.",
        ),
    ] = 60,
    curves: Annotated[
        list[str] | None,
        typer.Option("--curve", help="Task with a label-efficiency curve, also of training from scratch; repeat."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of training from scratch.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Choice of proteins, and initial weights of the MLP.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the tables and vectors.")] = Path("probes"),
) -> None:
    """Score frozen vectors: a linear head and a small MLP on ten tasks, beside four other kinds of vectors.

    The others are the network of the first model with random weights, the encoder of ProteinMPNN, and 3Di letters and
    residue types in a window of 15 positions. Models are not changed; options of heads are chosen on validation, and
    the test proteins are predicted once. All models are scored on the same residues, with intervals and paired tests of
    the first model against each other one over clusters of proteins. A star marks p < 0.05 (Holm).

    Vectors are kept in OUT: repeat a stopped command to continue it. Tasks of datasets that are not prepared are
    skipped.

    \b
    Examples:
      protgraph bench probes -o probes
      protgraph bench probes --model my.safetensors --task dna_site --limit 200 -o dna
      protgraph bench probes --task secondary_structure --curve secondary_structure -o curve
    """
    from protgraph_plugins.probes.heads import HEADS
    from protgraph_plugins.probes.scores import probe_table, write_probe_scores

    models = models or [_MODEL]
    chosen = _find_tasks(tasks or None)
    with_curve = _find_tasks(curves or [])
    # contract: a folder of an earlier run is continued, since its vectors are used again
    out = check_output_folder(out, inputs=models, overwrite=True)
    sources = _open_sources(models)

    scores: list[ProbeScore] = []
    skipped: list[SkippedTask] = []
    for task in chosen:
        result = _try_task(task, sources, limit, seed, out)
        if isinstance(result, list):
            scores += result
        else:
            skipped.append(result)
            typer.echo(f"note: {task.name} is skipped: {result.reason}", err=True)
    for task in with_curve:
        _draw_curve(task, sources, limit, epochs, seed, out)

    options = {"models": [source.key for source in sources], "limit": limit, "seed": seed}
    write_probe_scores(out, scores, skipped, options)
    for head in HEADS:
        typer.echo(probe_table(head, scores, skipped))
    typer.echo(f"table → {out / 'table.csv'}, {out / 'probes.json'}")


def _find_tasks(names: Sequence[str] | None = None) -> list[ProbeTask]:
    """Return tasks by name; None: all."""
    from protgraph_plugins.probes.tasks import TASKS

    for name in names or ():
        if name not in TASKS:
            raise OptionError(f"unknown task {name!r}.{suggest(name, TASKS)} Allowed: {', '.join(TASKS)}.")
    return [TASKS[name] for name in (TASKS if names is None else names)]


def _open_sources(models: list[str]) -> list[VectorSource]:
    """Return the tested models, and the vectors that they are compared with."""
    from protgraph_plugins.probes.vectors import (
        ModelVectors,
        WindowVectors,
        check_names,
        proteinmpnn_vectors,
        random_vectors,
    )

    tested = [ModelVectors.open(name) for name in models]
    proteinmpnn = proteinmpnn_vectors(one_chain=tested[0].checkpoint.one_chain)  # it reads the same chains
    windows = [WindowVectors("3di"), WindowVectors("residue_type")]
    sources: list[VectorSource] = [*tested, random_vectors(tested[0]), proteinmpnn, *windows]
    check_names(sources)
    return sources


def _try_task(
    probe: ProbeTask, sources: list[VectorSource], limit: int, seed: int, out: Path
) -> list[ProbeScore] | SkippedTask:
    """Return the scores of a task, or why there are none."""
    from protgraph_plugins.probes.scores import SkippedTask
    from protgraph_plugins.probes.tasks import missing_dataset

    from protgraph.errors import DatasetError

    missing = missing_dataset(probe)
    if missing is not None:
        return SkippedTask(probe.name, f"not prepared: protgraph data prepare {missing} --from FOLDER")
    try:
        return _score_task(probe, sources, limit, seed, out)
    except DatasetError as e:
        return SkippedTask(probe.name, str(e))


def _score_task(probe: ProbeTask, sources: list[VectorSource], limit: int, seed: int, out: Path) -> list[ProbeScore]:
    """Compute the vectors of a task, fit the heads, and score them on the test proteins."""
    from protgraph_plugins.probes.heads import HEADS, constant_predictions, fitted_head
    from protgraph_plugins.probes.scores import probe_scores
    from protgraph_plugins.probes.vectors import split_rows

    files = _open_files(probe, sources, limit, seed, out)
    rows = {split: split_rows(files, split) for split in files.splits.examples}
    metric, target = probe.find_metric(), files.splits.target
    test = rows["test"][sources[0].name]
    floor = constant_predictions(target, rows["train"][sources[0].name], test)
    scores: list[ProbeScore] = []
    for head in HEADS:
        predictions = {}
        for source in sources:
            parts = [rows[split][source.name] for split in ("train", "val", "test")]
            predictions[source.name] = fitted_head(out / "fits", head, target, metric, *parts, seed=seed)
        scores += probe_scores(probe.name, head, metric, predictions, test.clusters, floor)
        best = max(scores[-len(sources) :], key=lambda score: score.score)
        typer.echo(f"{probe.name}, {head}: best {best.model} {best.score:.3f}", err=True)
    return scores


def _open_files(probe: ProbeTask, sources: list[VectorSource], limit: int, seed: int, out: Path) -> ProteinFiles:
    """Choose the proteins of a task, and compute the vectors that are missing."""
    from protgraph_plugins.probes.tasks import open_task
    from protgraph_plugins.probes.vectors import ProteinFiles

    splits = open_task(probe, {"train": limit, "val": max(1, limit // 2), "test": limit}, seed=seed)
    files = ProteinFiles(out / "vectors", splits, sources)
    with progress_bar() as bar:
        number = sum(len(members) for members in splits.examples.values())
        line = bar.add_task(probe.name, total=number)
        files.compute(lambda example: bar.advance(line))
    if files.failures:
        typer.echo(
            f"note: {probe.name}: {len(files.failures)} proteins could not be read: {files.failures[0]}", err=True
        )
    return files


def _draw_curve(probe: ProbeTask, sources: list[VectorSource], limit: int, epochs: int, seed: int, out: Path) -> None:
    """Write and draw the scores of a task by the number of training proteins."""
    from protgraph_plugins.probes.curves import draw_curve, linear_points, scratch_points, write_curve
    from protgraph_plugins.probes.vectors import ModelVectors, split_rows

    files = _open_files(probe, sources, limit, seed, out)
    rows: dict[str, dict[str, ProbeRows]] = {source.name: {} for source in sources}
    for split in files.splits.examples:
        for name, of_split in split_rows(files, split).items():
            rows[name][split] = of_split
    first, metric = sources[0], probe.find_metric()
    assert isinstance(first, ModelVectors)  # contract: the tested models come first
    points = linear_points(out / "fits", files.splits, metric, rows, seed=seed)
    train = rows[first.name]["train"].names
    spec = first.checkpoint.model.spec
    points += scratch_points(spec, files.splits, metric, train, epochs=epochs, seed=seed)
    write_curve(points, out / f"curve_{probe.name}.csv")
    draw_curve(points, probe.name, metric, out / f"curve_{probe.name}.png")
    for point in points:
        interval = f"[{point.low:.3f}, {point.high:.3f}]"
        typer.echo(
            f"{probe.name}: {point.model}, {point.proteins} proteins: {metric.name} {point.score:.3f} {interval}"
        )
