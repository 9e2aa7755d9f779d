"""Options ``--dry-run``, ``--batch-residues auto`` and ``--memory-limit`` of ``protgraph train``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.model import ModelSpec
    from protgraph.train import FitConfig, ResourceEstimate

__all__ = [
    "BatchResidues",
    "DryRun",
    "MemoryLimit",
    "check_one_process",
    "choose_budget",
    "parse_budget",
    "print_dry_run",
]

BatchResidues = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Residues per batch, of all processes together. 'auto': as many as --memory-limit allows.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Measure a few batches, print peak memory and time per epoch, and exit.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="For --batch-residues auto and --dry-run: 4GiB, 500MB.  [default: free memory]"),
]

_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def parse_budget(text: str) -> int | None:
    """Return the number of residues per batch, None for 'auto'."""
    if text == "auto":
        return None
    if not re.fullmatch(r"[0-9]+", text) or int(text) < 1:
        raise OptionError(f"--batch-residues {text!r}. Allowed: a number of 1 or more, or 'auto'.")
    return int(text)


def _mebibytes(text: str | None) -> float | None:
    """Return the size of a text such as '4GiB', MiB."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*", text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or not float(match[1]) > 0:
        raise OptionError(f"--memory-limit {text!r}. Allowed: a size with its unit, e.g. 4GiB, 500MB.")
    return float(match[1]) * unit / 2**20


def check_one_process(option: str, *, devices: int, cv: str | None, resume: bool) -> None:
    """Raise if an option that measures the batches of one process is used with another kind of run."""
    others = {"--devices": devices != 1, "--cv": cv is not None, "--resume": resume}
    if used := [name for name, is_used in others.items() if is_used]:
        raise OptionError(
            f"{option} with {used[0]}. It measures a new run of one process. Leave {used[0]} out, or give "
            "--batch-residues a number."
        )


def choose_budget(
    model: str | ModelSpec, dataset: Dataset, task: str, config: FitConfig, memory_limit: str | None
) -> FitConfig:
    """Choose the residues per batch for a memory limit, print them, and return the options with them."""
    from protgraph.train import choose_batch_residues

    estimate = choose_batch_residues(model, dataset, task, config=config, memory_limit=_mebibytes(memory_limit))
    cost = estimate.cost
    typer.echo(
        f"--batch-residues {estimate.chosen}: peak memory {cost.memory:.0f} MiB of {estimate.limit:.0f} MiB, "
        f"{cost.batches} batches per epoch",
        err=True,
    )
    return replace(config, batch_residues=estimate.chosen)


def print_dry_run(
    model: str | ModelSpec, dataset: Dataset, task: str, config: FitConfig, memory_limit: str | None, *, auto: bool
) -> None:
    """Measure memory and time of a run, and print a table with a row per budget of residues per batch."""
    from protgraph.train import choose_batch_residues, estimate_resources

    function = choose_batch_residues if auto else estimate_resources
    found = function(model, dataset, task, config=config, memory_limit=_mebibytes(memory_limit))
    for line in _table(found, config.epochs):
        typer.echo(line)


def _table(estimate: ResourceEstimate, epochs: int) -> list[str]:
    """Return the lines of the table and its explanation."""
    from protgraph.wording import count_noun

    lines = [f"{'batch-residues':>14}  {'batches':>7}  {'largest':>7}  {'peak MiB':>8}  {'s/epoch':>8}"]
    for row in estimate.budgets:
        sizes = f"{row.batch_residues:>14}  {row.batches:>7}  {row.largest:>7}"
        mark = "  *" if row.batch_residues == estimate.chosen else ""
        lines.append(f"{sizes}  {row.memory:>8.0f}  {row.seconds:>8.3g}{mark}")
    cost = estimate.cost
    lines.append(
        f"peak of {estimate.chosen} residues per batch: {cost.memory:.0f} MiB (process {estimate.process:.0f}, "
        f"evaluation batch {estimate.evaluation:.0f}); limit {estimate.limit:.0f} MiB"
    )
    lines.append(
        f"{count_noun(epochs, 'epoch')}: at most {cost.seconds * epochs:.0f} s. Nothing was trained or written."
    )
    if cost.memory > estimate.limit:
        lines.append("The run needs more memory than the limit. Use --batch-residues auto, or a smaller model.")
    return lines
