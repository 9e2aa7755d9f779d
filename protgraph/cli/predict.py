"""``protgraph predict`` and ``protgraph embed``: a trained model on one's own structure files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protgraph.cli.read_options import reads_structures

if TYPE_CHECKING:
    from protgraph.train import Embeddings, Predictions

__all__ = ["embed_command", "predict_command"]

Checkpoint = Annotated[Path, typer.Argument(help="What 'protgraph train' wrote.")]
Files = Annotated[list[Path], typer.Argument(help="Structure or FASTA files (PDB, mmCIF, BinaryCIF, .gz), or folders.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")]


@reads_structures()
def predict_command(
    checkpoint: Checkpoint,
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file to write.")],
    device: Device = "auto",
    *,
    reading: dict[str, Any],
) -> None:
    """Predict for structure files: a CSV row per residue, protein, edge or pair of residues, with probabilities.

    Of a FASTA file every record is a protein, for models that need no coordinates.

    Files that fail do not stop the others: they are listed in OUT.failures.csv, and the exit code is 1 (2 if all fail).

    \b
    Examples:
      protgraph predict gat.safetensors 1ubq.cif -o out.csv
      protgraph predict gat.safetensors structures/ --chain A -o out.csv
    """
    from protgraph.cli.output_path import check_output
    from protgraph.cli.source_files import structure_files
    from protgraph.cli.wording import count_noun
    from protgraph.train import predict as run

    paths, out = structure_files(files), check_output(out)
    found = run(checkpoint, paths, device=device, **reading)
    if found.rows:
        found.write_csv(out)
        typer.echo(f"{count_noun(len(found.rows), 'row')} of {_files_read(found, paths)} → {out}")
    _finish(found, out)


def _files_read(found: Predictions, paths: list[Path]) -> str:
    """``2 files``, or ``1 of 2 files`` where the other one has no row."""
    from protgraph.cli.wording import count_noun

    labels = {row[0] for row in found.rows}
    labels |= {label.rpartition("#")[0] for label in labels}
    read = sum(str(path) in labels for path in paths)
    return count_noun(read, "file") if read == len(paths) else f"{read} of {count_noun(len(paths), 'file')}"


@reads_structures()
def embed_command(
    checkpoint: Checkpoint,
    files: Files,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .npz, or .parquet.")],
    device: Device = "auto",
    *,
    reading: dict[str, Any],
) -> None:
    """Write the vectors that a trained model makes of residues and proteins, before its head.

    An .npz file holds the arrays node (N, D), protein (P, D), ptr, files, chains and residues; a .parquet file holds a
    row a residue, and a second one a row a protein.

    \b
    Examples:
      protgraph embed gat.safetensors structures/ -o vectors.npz
      protgraph embed gat.safetensors 1ubq.cif -o vectors.parquet
    """
    from protgraph.cli.output_path import check_output
    from protgraph.cli.source_files import structure_files
    from protgraph.cli.wording import count_noun
    from protgraph.errors import OptionError
    from protgraph.train import embed as run

    if out.suffix not in (".npz", ".parquet"):
        raise OptionError(f"vectors are written as .npz or .parquet; got {str(out)!r}")
    paths, out = structure_files(files), check_output(out)
    found = run(checkpoint, paths, device=device, **reading)
    if found.files:
        written = ", ".join(map(str, found.write(out)))
        residues, width = found.node.shape
        said = f"{count_noun(residues, 'residue')} of {count_noun(len(found.files), 'protein')}"
        typer.echo(f"{said}, {width} wide → {written}")
    _finish(found, out)


def _finish(found: Predictions | Embeddings, out: Path) -> None:
    """List what failed beside the output and leave with the exit code that says so; an earlier run's list goes."""
    path = out.parent / f"{out.name}.failures.csv"
    if not found.failures:
        path.unlink(missing_ok=True)
        return
    from rich.console import Console

    from protgraph.train.files import write_failures

    write_failures(path, found.failures)
    first = found.failures[0]
    message = f"[bold red]{len(found.failures)} failed[/]; {path} says why. The first: "
    Console(stderr=True).print(message + f"{first.file}: {first.reason}", highlight=False, soft_wrap=True)
    raise typer.Exit(found.exit_code)
