"""``protgraph bench mutations``: models of mutation effects beside published predictors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from protgraph_plugins.mutations.options import load_scorer

from protgraph.cli import Overwrite, check_output
from protgraph.errors import DatasetError, OptionError
from protgraph.file_io import write_text_file

if TYPE_CHECKING:
    from protgraph_plugins.mutations.dataset import MutationDataset
    from protgraph_plugins.mutations.scorer import MutationScorer

__all__ = ["bench_mutations_command"]
ENTRY_POINTS = {"protgraph.commands": {"bench.mutations": "bench_mutations_command"}}

#: Dataset → splits.
_SPLITS = {
    "ddg_stability": ["test"],
    "ddg_s461": ["test"],
    "ddg_ssym": ["direct", "reverse"],
    "ddg_megascale": ["test"],
    "ddg_binding": ["test"],
    "fitness": ["test"],
}

_MODELS = ["ddg", "ddg_binding", "proteinmpnn.v_48_020"]


def bench_mutations_command(
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Scorer, as in 'protgraph mutate'; repeat.  [default: ddg, ddg_binding, proteinmpnn.v_48_020]",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Dataset and split, NAME:SPLIT; repeat.  [default: all tests]")
    ] = None,
    coverage: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Least share of the rows that a method of the main table predicts.")
    ] = 0.9,
    out: Annotated[Path, typer.Option("--out", "-o", help="Markdown file of the tables.")] = Path("mutations.md"),
    overwrite: Overwrite = False,
) -> None:
    """Compare models with published predictors: folding (S669, S461, Ssym, Mega-scale), binding (SKEMPI), fitness.

    All methods of a table are scored on the same rows, those that each of them predicts. Intervals are over structures.
    The floor of sets with a training split is its mean for the wild type and the mutant.
    Ssym has the correlation between direct and reverse predictions, and the bias. Complexes have two scores: that of
    the model, and the complex minus its separated partners. Models of binding score complexes only. Scans of fitness
    have a rank correlation for each protein.

    Finished structures are kept in OUT.scores.jsonl: a stopped command resumes.

    \b
    Example:
      protgraph data prepare ddg_stability --from FOLDER    (and the other sets)
      protgraph bench mutations -o mutations.md
      protgraph bench mutations --set ddg_s461:test --model esm2 -o s461.md
      protgraph bench mutations --set ddg_stability:test --coverage 1 -o s669.md
    """
    out = check_output(out, overwrite=overwrite)
    chosen = _chosen(sets)
    datasets: dict[str, MutationDataset] = {}
    for name, _ in chosen:  # loaded before hours of work
        if name not in datasets:
            datasets[name] = _load(name)
    from protgraph_plugins.mutations.comparison import ScoreCache, mutation_rows, mutation_table

    scorers = [load_scorer(name) for name in models or _MODELS]
    _check_binding(scorers, datasets.values())
    cache = ScoreCache(out.with_name(f"{out.name}.scores.jsonl"))
    rows = []
    for name, split in chosen:
        finished = count(1)

        def report(structure: str, name: str = name, split: str = split, finished: Iterator[int] = finished) -> None:
            typer.echo(f"{name} {split}: {next(finished)} {structure}", err=True)

        rows.append(mutation_rows(datasets[name], split, scorers, report, cache=cache))
    if cache.found:
        typer.echo(f"note: {cache.found} scores of structures are of an earlier run ({cache.path})", err=True)
    table = mutation_table(rows, coverage)
    write_text_file(out, table)
    typer.echo(table)


def _check_binding(scorers: Sequence[MutationScorer], datasets: Iterable[MutationDataset]) -> None:
    """Raise :class:`OptionError` if all scorers are models of binding and a dataset has no partners."""
    from protgraph_plugins.mutations.binding_scorer import is_binding_model
    from protgraph_plugins.mutations.dataset import MutationDataset

    without = [data.name for data in datasets if type(data).partners is MutationDataset.partners]
    if without and all(map(is_binding_model, scorers)):
        names = ", ".join(scorer.name for scorer in scorers)
        raise OptionError(f"{names}: no score for {without[0]!r}, which has no partners. Give --set ddg_binding:test.")


def _chosen(sets: list[str] | None) -> list[tuple[str, str]]:
    """Return the datasets and splits of ``--set``; all tests by default."""
    if not sets:
        return [(name, split) for name, splits in _SPLITS.items() for split in splits]
    pairs = []
    for text in dict.fromkeys(sets):
        name, _, split = text.partition(":")
        if not split:
            raise OptionError(f"invalid --set: {name!r}. Give dataset and split, e.g. ddg_s461:test.")
        pairs.append((name, split))
    return pairs


def _load(name: str) -> MutationDataset:
    """Return a prepared dataset of mutations; its rows without a label or a place in the structure are printed."""
    from protgraph_plugins.mutations.dataset import MutationDataset

    from protgraph.labels import load_dataset

    dataset = load_dataset(name)
    if not isinstance(dataset, MutationDataset):
        raise DatasetError(f"dataset {name!r} has no mutations. Give one of mutations, e.g. ddg_s461.")
    if dataset.failures:
        typer.echo(
            f"note: {name}: {len(dataset.failures)} rows without a value, or that do not fit their structure, are left "
            f"out ({dataset.folder / 'failures.tsv'})",
            err=True,
        )
    return dataset
