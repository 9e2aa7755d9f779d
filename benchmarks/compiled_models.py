"""Training with compiled layers against training without: ``python -m benchmarks.compiled_models [FAMILY …]``.

Names select families. Every family trains two epochs on the smallest entries of ``pdb_core``. The difference is that of
the losses of both epochs, in training and in validation. Families that download weights have random ones. With
``--no-dropout``, layers have no dropout: ``ligandmpnn`` draws it for the atoms that exist, and when compiled, for all,
with other random numbers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path

import torch
from torch._dynamo.utils import counters

from protgraph import registry
from protgraph.errors import LeakError, MissingExtraError, OptionError, ProtgraphError, WiringError
from protgraph.model import ModelSpec
from protgraph.testing.offline_models import offline_models
from protgraph.train import FitConfig, FitResult, fit

__all__ = ["CompiledTraining", "compare_training", "main"]

STRUCTURES = Path(__file__).parents[1] / "datasets" / "pdb_core" / "structures"
CONFIG = FitConfig(epochs=2, batch_residues=512, device="cpu")
#: In this order; the first that a model can be trained for.
TASKS = ("secondary_structure", "inverse_folding", "language_modeling", "structure_prediction")
LIMIT = 1e-4
"""Largest relative difference of a loss that is allowed, float32."""


@dataclass(frozen=True)
class CompiledTraining:
    """Comparison of two runs of one family.

    Parameters
    ----------
    family : str
    task : str
    difference : float
        Largest relative difference of the losses of both splits and epochs.
    seconds : float
        Of the run with compiled layers.
    graphs : int
        Graphs that were compiled; a graph break would be an error.
    notes : tuple of str
        Layers that are not compiled, each with the reason.
    """

    family: str
    task: str
    difference: float
    seconds: float
    graphs: int
    notes: tuple[str, ...]


def compare_training(family: str, cache: Path, *, proteins: int = 20, dropout: bool = True) -> CompiledTraining:
    """Train a family with and without compiled layers on the same batches, with the same random numbers.

    Parameters
    ----------
    family : str
    cache : Path
        Folder of prepared data.
    proteins : int
        Entries to train on and to validate, the smallest ones.
    dropout : bool
        False sets the option ``dropout`` of all layers to 0.

    Raises
    ------
    ProtgraphError
        It cannot be trained for any of ``TASKS``.
    """
    spec = offline_models(registry.models.get(family))
    spec = spec if dropout else _without_dropout(spec)
    files = sorted(STRUCTURES.glob("*.bcif"), key=lambda path: (path.stat().st_size, path.name))[:proteins]
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            (Path(folder) / path.name).symlink_to(path)
        task, plain = _train(spec, Path(folder), cache)
        start, graphs = time.perf_counter(), counters["stats"]["unique_graphs"]
        with torch._inductor.config.patch(fallback_random=True):  # dropout draws the numbers that it draws without
            _, compiled = _train(spec, Path(folder), cache, replace(CONFIG, compile=True), (task,))
        seconds = time.perf_counter() - start
    graphs = counters["stats"]["unique_graphs"] - graphs
    notes = tuple(note for note in compiled.notes if note.startswith("not compiled"))
    return CompiledTraining(family, task, _difference(plain, compiled), seconds, graphs, notes)


def _without_dropout(spec: ModelSpec) -> ModelSpec:
    """Return a model whose layers have no dropout, where they have this option."""
    layers = []
    for layer in spec.layers:
        has_dropout = "dropout" in signature(registry.layers.get(layer.name)).parameters
        layers.append(replace(layer, options={**layer.options, "dropout": 0.0}) if has_dropout else layer)
    return replace(spec, layers=tuple(layers))


def _train(
    spec: ModelSpec, folder: Path, cache: Path, config: FitConfig = CONFIG, tasks: Sequence[str] = TASKS
) -> tuple[str, FitResult]:
    """Train for the first task that the model fits."""
    for task in tasks:
        try:
            return task, fit(spec, folder, task, config=config, cache=cache)
        except (LeakError, OptionError, WiringError):
            if task == tasks[-1]:
                raise
    raise AssertionError("no task")


def _difference(a: FitResult, b: FitResult) -> float:
    """Return the largest relative difference of a loss; infinity if one is not finite."""
    losses = [
        torch.tensor([row[key] for row in result.history for key in ("train_loss", "val_loss")], dtype=torch.float64)
        for result in (a, b)
    ]
    if len(losses[0]) != len(losses[1]) or not all(x.isfinite().all() for x in losses):
        return float("inf")
    return float(((losses[0] - losses[1]).abs() / losses[0].abs().clamp(min=1e-3)).max())


def _rows(families: Sequence[str], cache: Path, *, dropout: bool) -> Iterator[tuple[str, bool]]:
    """Yield a row of the table for each family, and True if it is as it should be."""
    for family in families:
        try:
            found = compare_training(family, cache, dropout=dropout)
        except MissingExtraError as e:
            yield f"| `{family}` | | | | {str(e).splitlines()[0]} |", True
            continue
        except ProtgraphError as e:
            yield f"| `{family}` | | | | {type(e).__name__}: {str(e).splitlines()[0]} |", False
            continue
        finally:
            torch.compiler.reset()
        notes = "; ".join(note.removeprefix("not compiled: ") for note in found.notes)
        yield (
            f"| `{family}` | {found.task} | {found.graphs} | {found.difference:.0e} | {notes} |",
            found.difference <= LIMIT,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table with one row per family; return 1 if a family cannot be trained or differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help="default: all")
    parser.add_argument("--no-dropout", action="store_true", help="set the option dropout of all layers to 0")
    parsed = parser.parse_args(arguments)
    chosen = parsed.families or registry.models.names()
    torch.set_num_threads(1)
    print(
        "| family | task | graphs | difference of the loss | layers that are not compiled |\n|---|---|---:|---:|---|",
        flush=True,
    )
    failed = []
    with tempfile.TemporaryDirectory() as cache:
        for row, is_equal in _rows(chosen, Path(cache), dropout=not parsed.no_dropout):
            print(row, flush=True)
            failed += [row] * (not is_equal)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
