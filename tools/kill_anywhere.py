"""Kill long commands at random moments, run them again, and compare the results with those of undisturbed runs.

    python tools/kill_anywhere.py --kills 50
    python tools/kill_anywhere.py --kills 6 train embed

Each command is killed with SIGKILL, with all of its processes, up to three times before it may finish. A result must be
absent, the earlier one, or the final one after each kill, and equal to that of an undisturbed run in the end, byte for
byte. Times and memory in the rows of a benchmark are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["COMMANDS", "KillReport", "LongCommand", "kill_command"]

ROOT = Path(__file__).resolve().parents[1]
STRUCTURES = ROOT / "datasets" / "pdb_core" / "structures"
ENTRIES = ("1crn", "1ubq", "1y0m", "1a8o", "1bta", "1ahs", "1orc", "5pti")
KILLS_PER_RUN = 3
EARLIER = b"an earlier result\n"
#: Columns of a benchmark that differ between runs.
MEASURED = ("seconds", "residues_per_second", "peak_memory_mib")

BENCH = """
name = "killed"
models = ["gcn", "gat"]
tasks = ["secondary_structure"]
seeds = [0]
[datasets]
secondary_structure = "../files"
[fit]
epochs = 2
device = "cpu"
"""

PREPARED = """
from pathlib import Path

from protgraph_plugins.published import PreparedDataset, read_repository_labels

import protgraph as pg


@pg.datasets.register("killed_site")
class KilledSite(PreparedDataset):
    card_path = Path(__file__).with_name("card.toml")

    def convert(self, source):
        yield from read_repository_labels(source, source.path("labels.tsv"), {"site": "label"})
"""


@dataclass(frozen=True)
class LongCommand:
    """A command line, and its results.

    ``arguments``: with ``{inputs}``, the folder of all inputs. ``results``: files and folders, relative to the folder
    in which it runs. ``again``: arguments added when it runs again. ``has_earlier``: an earlier file stays until the
    new one is complete.
    """

    arguments: str
    results: tuple[str, ...]
    again: str = ""
    has_earlier: bool = False


COMMANDS: dict[str, LongCommand] = {
    "train": LongCommand(
        "train gcn --data {inputs}/files --task secondary_structure --epochs 30 --device cpu --log none -q "
        "-o model.safetensors",
        ("model.safetensors",),
        again="--resume",
    ),
    "bench": LongCommand("bench run {inputs}/spec/killed.toml -o killed", ("killed/rows.jsonl",)),
    "featurize": LongCommand(
        "featurize {inputs}/files --feature knn --feature dihedral --shard-residues 60 --jobs 2 -o store", ("store",)
    ),
    "data prepare": LongCommand(
        "data prepare killed_site --import {inputs}/killed_site.py --from {inputs}/source -o prepared", ("prepared",)
    ),
    "pockets": LongCommand("pockets {inputs}/files --no-pages --overwrite -o pockets", ("pockets",)),
    "design": LongCommand(
        "design {inputs}/files/1ubq.bcif --n 4 --overwrite -o out.fasta", ("out.fasta",), has_earlier=True
    ),
    "scan": LongCommand(
        "scan {inputs}/files/1crn.bcif --no-heat-map --overwrite -o out.csv", ("out.csv",), has_earlier=True
    ),
    "embed": LongCommand(
        "embed structure_encoder {inputs}/files --overwrite -o out.npz", ("out.npz",), has_earlier=True
    ),
}


@dataclass
class KillReport:
    """Outcome of one command: seconds of the fastest run, kills, finished runs and faults."""

    seconds: float
    kills: int = 0
    runs: int = 0
    faults: tuple[str, ...] = ()


def write_inputs(folder: Path) -> None:
    """Write structures, a bench spec, and a dataset that is prepared from a source folder."""
    from tests.plugins.published.tiny_site import write_card, write_source

    files = folder / "files"
    files.mkdir(parents=True)
    for name in ENTRIES:
        (files / f"{name}.bcif").write_bytes((STRUCTURES / f"{name}.bcif").read_bytes())
    (folder / "spec").mkdir()
    (folder / "spec" / "killed.toml").write_text(BENCH, encoding="utf-8")
    counts = write_source(folder / "source", STRUCTURES)
    write_card(folder / "card.toml", counts)
    card = (folder / "card.toml").read_text("utf-8").replace("tiny_site", "killed_site")
    (folder / "card.toml").write_text(card, encoding="utf-8")
    (folder / "killed_site.py").write_text(PREPARED, encoding="utf-8")


def kill_command(command: LongCommand, inputs: Path, folder: Path, *, kills: int, seed: int) -> KillReport:
    """Kill a command until there were enough kills, and compare the result of each run that may finish.

    ``folder``: new folder for all runs of the command.
    """
    draw = random.Random(seed)
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir(parents=True)
    first = folder / "first"
    first.mkdir()
    run(command, inputs, first)  # fills the cache
    start = time.monotonic()
    code, text = run(command, inputs, undisturbed)
    report = KillReport(time.monotonic() - start)
    if code:
        return KillReport(report.seconds, faults=(f"the undisturbed run fails with {code}: {text[-500:]}",))
    expected = contents(undisturbed, command.results)
    if not expected:
        return KillReport(report.seconds, faults=("the undisturbed run writes no result",))

    while report.kills < kills and not report.faults:
        run_folder = folder / f"run_{report.runs}"
        run_folder.mkdir()
        limit = min(KILLS_PER_RUN, kills - report.kills)
        is_again = _kill_run(command, inputs, run_folder, expected, report, draw, limit=limit)
        code, text = run(command, inputs, run_folder, is_again=is_again)
        report.runs += 1
        result = contents(run_folder, command.results)
        if result == expected:
            continue
        if code:
            report.faults += (f"the command that runs again fails with {code}: {text[-500:]}",)
        else:
            different = sorted(set(expected) ^ set(result)) or [key for key in expected if result[key] != expected[key]]
            report.faults += (f"after the kills, {', '.join(different[:3])} differs from the undisturbed run",)
    return report


def _kill_run(
    command: LongCommand,
    inputs: Path,
    folder: Path,
    expected: dict[str, bytes],
    report: KillReport,
    draw: random.Random,
    *,
    limit: int,
) -> bool:
    """Start a command and kill it, up to ``limit`` times; return whether it was killed.

    ``folder``: of the run. ``report``: gets the kills, and faults of what they leave.
    """
    if command.has_earlier:
        (folder / command.results[0]).write_bytes(EARLIER)
    is_again = False
    for _ in range(limit):
        delay = draw.uniform(0.2, 1.0) * report.seconds
        begin = time.monotonic()
        if not killed(command, inputs, folder, delay, is_again=is_again):
            # It had finished before: the machine is faster now, and the next kill comes earlier.
            report.seconds = min(report.seconds, time.monotonic() - begin)
            break
        report.kills += 1
        is_again = True
        report.faults += torn_results(command, folder, expected, delay)
    return is_again


def run(command: LongCommand, inputs: Path, folder: Path, *, is_again: bool = False) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it printed."""
    finished = subprocess.run(
        arguments_of(command, inputs, is_again=is_again),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return finished.returncode, finished.stdout


def killed(command: LongCommand, inputs: Path, folder: Path, delay: float, *, is_again: bool) -> bool:
    """Start a command and kill it with all of its processes after some seconds; return False if it ended before."""
    process = subprocess.Popen(
        arguments_of(command, inputs, is_again=is_again),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def arguments_of(command: LongCommand, inputs: Path, *, is_again: bool) -> list[str]:
    """Return the command line."""
    line = f"{command.arguments} {command.again}" if is_again else command.arguments
    return [sys.executable, "-m", "protgraph", *line.format(inputs=inputs).split()]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment: one thread, and a cache for the runs of one command."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PROTGRAPH_CACHE": str(folder.parent / "cache")}


def torn_results(command: LongCommand, folder: Path, expected: dict[str, bytes], delay: float) -> tuple[str, ...]:
    """Return a line for each file that is neither the earlier one nor the final one; rows and folders may grow."""
    if not command.has_earlier:
        return ()
    path = folder / command.results[0]
    content = path.read_bytes() if path.is_file() else b""
    if content in (EARLIER, expected[command.results[0]]):
        return ()
    return (f"killed after {delay:.2f} s, {path.name} has {len(content)} bytes, neither the earlier nor the new file",)


def contents(folder: Path, results: tuple[str, ...]) -> dict[str, bytes]:
    """Return the bytes of all result files by path, without hidden files and measured columns."""
    bytes_of: dict[str, bytes] = {}
    for result in results:
        root = folder / result
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_file() and not any(part.startswith(".") for part in Path(name).parts):
                bytes_of[name] = normalized(path)
    return bytes_of


def normalized(path: Path) -> bytes:
    """Return the bytes of a file; of rows of a benchmark those columns that do not depend on the machine."""
    if path.name != "rows.jsonl":
        return path.read_bytes()
    rows = {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        rows[row["key"]] = {name: value for name, value in row.items() if name not in MEASURED}
    return json.dumps(rows, sort_keys=True).encode()


def main(arguments: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    """Test the named commands, print a line for each, and return 1 if one has faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*COMMANDS, []], help="commands; default: all")
    parser.add_argument("--kills", type=int, default=50, help="kills of each command")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT))
    is_equal = True
    with tempfile.TemporaryDirectory(prefix="kill_anywhere_") as name:
        work = Path(name)
        write_inputs(work / "inputs")
        for number, command in enumerate(options.names or COMMANDS):
            folder = work / command.replace(" ", "_")
            report = kill_command(
                COMMANDS[command], work / "inputs", folder, kills=options.kills, seed=options.seed + number
            )
            verdict = "; ".join(report.faults) or "equal"
            show(f"{command:14} {report.seconds:6.1f} s  {report.kills:3} kills  {report.runs:3} runs  {verdict}")
            is_equal = is_equal and not report.faults
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
