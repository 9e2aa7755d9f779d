"""Command ``protgraph train``: train a model on a dataset or on a folder of user files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from protgraph.cli.cross_validate import check_cross_validation_output, run_cross_validation
from protgraph.cli.dry_run import (
    BatchResidues,
    DryRun,
    MemoryLimit,
    check_one_process,
    choose_budget,
    parse_budget,
    print_dry_run,
)
from protgraph.cli.failures import failures_of_errors
from protgraph.cli.model_argument import SetValues
from protgraph.cli.output_path import FAILURES_SUFFIX, Overwrite, check_output
from protgraph.cli.read_options import Kind, LabelColumns, LabelFile, LeaveOutAbsent, UnknownTexts, reads_structures
from protgraph.cli.start_options import (
    Freeze,
    HeadOption,
    LearningRateScale,
    LowRank,
    StartFrom,
    UnfreezeAfter,
    check_head,
    model_to_train,
    parse_pairs,
    parse_ranks,
)
from protgraph.errors import OptionError, OutputFileError

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import Logger

    from protgraph.data.datasets.dataset import Dataset
    from protgraph.model import ModelSpec
    from protgraph.structure import ReadOptions
    from protgraph.train import FitConfig, FitResult

__all__ = ["train_command"]

ENTRY_POINTS = {"protgraph.commands": {"train": "train_command"}}


@reads_structures(alignment=True)
def train_command(
    data: Annotated[
        list[str],
        typer.Option(
            help="Dataset by name, folder or graph store, structure or FASTA file, pattern; repeat for more files."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Argument(help="Model by name: 'gat', 'gat.v1', or TOML file: 'model.toml'.  [default: that of --from]"),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Task of the dataset, or label column of the table. Required if there are several."),
    ] = None,
    labels: LabelFile = None,
    column: LabelColumns = None,
    kind: Kind = None,
    unknown: UnknownTexts = None,
    leave_out_absent: LeaveOutAbsent = False,
    start_from: StartFrom = None,
    head: HeadOption = None,
    freeze: Freeze = None,
    unfreeze_after: UnfreezeAfter = None,
    lr_scale: LearningRateScale = None,
    lora: LowRank = None,
    ligands: Annotated[
        bool,
        typer.Option(
            "--ligands", help="Read the ligand of each file and the pocket around it; for models of atoms and proteins."
        ),
    ] = False,
    settings: SetValues = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Checkpoint file.  [default: MODEL-TASK.safetensors]")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Maximum number of epochs.")] = 30,
    lr: Annotated[float, typer.Option(help="Largest learning rate.")] = 5e-3,
    seed: Annotated[
        int, typer.Option(help="Seed of weights, order of proteins, dropout, and the split of a folder.")
    ] = 0,
    patience: Annotated[int, typer.Option(help="Epochs without improvement after which training stops.")] = 10,
    batch_residues: BatchResidues = "2048",
    memory_limit: MemoryLimit = None,
    dry_run: DryRun = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    pos_weight: Annotated[
        str | None, typer.Option(help="Weight of positives in the loss of binary labels: a number, or 'balanced'.")
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=WEIGHT",
            help="Weight of a class in the loss, others have 1; repeat for more classes, or 'balanced'.",
        ),
    ] = None,
    auxiliary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=WEIGHT",
            help="Train the layers on this task of the dataset, too, with this factor of its loss; repeat for more.",
        ),
    ] = None,
    no_standardize: Annotated[
        bool, typer.Option("--no-standardize", help="Use input features as they are; see docs/small_data.md.")
    ] = False,
    calibrate: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="Calibrate probabilities on validation: temperature, platt or isotonic."),
    ] = None,
    noise: Annotated[
        float, typer.Option(help="Gaussian noise on coordinates (standard deviation, Å), drawn for every batch.")
    ] = 0.0,
    max_time: Annotated[float | None, typer.Option(help="Seconds after which training stops.")] = None,
    devices: Annotated[int, typer.Option(help="Number of GPUs, or of CPU processes. Batches are split over them.")] = 1,
    strategy: Annotated[str, typer.Option(help="Strategy for several devices: auto, ddp or fsdp.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="Precision of the forward pass in training: float32 or bfloat16.")
    ] = "float32",
    compile_layers: Annotated[
        bool, typer.Option("--compile", help="Compile the layers of the model with torch.compile.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Worker processes that collate batches.")] = 0,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Logger: csv, tensorboard, wandb, mlflow or none; repeat for several.  [default: csv]"),
    ] = None,
    callback: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:NAME", help="Lightning callback, a class or an object; repeat for more."),
    ] = None,
    cv: Annotated[
        str | None,
        typer.Option(metavar="N", help="Cross-validate in N folds, or leave-one-group-out. Writes a table, no model."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run of the same arguments; more --epochs train it longer."),
    ] = False,
    overwrite: Overwrite = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not print a line per epoch.")] = False,
    *,
    read: ReadOptions,
) -> None:
    """Train a model, keep the best epoch on the validation split, evaluate it on the test split, write a checkpoint.

    On a folder of user files some tasks need no labels, because they derive them from the structures (inverse_folding,
    secondary_structure, contact, b_factor, structure_denoising, structure_prediction) or the sequences (masked_lm,
    next_residue). Other tasks need a table with a header. One label per residue: columns file, chain, res_id (ins_code
    if there are any) and a label. One label per protein: file and a label. Text columns are classes, 0/1 are binary
    labels, other numbers are regression values; an empty cell is unknown. A column 'split' (train, val, test) or
    'cluster' is used for the splits, also in a table without labels. Otherwise files are split at random by --seed, and
    files with the same sequence are in the same split.

    Logs and the training state are in the folder OUT without its suffix, with '.run'. The state is written after every
    epoch (after some, if writing takes more than 1 % of the time) and every ten minutes, and stays. After a crash or
    kill, add --resume to the same command. Ctrl-C and SIGTERM write the best epoch so far to OUT; --resume replaces it
    at the end. A finished run is trained longer with --resume and more --epochs or --patience.
    Loggers need no network. WANDB_MODE=online, MLFLOW_TRACKING_URI or TRACKIO_SPACE_ID in the environment select a
    service.

    --from starts from the weights of a trained model, and prints which parts were loaded. For another task, the layers
    are loaded and the head is new. --freeze, --unfreeze-after and --lr-scale select parts by the names that 'protgraph
    info NAME' prints.

    --lora 8 trains low-rank terms and the head only. OUT has the sums; the terms alone are in a file beside it, with
    '.adapters.safetensors', which needs the model of --from.

    --dry-run runs a few batches of three sizes and prints the peak memory and time per epoch.

    --cv 5 tests each protein once, by a model that was trained without its fold; splits are ignored. OUT is a table of
    these predictions, .csv or .parquet. Beside it, '.folds.csv' has the metrics of each fold, and '.run' the models.

    Files that cannot be used are listed in OUT.failures.csv, and the exit code is 1. If training stops with an error,
    the exit code is 2.

    \b
    Examples:
      protgraph train gat --data pdb_core --task secondary_structure --epochs 2
      protgraph train gcn --data structures/ --labels labels.csv --task site
      protgraph train gcn --data structures/ --labels labels.csv --column ph
      protgraph train gcn --data my --labels labels.csv --task site --cv 5
      protgraph train proteinmpnn --data structures/ --task inverse_folding
      protgraph train gat --data pdb_core --task interface --devices 2
      protgraph train gvp --data pdb_core --task interface --dry-run
      protgraph train gcn --data pdb_core --task interface --epochs 60 --resume
      protgraph train gat --data graphs --batch-residues auto --memory-limit 4GiB
      protgraph train gat --data graphs --task site --callback my_module:MyCallback
      protgraph train site_mpnn --data my --task site --labels l.csv --auxiliary secondary_structure=0.3
      protgraph train --from ligand_site --data my --labels labels.csv --task site --freeze "layers.*"
      protgraph train gcn --data pdb_core --task interface --set 'layers.*.dim=128'
      protgraph train schnet.atom --ligands --data complexes --labels affinities.csv --task pK
      protgraph train model.toml --data pdb_core --task interface --set layers.1.dim=128
    """
    from protgraph.train import FitConfig, fit
    from protgraph.train.session import is_first_process

    budget = parse_budget(batch_residues)
    _check_prediction_options(budget, memory_limit, devices, cv, dry_run=dry_run, resume=resume)
    config = FitConfig(
        batch_residues=FitConfig.batch_residues if budget is None else budget,
        epochs=epochs,
        lr=lr,
        seed=seed,
        patience=patience,
        device=device,
        pos_weight=_weight(pos_weight),
        class_weight=_class_weights(class_weight),
        standardize=not no_standardize,
        noise=noise,
        auxiliary=parse_pairs("--auxiliary", auxiliary, float, form="TASK=WEIGHT, e.g. 'b_factor=0.3'"),
        max_time=max_time,
        precision=cast('Literal["float32", "bfloat16"]', precision),  # FitConfig checks it
        compile=compile_layers,
        start_from=start_from,
        head=check_head(head),
        freeze=freeze or [],
        unfreeze_after=parse_pairs("--unfreeze-after", unfreeze_after, int),
        lr_scale=parse_pairs("--lr-scale", lr_scale, float),
        lora=parse_ranks(lora),
    )
    spec = model_to_train(model, start_from, settings, ligands=ligands)
    inputs: list[str | Path | None] = [*data, labels]
    check = partial(
        _check_out, inputs=inputs, config=config, overwrite=overwrite, resume=resume, has_folds=cv is not None
    )
    # Before the dataset is read, which takes long.
    out = _early_out(out, spec, task, has_folds=cv is not None, dry_run=dry_run)
    out = None if out is None else check(out)
    dataset = _dataset(data, labels, task, column, kind, unknown, seed, read, leave_out_absent=leave_out_absent)
    task = _describe(dataset, task, has_folds=cv is not None)
    if dry_run:
        print_dry_run(spec, dataset, task, config, memory_limit, auto=budget is None)
        return
    if out is None:
        out = check(_default_out(spec, task, has_folds=cv is not None))
    run_dir = out.with_suffix(".run")
    adapters = out.with_suffix(".adapters.safetensors")
    if config.lora:
        check_output(adapters, inputs=inputs, overwrite=overwrite or resume, suffixes=[".safetensors"])
    if budget is None:
        config = choose_budget(spec, dataset, task, config, memory_limit)
    callbacks = _callbacks(callback)
    if cv is not None:
        _check_no_calibration(calibrate)
        loggers = partial(_loggers, log, run=out.stem, resume=resume)
        run_cross_validation(
            spec,
            dataset,
            task,
            cv,
            devices,
            loggers,
            out=out,
            resume=resume,
            config=config,
            workers=workers,
            callbacks=callbacks,
        )
        return
    with failures_of_errors(out), _keep_best_epoch(out, run_dir, resume=resume):
        result = fit(
            spec,
            dataset,
            task,
            config=config,
            workers=workers,
            devices=devices,
            strategy=strategy,
            callbacks=callbacks,
            logger=_loggers(log, run_dir, out.stem, resume=resume),
            run_dir=run_dir,
            resume=resume,
            calibrate=calibrate,
            save=out,
            on_epoch=None if quiet else _print_epoch,
        )
        if is_first_process():
            _report(result, out, adapters)


def _check_prediction_options(
    budget: int | None, memory_limit: str | None, devices: int, cv: str | None, *, dry_run: bool, resume: bool
) -> None:
    if dry_run or budget is None:
        option = "--dry-run" if dry_run else "--batch-residues auto"
        check_one_process(option, devices=devices, cv=cv, resume=resume)
    elif memory_limit is not None:
        raise OptionError(
            f"--memory-limit {memory_limit} has no effect on --batch-residues {budget}. Use --batch-residues auto."
        )


def _report(result: FitResult, out: Path, adapters: Path) -> None:
    from protgraph.cli.failures import report_failures

    if result.adapters is not None:
        typer.echo(f"adapters: {result.save_adapters(adapters)}")

    for note in result.notes:
        typer.echo(note, err=True)
    typer.echo(result.summary())
    typer.echo(f"checkpoint: {out}")
    report_failures(result.failures, out, any_succeeded=True)


def _check_no_calibration(calibrate: str | None) -> None:
    if calibrate is not None:
        raise OptionError(f"--calibrate {calibrate} does not apply to --cv, which writes no model. Leave it out.")


def _default_out(model: str | ModelSpec, task: str, *, has_folds: bool) -> Path:
    name = model if isinstance(model, str) else model.name
    suffix = "-cv.csv" if has_folds else ".safetensors"
    return Path(f"{name}-{task}{suffix}".replace("/", "_"))


def _early_out(
    out: Path | None, model: str | ModelSpec, task: str | None, *, has_folds: bool, dry_run: bool
) -> Path | None:
    """Return the output file if it is known before the dataset is read."""
    if out is not None or task is None or dry_run:
        return out
    return _default_out(model, task, has_folds=has_folds)


def _check_out(
    out: Path,
    *,
    inputs: list[str | Path | None],
    config: FitConfig,
    overwrite: bool,
    resume: bool,
    has_folds: bool,
) -> Path:
    """Check the path of the checkpoint or, with folds, of the tables; a resumed run may replace its own checkpoint."""
    from protgraph.train.run_folder import RunFolder

    if has_folds:
        return check_cross_validation_output(out, inputs, overwrite=overwrite)
    if resume and out.is_file():
        folder = RunFolder(out.with_suffix(".run"))
        end = folder.describe_end(config)
        if not folder.state.is_file():
            end = f"no training state in {folder.path}. To train again, leave out --resume and add --overwrite"
        if end:
            raise OptionError(f"--resume: {end}. {str(out)!r} stays as it is.")
        overwrite = True
    return check_output(out, inputs=inputs, overwrite=overwrite, suffixes=[".safetensors"])


@contextmanager
def _keep_best_epoch(out: Path, run_dir: Path, *, resume: bool) -> Iterator[None]:
    """Write the best epoch of a run that is interrupted, print one line, and exit with 130 (Ctrl-C) or 143 (SIGTERM).

    The checkpoint of a finished run that is trained longer stays. An earlier result of another run is renamed first.
    """
    from protgraph.checkpoint.checkpoint_file import is_interrupted
    from protgraph.train import TrainingInterrupted
    from protgraph.train.run_folder import RunFolder
    from protgraph.train.session import is_first_process

    try:
        yield
    except TrainingInterrupted as e:
        if is_first_process():
            line = f"interrupted by {e.signal.name}"
            if resume and out.is_file() and not is_interrupted(out):
                line += f": {out} stays as it was before."
            elif e.result is None:
                line += " before the first validated epoch: no checkpoint."
            else:
                line += _save_best_epoch(e.result, out)
            if RunFolder(run_dir).state.is_file():
                line += " To continue, add --resume to the same command."
            typer.echo(line, err=True)
        raise typer.Exit(128 + e.signal) from None
    except OutputFileError:
        if is_first_process() and RunFolder(run_dir).state.is_file():
            typer.echo(f"The training state is in {run_dir}. To continue, add --resume to the same command.", err=True)
        raise


def _save_best_epoch(result: FitResult, out: Path) -> str:
    """Write the best epoch so far, and return the end of the message about it."""
    from protgraph.featurize import write_failures
    from protgraph.wording import format_decimals

    result.save(out)
    write_failures(out.with_name(out.name + FAILURES_SUFFIX), result.failures)
    monitor = result.task.monitor
    value = format_decimals(result.metrics["val"][monitor], 4)
    return (
        f": epoch {result.best_epoch} of {result.epochs}, the best so far (val {monitor} {value}), is in {out}. "
        "The test split was not evaluated."
    )


def _callbacks(texts: list[str] | None) -> list[Callback]:
    from protgraph.train.callbacks import callback_by_name

    return [callback_by_name(text) for text in texts or ()]


def _loggers(kinds: list[str] | None, folder: Path, run: str, *, resume: bool) -> list[Logger]:
    """Create the loggers, and one that prints where their values are when training starts."""
    from protgraph.train.loggers import PlacePrinter, logger_by_name
    from protgraph.train.run_folder import RunFolder
    from protgraph.train.session import is_first_process

    kinds = kinds or ["csv"]
    if "none" in kinds and len(kinds) > 1:
        raise OptionError(f"--log: {', '.join(kinds)}. Allowed: 'none' alone, or other loggers. Remove 'none'.")
    made = [logger_by_name(kind, folder, run=run) for kind in dict.fromkeys(kinds) if kind != "none"]
    if is_first_process() and resume and not RunFolder(folder).state.is_file():
        typer.echo(f"no interrupted run in {folder}: starting from the beginning", err=True)
    return [*(logger for logger, _ in made), PlacePrinter([place for _, place in made] or ["none"], typer.echo)]


def _dataset(
    data: list[str],
    labels: Path | None,
    task: str | None,
    columns: list[str] | None,
    kind: str | None,
    unknown: list[str] | None,
    seed: int,
    read: ReadOptions,
    *,
    leave_out_absent: bool,
) -> Dataset:
    from protgraph.labels import load_dataset
    from protgraph.labels.loading import check_labels_are_used

    if labels is None and (columns or kind or unknown or leave_out_absent):
        raise OptionError(
            "--column, --kind, --unknown and --leave-out-absent are for labels of a table. Add the table with --labels."
        )
    dataset = load_dataset(
        data[0] if len(data) == 1 else data,
        labels=labels,
        task=task,
        columns=columns or None,
        kind=kind,
        unknown=unknown or None,
        seed=seed,
        read=read,
        leave_out_absent=leave_out_absent,
    )
    check_labels_are_used([dataset])
    return dataset


def _describe(dataset: Dataset, task: str | None, *, has_folds: bool) -> str:
    """Print what the model is trained on, without the splits if they are not used, and return the task."""
    from protgraph.train.session import is_first_process

    tasks = dataset.tasks()
    if task is None and len(tasks) > 1:
        raise OptionError(f"Dataset {dataset.name!r} has several tasks. Select one with --task: {', '.join(tasks)}.")
    task = task or tasks[0]
    if is_first_process():
        description = dataset.describe(task)
        typer.echo(str(description.without_splits() if has_folds else description), err=True)
    return task


def _weight(text: str | None) -> float | Literal["balanced"] | None:
    if text is None:
        return None
    if text == "balanced":
        return "balanced"
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"--pos-weight: {text!r}. Allowed: a positive number or 'balanced'.") from None


def _class_weights(texts: list[str] | None) -> dict[str, float] | Literal["balanced"] | None:
    if not texts:
        return None
    if texts == ["balanced"]:
        return "balanced"
    weights: dict[str, float] = {}
    for text in texts:
        name, mark, number = text.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            mark = ""
        if not mark or not name:
            raise OptionError(f"--class-weight: {text!r}. Allowed: CLASS=NUMBER, e.g. helix=2, or 'balanced' alone.")
    return weights


def _print_epoch(row: Mapping[str, float]) -> None:
    from protgraph.wording import format_figure

    figures = "  ".join(f"{k} {format_figure(v)}" for k, v in row.items() if k != "epoch")
    typer.echo(f"epoch {int(row['epoch']):3d}  {figures}")
