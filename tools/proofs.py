"""Run all that takes too long for each change, go on after failures, and print one table.

    python tools/proofs.py                # all proofs, several hours
    python tools/proofs.py kills parsers  # these only
    python tools/proofs.py --list

The output of each proof is in ``build/proofs/NAME.log``. The exit code is 1 if one has failed. ``docs/promises.md``
has the promise behind each proof.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROOFS", "Result", "run_proof", "table"]

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "proofs"

#: Name → command line, run in the root of the checkout with the environment of ``make test``.
PROOFS: Mapping[str, str] = {
    "slow tests": "make test-slow",
    "conformity": "protgraph check --all",
    "trained models": "protgraph verify dna_site ligand_site model_quality paratope ppi_site secondary_structure "
    "structure_encoder sugar_site",
    "kills": "python tools/kill_anywhere.py --kills 50",
    "parsers": "python tools/fuzz_parsers.py --minutes 10",
    "first use": "python -m tests.first_use",
    "matrix": "nox --no-stop-on-first-error",
}


@dataclass(frozen=True)
class Result:
    """Outcome of one proof."""

    name: str
    command: str
    code: int
    seconds: float

    @property
    def verdict(self) -> str:
        """``passed``, or the exit code."""
        return "passed" if self.code == 0 else f"failed ({self.code})"


def run_proof(name: str, command: str, logs: Path = LOGS) -> Result:
    """Run a command line with its output in a log file."""
    logs.mkdir(parents=True, exist_ok=True)
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}", "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    with (logs / f"{name.replace(' ', '_')}.log").open("w", encoding="utf-8") as log:
        try:
            code = subprocess.run(
                shlex.split(command), cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False
            ).returncode
        except OSError as e:
            log.write(f"{command}: {e}\n")
            code = 127
    return Result(name, command, code, time.monotonic() - start)


def table(results: list[Result]) -> str:
    """Return the results as a table of aligned columns."""
    rows = [("proof", "command", "result", "time")]
    for result in results:
        minutes, seconds = divmod(round(result.seconds), 60)
        rows.append((result.name, result.command, result.verdict, f"{minutes}:{seconds:02}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def main(
    arguments: list[str] | None = None, proofs: Mapping[str, str] = PROOFS, show: Callable[[str], None] = print
) -> int:
    """Run the named proofs, and return 1 if one has failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="proofs; default: all")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder of the outputs")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(proofs)
    if unknown:
        parser.error(f"unknown proof {sorted(unknown)[0]!r}. Allowed: {', '.join(proofs)}")
    chosen = {name: proofs[name] for name in options.names or proofs}
    if options.list:
        for name, command in chosen.items():
            show(f"{name}: {command}")
        return 0
    results = []
    for name, command in chosen.items():
        show(f"{name}: {command}")
        results.append(run_proof(name, command, options.logs))
    show(f"\n{table(results)}\n\nThe outputs are in {options.logs}.")
    return int(any(result.code for result in results))


if __name__ == "__main__":
    sys.exit(main())
