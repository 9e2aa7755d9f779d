"""Replay what first users tried: ``python -m tests.first_use [GROUP …] [--verbose]``; print counts per group."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.first_use.groups import ALL_GROUPS, replay_group
from tests.first_use.replay import Workspace
from tests.first_use.workspace import write_inputs

_ROW = "{:<28} {:>6} {:>7} {:>10} {:>14} {:>8}"


def main() -> int:
    """Run the groups and return 1 if any case has a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help="parts of the names of groups to run; all by default")
    parser.add_argument("--verbose", "-v", action="store_true", help="print the output of every case")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PROTGRAPH_CACHE": str(Path(folder) / "cache"), "PROTGRAPH_OFFLINE": "1"}
        inputs = Path(folder) / "inputs"
        inputs.mkdir()
        with contextlib.chdir(inputs):
            write_inputs(inputs)
        workspace = Workspace(inputs)
        print(_ROW.format("group", "cases", "faults", "tracebacks", "inputs changed", "seconds"))
        totals = []
        for kind, groups in ALL_GROUPS.items():
            chosen = [g for g in groups if not options.groups or any(part in g for part in options.groups)]
            rows = [_run(group, workspace, verbose=options.verbose) for group in chosen]
            if rows:
                totals.append((kind, *map(sum, zip(*rows, strict=True))))
    print("\n" + _ROW.format("", "cases", "faults", "tracebacks", "inputs changed", "seconds"))
    for kind, *numbers in totals:
        print(_ROW.format(kind, *map(round, numbers)))
    return int(any(total[2] for total in totals))


def _run(group: str, workspace: Workspace, *, verbose: bool) -> tuple[float, ...]:
    """Run a group, print its faults and a row; return the numbers of the row."""
    start, cases, wrong, tracebacks, changed = time.perf_counter(), 0, 0, 0, 0
    for case, outcome, faults in replay_group(group, workspace):
        cases += 1
        wrong += bool(faults)
        tracebacks += any("traceback" in fault for fault in faults)
        changed += any("inputs changed" in fault for fault in faults)
        if faults or verbose:
            print(f"\n$ {case}\n{outcome.out[-600:]}{outcome.err[-1500:]}→ {'; '.join(faults) or 'ok'}")
    numbers = (cases, wrong, tracebacks, changed, time.perf_counter() - start)
    print(_ROW.format(group, *numbers[:-1], f"{numbers[-1]:.1f}"), flush=True)
    return numbers


if __name__ == "__main__":
    sys.exit(main())
