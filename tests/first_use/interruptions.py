"""Signals in the middle of commands, files that cannot be written, and two commands with one output."""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.first_use.replay import Outcome, Workspace, run_command

__all__ = ["FULL_DISKS", "RACES", "SIGNALS", "FullDisk", "Race", "Signal", "replay_interruption"]

_EARLIER = "an earlier result\n"
_FIT = "--task secondary_structure -q --log none --device cpu"


@dataclass(frozen=True)
class Signal:
    """A signal that arrives when a function of a command is called, and the file that must stay."""

    args: str
    where: str  # module:function
    number: signal.Signals
    out: str

    def __str__(self) -> str:
        return f"{self.number.name} in protgraph {self.args}"


@dataclass(frozen=True)
class FullDisk:
    """A command whose output is larger than the largest file that can be written, in bytes."""

    args: str
    limit: int
    out: str

    def __str__(self) -> str:
        return f"full disk in protgraph {self.args}"


@dataclass(frozen=True)
class Race:
    """Two processes of the same command with one output; at least one of them must succeed."""

    args: str
    check: str

    def __str__(self) -> str:
        return f"twice at once: protgraph {self.args}"


_COMMANDS = (
    ("predict ss.safetensors A -o out.csv", "protgraph.inference.prediction:collate", "out.csv"),
    ("embed ss.safetensors A -o out.npz", "protgraph.inference.embedding:collate", "out.npz"),
    ("design 1crn.pdb --model inv.safetensors -o out.fasta", "protgraph_plugins.design.sampling:encode", "out.fasta"),
    ("score 1crn.pdb --model inv.safetensors -o out.csv", "protgraph_plugins.design.run:encode", "out.csv"),
    ("generate gpt.safetensors -o out.fasta --n 2", "protgraph_plugins.gpt.generation:sample_classes", "out.fasta"),
    ("view 1crn.pdb -o out.html", "protgraph_plugins.view:write_page", "out.html"),
    (f"train gcn --data A {_FIT} -o out.safetensors", "protgraph.train.run_setup:prepare", "out.safetensors"),
)
SIGNALS = [
    Signal(f"{args} --overwrite", where, number, out)
    for args, where, out in _COMMANDS
    for number in (signal.SIGINT, signal.SIGTERM)
]
FULL_DISKS = [
    FullDisk(f"{args} --overwrite", limit, out)
    for (args, _, out), limit in zip(
        (*_COMMANDS[:6], (f"train gcn --data A {_FIT} --epochs 1 -o out.safetensors", "", "out.safetensors")),
        (2000, 2000, 60, 1000, 100, 20000, 20000),
        strict=True,
    )
]
RACES = [
    Race("featurize A -o out", "featurize out -o again"),
    Race("predict ss.safetensors A -o out.csv --overwrite", "list"),
]


def replay_interruption(workspace: Workspace, case: Signal | FullDisk | Race) -> tuple[Outcome, list[str]]:
    """Run a case and return its outcome with a line for everything that is wrong."""
    run: dict[type, Callable[..., tuple[Outcome, list[str]]]] = {Signal: _signal, FullDisk: _full_disk, Race: _race}
    with contextlib.chdir(workspace.folder):
        outcome, faults = run[type(case)](case)
    created, changed = workspace.compare_and_restore()
    if changed:
        faults.append(f"inputs changed: {', '.join(changed)}")
    if "Traceback" in outcome.out + outcome.err or outcome.code == 70:
        faults.append("traceback or fault of the program")
    return Outcome(outcome.code, outcome.out, outcome.err, created, changed), faults


def _signal(case: Signal) -> tuple[Outcome, list[str]]:
    module, _, name = case.where.partition(":")
    out = Path(case.out)
    out.write_text(_EARLIER)

    def stop(*args: object, **options: object) -> None:
        os.kill(os.getpid(), case.number)
        raise RuntimeError("the signal did not arrive")

    with mock.patch.object(importlib.import_module(module), name, stop):
        outcome = Outcome(*run_command(shlex.split(case.args)))
    expected = 128 + case.number
    faults = [] if outcome.code == expected else [f"exit code {outcome.code}, expected {expected}"]
    if not outcome.err.strip():
        faults.append("not one word")
    return outcome, faults + _earlier_faults(out)


def _earlier_faults(out: Path) -> list[str]:
    """Return what is wrong about an earlier result: it must be there, as it was."""
    kept = out.is_file() and out.read_text() == _EARLIER
    parts = [str(p) for p in Path().glob(".*.part")]
    faults = [] if kept else ["the earlier result is lost"]
    return faults + [f"temporary file left: {', '.join(parts)}"] * bool(parts)


@contextlib.contextmanager
def _file_size_limit(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _full_disk(case: FullDisk) -> tuple[Outcome, list[str]]:
    out = Path(case.out)
    run_command(shlex.split(case.args))  # fills the caches, which the limit concerns too
    out.write_text(_EARLIER)
    with _file_size_limit(case.limit):
        outcome = Outcome(*run_command(shlex.split(case.args)))
    faults = [] if outcome.code == 2 else [f"exit code {outcome.code}, expected 2"]
    if f"{out.stem}." not in outcome.err:  # the output, or a file of its log folder
        faults.append(f"output lacks {out.stem!r}")
    if not out.is_file() or out.read_text() != _EARLIER:
        faults.append("the earlier result is not as it was")
    return outcome, faults + _earlier_faults(out)


def _race(case: Race) -> tuple[Outcome, list[str]]:
    command = [sys.executable, "-m", "protgraph", *shlex.split(case.args)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    processes = [subprocess.Popen(command, env=environment, **options) for _ in range(2)]
    ends = [(*p.communicate(timeout=300), p.returncode) for p in processes]
    codes = sorted(code for _, _, code in ends)
    faults = [] if codes[0] == 0 and codes[1] in (0, 2) else [f"exit codes {codes}"]
    code, out, err = run_command(shlex.split(case.check))
    if code:
        faults.append(f"the result is not whole: {err or out}")
    return Outcome(codes[0], "".join(out for out, _, _ in ends), "".join(err for _, err, _ in ends)), faults
