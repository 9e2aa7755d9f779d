"""``protgraph predict`` and ``protgraph embed``: apply a trained model to structure files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from protgraph.cli.failures import end_with_files_left
from protgraph.cli.model_argument import model_names, path_of_model, trained_names
from protgraph.cli.output_path import FAILURES_SUFFIX, WARNINGS_SUFFIX, Overwrite, check_different_outputs, check_output
from protgraph.cli.read_options import reads_structures, with_standard_input
from protgraph.cli.structure_output import (
    Chimerax,
    Defattr,
    Explain,
    ExplainOutput,
    ExplainResidue,
    ExplainStructure,
    Pymol,
    SiteOutput,
    Sites,
    Structure,
    StructureOutput,
    Value,
)
from protgraph.cli.table_output import STANDARD_OUTPUT
from protgraph.errors import Interrupted, OptionError

if TYPE_CHECKING:
    from protgraph.checkpoint import Checkpoint as LoadedCheckpoint
    from protgraph.cli.table_output import TableOutput
    from protgraph.data.datasets import Target
    from protgraph.inference import Embeddings, Predictions
    from protgraph.structure import ReadOptions

__all__ = ["embed_command", "predict_command"]

ENTRY_POINTS = {"protgraph.commands": {"predict": "predict_command", "embed": "embed_command"}}

Checkpoint = Annotated[
    str,
    typer.Argument(
        help="Trained model by name (protgraph list trained_models), or checkpoint file.", autocompletion=trained_names
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(help="Structure or FASTA files (PDB, mmCIF, BinaryCIF, .gz), folders, pdb:1ubq, or graph stores."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")]

#: Files whose means are printed.
_SHOWN_FILES = 50


@reads_structures(alignment=True, deferred=True)
def predict_command(
    checkpoint: Checkpoint,
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table: .csv, .parquet, or '-' for standard output. Not needed for sites."),
    ] = None,
    sites: Sites = None,
    structure: Structure = None,
    value: Value = None,
    defattr: Defattr = None,
    pymol: Pymol = None,
    chimerax: Chimerax = None,
    interfaces: Annotated[
        Path | None, typer.Option(help="Table with a row per pair of chains in contact, .csv or .parquet.")
    ] = None,
    uncalibrated: Annotated[
        bool, typer.Option("--uncalibrated", help="Write probabilities without the calibration of the model.")
    ] = False,
    explain: Explain = None,
    explain_residue: ExplainResidue = None,
    explain_structure: ExplainStructure = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Predict for structure files: sites, and a row per residue, protein, edge or pair of residues.

    A trained model of binding sites prints the sites of each file: called residues in contact, ranked by the sum of
    their probabilities, with a line that selects them in PyMOL and in ChimeraX. Residues are called from the threshold
    on the card of the model, which has its precision and recall; a model without such a card calls nothing.

    CHECKPOINT is a file or the name of a trained model: 'protgraph list trained_models' lists them, 'protgraph info
    NAME' prints results and limits of one. Several, 'dna_site,ligand_site', are used one after the other; outputs have
    the name of the model, OUT.dna_site.csv. A file '-' is standard input.

    Each record of a FASTA file is a protein, for models that need no coordinates.

    --structure writes the structure again, with probabilities in percent as B factors of each residue's atoms. The
    value is the only one per residue, the probability of the second of two classes, or that of the predicted class
    ("confidence"); --value selects another one.

    --explain writes how much each residue contributes to the mean prediction of a protein, or with --explain-residue
    to that of one residue: integrated gradients of its log-odds over node features and residue types.

    --interfaces writes the mean prediction over the residues of each chain within 5 Å of the other one; for
    predictions per pair of residues, their sum and maximum over all pairs of two chains.

    For regression models per residue, the mean of each file is printed, too.

    Files that fail are listed in OUT.failures.csv, and the others continue; the exit code is 1 (2 if all fail).
    Missing atoms, residues left out and structures unlike the training set are reported, and listed in
    OUT.warnings.csv.

    \b
    Examples:
      protgraph predict dna_site 1lcd.cif
      protgraph predict dna_site,ligand_site 1lcd.cif -o out.csv
      gunzip -c 1lcd.cif.gz | protgraph predict dna_site - -o -
      protgraph predict ligand_site 1ubq.cif -o out.csv --structure site.cif
      protgraph predict ligand_site structures/ --sites sites.csv -o out.csv
      protgraph predict gat.safetensors structures/ --chain A -o out.parquet
      protgraph predict ligand_site 1ubq.cif -o out.csv --explain why.csv --explain-residue A:42
      protgraph predict ss.safetensors a.cif -o a.csv --value p_H --defattr a.defattr
      protgraph predict ppi_site complex.cif -o out.csv --interfaces interfaces.csv
      protgraph predict model_quality models/*.pdb -o lddt.csv
    """
    request = _Request(
        files=with_standard_input(files),
        out=out,
        sites=sites,
        structure=structure,
        value=value,
        defattr=defattr,
        pymol=pymol,
        chimerax=chimerax,
        interfaces=interfaces,
        uncalibrated=uncalibrated,
        explain=explain,
        explain_residue=explain_residue,
        explain_structure=explain_structure,
        device=device,
        overwrite=overwrite,
        read=read,
    )
    from protgraph.checkpoint.checkpoint_file import as_checkpoint

    names = model_names(checkpoint)
    if len(names) == 1:
        _predict(checkpoint, request)
        return
    if out == STANDARD_OUTPUT:
        raise OptionError(f"--out '-': {checkpoint!r} are {len(names)} tables. Give a file name, or one model.")
    # a misspelled name ends the command before any work
    loaded = {name: as_checkpoint(name) for name in names}
    codes = []
    for name in names:
        typer.echo(f"model {name}")
        try:
            _predict(name, request.for_model(name), loaded[name])
        except typer.Exit as e:
            codes.append(e.exit_code)
    if codes:
        raise typer.Exit(max(codes))


@dataclass(frozen=True)
class _Request:
    """Arguments and options of ``protgraph predict``, without the model."""

    files: list[Path]
    out: Path | None
    sites: Path | None
    structure: Path | None
    value: str | None
    defattr: Path | None
    pymol: Path | None
    chimerax: Path | None
    interfaces: Path | None
    uncalibrated: bool
    explain: Path | None
    explain_residue: str | None
    explain_structure: Path | None
    device: str
    overwrite: bool
    read: ReadOptions

    def for_model(self, name: str) -> _Request:
        """Return the request with the name of one of several models in each output: ``out.dna_site.csv``."""

        def named(path: Path | None) -> Path | None:
            return None if path is None else path_of_model(path, name)

        return replace(
            self,
            out=named(self.out),
            sites=named(self.sites),
            structure=named(self.structure),
            defattr=named(self.defattr),
            pymol=named(self.pymol),
            chimerax=named(self.chimerax),
            interfaces=named(self.interfaces),
            explain=named(self.explain),
            explain_structure=named(self.explain_structure),
        )


def _predict(checkpoint: str, request: _Request, loaded: LoadedCheckpoint | None = None) -> None:
    """Predict with one model, and write what the options request.

    ``checkpoint``: name or file. ``loaded``: that of the name, if it is loaded.
    """
    from protgraph.checkpoint.checkpoint_file import as_checkpoint
    from protgraph.cli.failures import report_failures
    from protgraph.cli.table_output import TableOutput
    from protgraph.featurize import expand_sources
    from protgraph.inference import predict as run
    from protgraph.inference.model_run import check_reads_structures
    from protgraph.inference.prediction_table import interface_table, pooled_columns, prediction_columns
    from protgraph.inference.result_table import TABLE_SUFFIXES
    from protgraph.wording import count_noun

    files, read, overwrite = request.files, request.read, request.overwrite
    check_order("predict", checkpoint, files)
    sources = expand_sources(files)
    inputs: list[str | Path] = [checkpoint, *files, *sources]
    table = TableOutput(request.out, inputs=inputs, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    check_different_outputs({
        "--out": table.path,
        "--sites": request.sites,
        "--interfaces": request.interfaces,
        "--explain": request.explain,
        "--structure": request.structure,
        "--explain-structure": request.explain_structure,
    })  # fmt: skip
    for option, path in _requested({"--interfaces": request.interfaces, "--sites": request.sites}).items():
        check_output(path, option=option, inputs=inputs, overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    viewers = (request.structure, request.defattr, request.pymol, request.chimerax)
    structures = StructureOutput(*viewers, sources=sources, inputs=inputs, read=read, overwrite=overwrite, output=table)
    reasons = ExplainOutput(
        request.explain,
        request.explain_residue,
        request.explain_structure,
        sources=sources,
        inputs=inputs,
        read=read,
        overwrite=overwrite,
        output=table,
    )
    trained = as_checkpoint(checkpoint) if loaded is None else loaded
    check_reads_structures(trained)
    print_license_note(checkpoint)
    calls = SiteOutput(request.sites, checkpoint, trained.model.target, sources)
    files_to_write = _requested(
        {"--out": request.out, "--interfaces": request.interfaces, "--explain": request.explain}
    )
    calls.check_output_exists(has_files=bool(files_to_write) or structures.is_used)
    if request.interfaces is not None:
        pooled_columns(trained.model.target, prediction_columns(trained.model.target))
    _check_value(
        request.value, trained.model.target, for_structures=structures.is_used, for_reasons=request.explain is not None
    )

    stopped: Interrupted | None = None
    try:
        result = run(trained, sources, read=read, device=request.device, calibrated=not request.uncalibrated)
    except Interrupted as e:
        result, stopped = e.result, e
    _print_notes(result, table.beside(WARNINGS_SUFFIX))
    failures = list(result.failures)
    if result.rows:
        table.write(result, f"{count_noun(len(result.rows), 'row')} of {_files_read(result, sources)}")
        _print_means(result, table)
        calls.write(result, table)
    if stopped is not None:
        _end(stopped, result, {str(row[0]) for row in result.rows}, sources, table.path)
    if result.rows:
        if request.interfaces is not None:
            pooled = interface_table(result)
            pooled.write(request.interfaces)
            table.print(f"{count_noun(len(pooled), 'pair')} of chains → {request.interfaces}")
        if structures.is_used:
            failures += structures.write(result.residue_values(request.value))
        failures += reasons.write(trained, value=request.value, device=request.device)
    report_failures(failures, table.path, any_succeeded=bool(result.rows))


def _requested(outputs: Mapping[str, Path | None]) -> dict[str, Path]:
    return {option: path for option, path in outputs.items() if path is not None}


def _check_value(value: str | None, target: Target, *, for_structures: bool, for_reasons: bool) -> None:
    """Raise :class:`OptionError` if ``--value`` is no value of the model, or nothing uses it."""
    from protgraph.inference import choose_value

    if for_structures:
        choose_value(target, value)
    elif value is not None and not for_reasons:
        raise OptionError(f"--value {value!r} is for --structure, --defattr and --explain. Add one of them.")


def _end(
    e: Interrupted, result: Predictions | Embeddings, labels: set[str], sources: list[str], out: Path | None
) -> NoReturn:
    """List failures and the files that are left, print how to continue, and exit; ``labels`` are in the output."""
    from protgraph.featurize import write_failures

    if out is not None:
        write_failures(out.with_name(f"{out.name}{FAILURES_SUFFIX}"), result.failures)
    labels = labels | {failure.source for failure in result.failures}
    end_with_files_left(e, out, sources, labels | {label.rpartition("#")[0] for label in labels})


def _print_means(result: Predictions, out: TableOutput) -> None:
    """Print the mean of each predicted value over the residues of each file, of the first files."""
    from protgraph.inference.prediction_table import target_names
    from protgraph.wording import count_noun, format_decimals

    if (result.target.level, result.target.kind) != ("node", "regression"):
        return
    means = result.file_means()
    for file, (residues, values) in list(means.items())[:_SHOWN_FILES]:
        named = zip(target_names(result.target), values, strict=True)
        texts = [f"{name} {format_decimals(value, 4)}" for name, value in named]
        out.print(f"{file}: mean over {count_noun(residues, 'residue')}: {', '.join(texts)}")
    if len(means) > _SHOWN_FILES:
        out.print(f"… {count_noun(len(means) - _SHOWN_FILES, 'more file')}")


def check_order(command: str, checkpoint: str, files: list[Path]) -> None:
    """Raise :class:`OptionError` if the first argument is a file, and the model is among the files after it."""
    from protgraph.registry import trained_models

    models = [str(file) for file in files if str(file) in trained_models or file.suffix == ".safetensors"]
    if models and Path(checkpoint).is_file() and Path(checkpoint).suffix != ".safetensors":
        raise OptionError(
            f"{command} {checkpoint} {models[0]}: {checkpoint!r} is no trained model. The model is the first argument, "
            f"files follow. Write: protgraph {command} {models[0]} {checkpoint}"
        )


def print_license_note(name: str) -> None:
    """Print the license of the training data of a trained model if it forbids commercial use."""
    from protgraph.registry import trained_models

    name = name.partition("[")[0]  # of one member, too
    note = trained_models.get(name).card().license_note if name in trained_models else ""
    if note:
        typer.echo(f"note: {note}", err=True)


def _print_notes(result: Predictions | Embeddings, warnings: Path | None) -> None:
    """Print messages for the user, and write the warnings about inputs to a table."""
    from protgraph.inference.input_warnings import write_warnings
    from protgraph.wording import note_line

    for note in result.notes:
        typer.echo(note_line(note), err=True)
    path = None if warnings is None else write_warnings(warnings, result.warnings)
    if path is not None:
        typer.echo(f"all warnings → {path}", err=True)


def _files_read(result: Predictions, sources: list[str]) -> str:
    """Return e.g. "2 files", or "1 of 2 files" if the other one has no row."""
    from protgraph.wording import count_noun

    labels = {str(row[0]) for row in result.rows}
    files = labels | {label.rpartition("#")[0] for label in labels}
    done = sum(source in files for source in sources)
    failed = any(failure.source.partition("#")[0] in sources for failure in result.failures)
    if not done and not failed:  # proteins of a store
        return count_noun(len(labels), "protein")
    return count_noun(done, "file") if done == len(sources) else f"{done} of {count_noun(len(sources), 'file')}"


@reads_structures(alignment=True, deferred=True)
def embed_command(
    checkpoint: Checkpoint,
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file, .npz, .parquet, or '-'.")],
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Write the embeddings of residues and proteins: the input of the model's head, or the output of an encoder.

    CHECKPOINT is a trained model by name, one member of an ensemble (ligand_site[0]), a checkpoint file, or a model
    with published weights (proteinmpnn.v_48_020: 128 numbers per residue from the backbone of each chain alone).
    Members of an ensemble are side by side, since their vectors have no common axes.

    An .npz file holds the arrays node (N, D), protein (P, D), ptr, files, chains and residues; a .parquet file holds a
    row per residue, and a second one a row per protein. '-' is CSV on standard output, a row per residue.

    \b
    Examples:
      protgraph embed proteinmpnn.v_48_020 structures/ -o vectors.npz
      protgraph embed ligand_site structures/ -o vectors.npz
      protgraph embed gat.safetensors structures/ -o vectors.npz
      protgraph embed gat.safetensors 1ubq.cif -o vectors.parquet
    """
    from protgraph.cli.failures import report_failures
    from protgraph.cli.table_output import TableOutput
    from protgraph.featurize import expand_sources
    from protgraph.inference import embed as run
    from protgraph.inference.embedding import embedding_files
    from protgraph.wording import count_noun

    files = with_standard_input(files)
    check_order("embed", checkpoint, files)
    sources = expand_sources(files)
    inputs: list[str | Path] = [checkpoint, *files, *sources]
    output = TableOutput(out, inputs=inputs, overwrite=overwrite, suffixes=[".npz", ".parquet"])
    for path in () if output.path is None else embedding_files(output.path):
        check_output(path, inputs=inputs, overwrite=overwrite)
    print_license_note(checkpoint)
    stopped: Interrupted | None = None
    try:
        result = run(checkpoint, sources, read=read, device=device)
    except Interrupted as e:
        result, stopped = e.result, e
    _print_notes(result, output.beside(WARNINGS_SUFFIX))
    if result.files and output.path is None:
        output.write(result.residue_table(), "")
    elif result.files:
        written = ", ".join(map(str, result.write(out)))
        residues, width = result.node.shape
        counts = f"{count_noun(residues, 'residue')} of {count_noun(len(result.files), 'protein')}"
        output.print(f"{counts}, {width} wide → {written}")
    if stopped is not None:
        _end(stopped, result, set(result.files), sources, output.path)
    report_failures(result.failures, output.path, any_succeeded=bool(result.files))
