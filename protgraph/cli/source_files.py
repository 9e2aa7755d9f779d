"""What commands share that take structure files: folders searched, and a manifest of what became of each."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from protgraph.errors import StructureFileError
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph.featurize.pipeline import Outcome

__all__ = ["expand_lists", "finish", "structure_files", "write_manifest"]

_COLUMNS = ("file", "status", "protein", "residues", "edges", "seconds", "sha256", "reason", "left_out")


def expand_lists(given: Sequence[str | Path]) -> list[str]:
    """What is given, with the lines of each "@list.txt" in its place (no empty ones, none that begin with #).

    Raises
    ------
    StructureFileError
        A list cannot be read.
    """
    found: list[str] = []
    for text in map(str, given):
        if not text.startswith("@"):
            found.append(text)
            continue
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise StructureFileError(f"the list {text[1:]!r} cannot be read: {e}") from e
        found += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return found


def structure_files(given: Sequence[str | Path]) -> list[Path]:
    """The files that are given, once each, in order.

    A folder stands for the files with the suffix of structures or FASTA in it and below; "*.cif" and "**/*.pdb" for
    those that match; "@list.txt" for what its lines say; "pdb:1ubq" and "af:P69905" stay, to be fetched when read.

    Raises
    ------
    StructureFileError
        A folder holds no such file, nothing matches, or what is no file looks like an archive's identifier.
    SelectionError
        What follows "pdb:" or "af:" is no identifier.
    """
    from protgraph.structure.io.accession import as_accession
    from protgraph.structure.io.sources import SUFFIXES, is_protein_file

    found: dict[Path, None] = {}
    for text in expand_lists(given):
        path = Path(text)
        if as_accession(text) is not None or path.is_file():
            inside = [path]
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if is_protein_file(p) and p.is_file())
            if not inside:
                known = ", ".join(SUFFIXES)
                raise StructureFileError(f"folder {text!r} holds no structure or FASTA file ({known}, maybe .gz)")
        else:
            inside = _matching(text)
        found |= dict.fromkeys(inside)
    return list(found)


def _matching(text: str) -> list[Path]:
    """Files that match a pattern; what is no pattern is left to be missed when it is read."""
    from glob import glob, has_magic

    from protgraph.errors import SelectionError
    from protgraph.structure.io.accession import parse_accession

    if has_magic(text):
        found = [Path(p) for p in sorted(glob(text, recursive=True)) if Path(p).is_file()]
        if not found:
            raise StructureFileError(f"no file matches {text!r}")
        return found
    try:
        entry = parse_accession(text)
    except SelectionError:
        return [Path(text)]
    raise StructureFileError(
        f"there is no file {text!r}; the archive's entry is {entry.archive}:{entry.id}, which is fetched where need be"
    )


def write_manifest(path: Path, outcomes: Sequence[Outcome]) -> Path:
    """A row a protein: what became of it, its sizes, the file's digest, the loss in words and as counts.

    By the suffix: .json (the loss report whole), .csv, or tab-separated.
    """
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".json":
            json.dump([_row(o) | {"loss": o.loss} for o in outcomes], file, indent=1)
        else:
            counts = [_counts(o) for o in outcomes]
            names = list(dict.fromkeys(name for c in counts for name in c))
            table = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t", lineterminator="\n")
            table.writerow([*_COLUMNS, *names])
            for o, c in zip(outcomes, counts, strict=True):
                table.writerow([*_row(o).values(), *(c.get(name, 0) for name in names)])
    return path


def _row(o: Outcome) -> dict[str, object]:
    values = ("failed" if o.error else "done", o.protein, o.residues, o.edges, round(o.seconds, 4), o.sha256)
    return dict(zip(_COLUMNS, (o.file, *values, o.error, o.left_out), strict=True))


def _counts(o: Outcome) -> dict[str, int]:
    """The loss report as one number an entry."""
    size = {dict: lambda v: sum(v.values()), list: len}
    return {name: size.get(type(value), int)(value) for name, value in o.loss.items()}


def finish(failed: int, total: int, manifest: Path) -> None:
    """Say what failed and leave with exit code 1 where some files did, 2 where all did."""
    if not failed:
        return
    from rich.console import Console

    Console(stderr=True).print(f"[bold red]{failed} of {total} files failed[/]; {manifest} says why", highlight=False)
    raise typer.Exit(2 if failed == total else 1)
