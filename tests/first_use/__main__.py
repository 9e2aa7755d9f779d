"""Replay what first users tried: ``python -m tests.first_use [GROUP …] [--verbose]``; print counts per group."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.first_use.replay import Workspace, replay
from tests.first_use.shell_cases import GROUPS
from tests.first_use.workspace import write_inputs


def main() -> int:
    """Run the groups and return 1 if any case has a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help="groups to run; all by default")
    parser.add_argument("--verbose", "-v", action="store_true", help="print the output of every case")
    options = parser.parse_args()
    chosen = [g for g in GROUPS if not options.groups or any(part in g for part in options.groups)]
    faulty = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PROTGRAPH_CACHE"] = str(Path(folder) / "cache")
        os.environ["PROTGRAPH_OFFLINE"] = "1"
        inputs = Path(folder) / "inputs"
        inputs.mkdir()
        with contextlib.chdir(inputs):
            write_inputs(inputs)
        workspace = Workspace(inputs)
        print(f"{'group':<28} {'cases':>6} {'faults':>7} {'seconds':>8}")
        for group in chosen:
            start, wrong = time.perf_counter(), 0
            for case in GROUPS[group]:
                outcome, faults = replay(workspace, case)
                wrong += bool(faults)
                if faults or options.verbose:
                    print(f"\n$ {case}\n{outcome.out[-600:]}{outcome.err[-1500:]}→ {'; '.join(faults) or 'ok'}")
            faulty += wrong
            print(f"{group:<28} {len(GROUPS[group]):>6} {wrong:>7} {time.perf_counter() - start:>8.1f}", flush=True)
    return int(faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
