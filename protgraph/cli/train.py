"""``protgraph train``: a model on a dataset, or on a folder of one's own files, with a table of labels or without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli.read_options import reads_structures
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.structure import ReadOptions

__all__ = ["train_command"]


@reads_structures()
def train_command(
    model: Annotated[str, typer.Argument(help="Model by name: 'gat', 'gat.v1'.")],
    data: Annotated[str, typer.Option(help="Dataset by name, a folder of structure or FASTA files, or a graph store.")],
    task: Annotated[
        str | None, typer.Option(help="Task of the dataset, or label column of the table; needed unless there is one.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="CSV of labels or splits, for a folder.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Label column of the table; again for more. All that are no keys by default."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="Kind of the labels: classification, multilabel (yes/no) or regression. Inferred if omitted."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Checkpoint file.  [default: MODEL-TASK.safetensors]")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training split.")] = 30,
    lr: Annotated[float, typer.Option(help="Largest learning rate.")] = 5e-3,
    seed: Annotated[int, typer.Option(help="Of weights, order, dropout, and the split of a folder.")] = 0,
    patience: Annotated[int, typer.Option(help="Epochs without improvement after which training stops.")] = 10,
    batch_residues: Annotated[int, typer.Option(help="Residues in a batch.")] = 2048,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    pos_weight: Annotated[
        str | None, typer.Option(help="Weight of positives in the loss of yes/no labels: a number, or 'balanced'.")
    ] = None,
    noise: Annotated[float, typer.Option(help="Å added to every coordinate of a batch, anew each time (s.d.).")] = 0.0,
    max_time: Annotated[float | None, typer.Option(help="Seconds after which training stops.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line per epoch.")] = False,
    *,
    read: ReadOptions,
) -> None:
    """Train a model; the best epoch on validation is kept, tested once, and written as a checkpoint.

    On a folder of one's own files some tasks need no labels: they follow from the structures (inverse_folding,
    secondary_structure, contact, b_factor, structure_denoising, structure_prediction) or the sequences (masked_lm,
    next_residue). For others, give a table with a header. One label a residue: columns file, chain, res_id (ins_code
    where there are any) and a label. One a protein: file and a label. Texts are classes, 0/1 are yes/no labels, other
    numbers are values; blank is unknown. A column 'split' (train, val, test) or 'cluster' is respected, also in a
    table without labels; else files are divided at random, by --seed, and those that share a sequence stay together.

    Files that cannot be used are listed in OUT.failures.csv; the exit code is 1 then.

    \b
    Examples:
      protgraph train gat --data pdb_core --task secondary_structure --epochs 2
      protgraph train gcn --data structures/ --labels labels.csv -o mine.safetensors
      protgraph train proteinmpnn --data structures/ --task inverse_folding
      protgraph train gcn --data structures/ --labels labels.csv --column ph --column kd
      protgraph train proteinmpnn --data pdb_core --task inverse_folding --noise 0.02 -o mine.safetensors
    """
    from protgraph.cli.failures import report_failures
    from protgraph.cli.output_path import check_output
    from protgraph.train import FitConfig, fit

    config = FitConfig(
        epochs=epochs,
        lr=lr,
        seed=seed,
        patience=patience,
        batch_residues=batch_residues,
        device=device,
        pos_weight=_weight(pos_weight),
        noise=noise,
        max_time=max_time,
    )
    dataset = _dataset(data, labels, task, column, kind, seed, read)
    tasks = list(dataset.tasks())
    if task is None and len(tasks) > 1:
        raise OptionError(f"dataset {data!r} has several tasks; give --task: {', '.join(tasks)}")
    task = task or tasks[0]
    out = check_output(out or Path(f"{model}-{task}.safetensors"))
    result = fit(model, dataset, task, config=config, on_epoch=None if quiet else _print_epoch)
    typer.echo(result.summary())
    path = result.save(out)
    typer.echo(f"checkpoint: {path}")
    report_failures(result.failures, path, 1)


def _dataset(
    data: str, labels: Path | None, task: str | None, columns: list[str] | None, kind: str | None, seed: int,
    read: ReadOptions,
) -> Dataset:
    from protgraph.train import load_dataset
    from protgraph.train.user_dataset import check_labels_are_used

    if labels is None and (columns or kind):
        raise OptionError("--column and --kind are of a table of labels; give it with --labels")
    dataset = load_dataset(data, labels=labels, task=task, columns=columns or None, kind=kind, seed=seed, read=read)
    check_labels_are_used([dataset])
    for note in getattr(dataset, "notes", ()):
        typer.echo(note, err=True)
    return dataset


def _weight(text: str | None) -> float | str | None:
    try:
        return text if text in (None, "balanced") else float(text)
    except ValueError:
        raise OptionError(f"--pos-weight {text!r} is neither 'balanced' nor a number") from None


def _print_epoch(row: dict[str, float]) -> None:
    figures = "  ".join(f"{k} {v:.4f}" for k, v in row.items() if k != "epoch")
    typer.echo(f"epoch {int(row['epoch']):3d}  {figures}")
