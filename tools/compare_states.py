"""Compare what two states of the project print and predict: names, help, predictions, checkpoints, benchmark rows.

Record each state with the ``protgraph`` command of its environment, then compare the folders::

    python tools/compare_states.py record before /old/bin/protgraph FILES [--checkpoint FILE] [--rows FILE]
    python tools/compare_states.py record after  /new/bin/protgraph FILES [--checkpoint FILE] [--rows FILE]
    python tools/compare_states.py compare before after

FILES are structure files that every trained model predicts. ``--checkpoint`` is a checkpoint that an older state wrote,
``--rows`` the ``rows.jsonl`` of a benchmark. ``compare`` prints a line per difference, and exits with 1 if a
prediction, a checkpoint or a row differs, or if a name is missing; other names and help texts are printed only.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["compare", "main", "record"]

NAMES, HELP, PREDICTIONS, ROWS = "names.txt", "help", "predictions", "rows.jsonl"
#: What a benchmark measures of the machine; it differs from run to run.
MEASURED = {"residues_per_second", "seconds", "peak_memory_mib"}
_COMMAND = re.compile(r"^│ ([a-z][a-z-]*) ", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Record a state or compare two; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("program")
    recording.add_argument("files", nargs="+")
    recording.add_argument("--checkpoint", action="append", default=[])
    recording.add_argument("--rows", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "record":
        record(options.folder, options.program, options.files, options.checkpoint, options.rows)
        return 0
    return compare(options.before, options.after)


# --- record -------------------------------------------------------------------------------------------------------


def record(folder: Path, program: str, files: list[str], checkpoints: list[str], rows: Path | None) -> None:
    """Write what a state prints and predicts to a folder.

    Parameters
    ----------
    folder : Path
        Created; it must not exist.
    program : str
        The command ``protgraph`` of the state.
    files : list of str
        Structure files.
    checkpoints : list of str
        Checkpoints that predict the files, too.
    rows : Path, optional
        Rows of a benchmark, one JSON object per line, of which measured times and memory are left out.

    Raises
    ------
    ValueError
        Two of the trained models and checkpoints have the same name.
    """
    folder.mkdir(parents=True)
    names = _printed(program, "list")
    (folder / NAMES).write_text(names, encoding="utf-8")

    (folder / HELP).mkdir()
    overview = _printed(program, "--help")
    (folder / HELP / "protgraph.txt").write_text(overview, encoding="utf-8")
    for command in _commands(overview):
        text = _printed(program, command, "--help")
        (folder / HELP / f"{command}.txt").write_text(text, encoding="utf-8")
        for subcommand in _commands(text):
            text = _printed(program, command, subcommand, "--help")
            (folder / HELP / f"{command} {subcommand}.txt").write_text(text, encoding="utf-8")

    (folder / PREDICTIONS).mkdir()
    models = sorted(name for kind, name in _components(names) if kind == "trained_models")
    for model in [*models, *checkpoints]:
        table = folder / PREDICTIONS / f"{Path(model).stem}.csv"
        if table.with_suffix(".txt").exists():
            raise ValueError(f"two models have the name {table.stem!r}. Rename the checkpoint.")
        # Files in which the model predicts nothing, e.g. without an antibody, are named in the output.
        code, printed = _run(program, "predict", model, *files, "--out", str(table))
        text = f"exit code {code}\n{printed.replace(str(folder), 'FOLDER')}"
        table.with_suffix(".txt").write_text(text, encoding="utf-8")

    if rows is not None:
        records = [_without_measured(json.loads(line)) for line in rows.read_text(encoding="utf-8").splitlines()]
        # Runs end in another order if several work side by side.
        lines = sorted(json.dumps(record, sort_keys=True) for record in records)
        (folder / ROWS).write_text("\n".join(lines), encoding="utf-8")


def _printed(program: str, *arguments: str) -> str:
    code, text = _run(program, *arguments)
    if code:
        raise RuntimeError(f"{program} {' '.join(arguments)}: exit code {code}.\n{text}")
    return text


def _run(program: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code of a command and what it prints."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout + done.stderr


def _commands(text: str) -> list[str]:
    """Return the names in the panel "Commands" of a help text."""
    _, _, panel = text.partition("─ Commands ─")
    return _COMMAND.findall(panel)


def _components(names: str) -> set[tuple[str, str]]:
    """Return kind and name of each component in the output of ``protgraph list``."""
    components, kind = set(), ""
    for line in names.splitlines():
        if line.startswith(" "):
            components.add((kind, line.split()[0]))
        elif line:
            kind = line.split()[0]
    return components


def _without_measured(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_measured(item) for key, item in value.items() if key not in MEASURED}
    if isinstance(value, list):
        return [_without_measured(item) for item in value]
    return value


# --- compare ------------------------------------------------------------------------------------------------------


def compare(before: Path, after: Path) -> int:
    """Print the differences of two recorded states; return 1 if a result differs or a name is missing, else 0."""
    is_different = False
    old_names, new_names = (_components((folder / NAMES).read_text(encoding="utf-8")) for folder in (before, after))
    for kind, name in sorted(old_names - new_names):
        print(f"missing: {name} ({kind})")
        is_different = True
    for kind, name in sorted(new_names - old_names):
        print(f"new: {name} ({kind})")

    for name in _file_names(before / HELP, after / HELP):
        for line in _changed_lines(before / HELP / name, after / HELP / name):
            print(f"help of {name.removesuffix('.txt')}: {line}")

    results = [f"{PREDICTIONS}/{name}" for name in _file_names(before / PREDICTIONS, after / PREDICTIONS)]
    for name in [*results, ROWS]:
        changed = _changed_lines(before / name, after / name)
        if changed:
            print(f"{name}: {len(changed)} lines differ, the first: {changed[0]}")
            is_different = True
    counts = f"{len(old_names)} names, {len(results)} files of predictions"
    print(f"{counts}: {'results differ' if is_different else 'results are equal'}")
    return int(is_different)


def _file_names(before: Path, after: Path) -> list[str]:
    return sorted({path.name for folder in (before, after) for path in folder.iterdir()})


def _changed_lines(before: Path, after: Path) -> list[str]:
    """Return the lines that one of two files has and the other has not, with "-" or "+"; a missing file has none."""
    texts = [path.read_text(encoding="utf-8").splitlines() if path.exists() else [] for path in (before, after)]
    if texts[0] == texts[1]:
        return []
    differences = difflib.unified_diff(*texts, n=0, lineterm="")
    return [line for line in differences if not line.startswith(("---", "+++", "@@"))]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
