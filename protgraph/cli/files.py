"""What commands share that take structure files: folders searched, and a manifest of what became of each."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from protgraph.errors import StructureFileError

__all__ = ["Outcome", "finish", "structure_files", "write_manifest"]


@dataclass(frozen=True)
class Outcome:
    """What became of one file: ``residues`` that were used, or the ``reason`` why none; ``left_out`` of the file."""

    file: str
    residues: int = 0
    reason: str = ""
    left_out: str = ""


def structure_files(given: Sequence[Path]) -> list[Path]:
    """The files given, and those with the suffix of structures or FASTA in the folders given, once each, in order.

    Raises
    ------
    StructureFileError
        A folder holds no such file.
    """
    from protgraph.structure.entry import SUFFIXES, is_protein_file

    found: dict[Path, None] = {}
    for path in given:
        if not path.is_dir():
            found[path] = None
            continue
        inside = sorted(p for p in path.iterdir() if is_protein_file(p))
        if not inside:
            known = ", ".join(SUFFIXES)
            raise StructureFileError(f"folder {str(path)!r} holds no structure or FASTA file ({known}, maybe .gz)")
        found |= dict.fromkeys(inside)
    return list(found)


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
