"""What commands share that take structure files: folders searched, and a manifest of what became of each."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from protgraph.errors import StructureFileError

__all__ = ["Outcome", "expand_lists", "finish", "structure_files", "write_manifest"]


@dataclass(frozen=True)
class Outcome:
    """What became of one file: ``residues`` that were used, or the ``reason`` why none; ``left_out`` of the file."""

    file: str
    residues: int = 0
    reason: str = ""
    left_out: str = ""


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
    from protgraph.structure.archive import as_accession
    from protgraph.structure.entry import SUFFIXES, is_protein_file

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
    from protgraph.structure.archive import parse_accession

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
    """A tab-separated table: file, status, residues, reason, left_out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(["file", "status", "residues", "reason", "left_out"])
        for o in outcomes:
            table.writerow([o.file, "failed" if o.reason else "done", o.residues, o.reason, o.left_out])
    return path


def finish(failed: int, total: int, manifest: Path) -> None:
    """Say what failed and leave with exit code 1 where some files did, 2 where all did."""
    if not failed:
        return
    from rich.console import Console

    Console(stderr=True).print(f"[bold red]{failed} of {total} files failed[/]; {manifest} says why", highlight=False)
    raise typer.Exit(2 if failed == total else 1)
