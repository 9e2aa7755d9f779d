"""Run the command line in this process on a folder of inputs, and state what is wrong about the outcome of a case."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.first_use.broken_plugins import MALFORMED_PLUGIN, BrokenPlugin, install_plugin
from tests.first_use.plugin_cases import PluginCase

__all__ = [
    "ANY_CODE",
    "Outcome",
    "ShellCase",
    "Workspace",
    "case",
    "message_faults",
    "replay",
    "replay_doctor",
    "replay_plugin",
    "run_command",
]

#: Expected exit code of a command that may succeed or fail.
ANY_CODE = -1
#: Files that a command may leave beside its output although it fails: its log folder, and the list of failures.
SIDE_FILES = (".run/", ".failures.csv", ".manifest.tsv", "__pycache__/")


@dataclass(frozen=True)
class ShellCase:
    """One command line with its expected exit code and the data that its output must contain."""

    args: str
    code: int
    parts: tuple[str, ...] = ()
    changes: str = ""

    def __str__(self) -> str:
        return f"protgraph {self.args}"


def case(args: str, code: int, *parts: str, changes: str = "") -> ShellCase:
    """Return a :class:`ShellCase`.

    Parameters
    ----------
    args : str
        Arguments of ``protgraph`` in the syntax of a shell.
    code : int
        Expected exit code.
    *parts : str
        Texts of the output, compared without case and line breaks.
    changes : str
        Start of the paths that the command may change.
    """
    return ShellCase(args, code, parts, changes)


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of one command, files that are new, and inputs that are no longer the same."""

    code: int
    out: str
    err: str
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Workspace:
    """Folder with the inputs of all cases, and a copy of it to restore from.

    Parameters
    ----------
    folder : Path
        Its files are the inputs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pristine = folder.with_name(f"{folder.name}.pristine")
        shutil.copytree(folder, self.pristine, symlinks=True)
        self.digests = dict(self._digests())

    def _digests(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                yield str(path.relative_to(self.folder)), hashlib.sha256(path.read_bytes()).hexdigest()

    def compare_and_restore(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return new files and changed or missing inputs, then make the folder as it was."""
        now = dict(self._digests())
        created = tuple(name for name in now if name not in self.digests)
        changed = tuple(name for name, digest in self.digests.items() if now.get(name) != digest)
        if created or changed or any(p.is_dir() and not (self.pristine / p.relative_to(self.folder)).is_dir()
                                     for p in self.folder.rglob("*")):  # fmt: skip
            for path in self.folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copytree(self.pristine, self.folder, symlinks=True, dirs_exist_ok=True)
        return created, changed

    def run(self, case: ShellCase) -> Outcome:
        """Run a case inside the folder."""
        with contextlib.chdir(self.folder):
            code, out, err = run_command(shlex.split(case.args))
        return Outcome(code, out, err, *self.compare_and_restore())


def run_command(args: list[str]) -> tuple[int, str, str]:
    """Run ``protgraph`` with these arguments in this process; return exit code, standard output and error.

    The environment is restored, since ``--import`` sets a variable for worker processes.
    """
    from protgraph.cli.app import main

    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            main(args)
            code = 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def installed(plugin: BrokenPlugin, folder: Path) -> Iterator[None]:
    """Install a distribution in this process: in a folder on ``sys.path``, with its module forgotten afterwards."""
    folder = folder / plugin.name  # entry points are cached by the folders of sys.path
    shutil.rmtree(folder, ignore_errors=True)
    sys.path.insert(0, str(install_plugin(plugin, folder)))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(plugin.module, None)


def replay_plugin(workspace: Workspace, case: PluginCase, folder: Path) -> tuple[Outcome, list[str]]:
    """Run a command with a distribution installed; return its outcome with a line for everything that is wrong."""
    with installed(case.plugin, folder):
        return replay(workspace, ShellCase(case.args, case.code, case.parts))


def replay_doctor(plugins: Sequence[BrokenPlugin], folder: Path) -> dict[str, tuple[Outcome, list[str]]]:
    """Run ``protgraph doctor`` once with all distributions that can be installed together, and once with each other.

    Returns
    -------
    dict
        Name of a distribution → outcome, and what the report lacks.
    """
    together = [plugin for plugin in plugins if plugin is not MALFORMED_PLUGIN]
    results = {}
    for number, group in enumerate((together, [MALFORMED_PLUGIN])):
        place = folder / f"doctor-{number}"
        for plugin in group:
            install_plugin(plugin, place)
        path = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        done = subprocess.run(
            [sys.executable, "-m", "protgraph", "doctor", "--timeout", "10"],
            env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=400,
        )
        outcome = Outcome(done.returncode, done.stdout, done.stderr)
        traceback = ["traceback"] * ("Traceback" in done.stdout + done.stderr)
        code = [] if done.returncode == 1 else [f"exit code {done.returncode}, expected 1"]
        for plugin in group:
            lacks = [f"output lacks {part!r}" for part in (plugin.name, *plugin.report) if part not in done.stdout]
            results[plugin.name] = (outcome, [*traceback, *code, *lacks])
    return results


def replay(workspace: Workspace, case: ShellCase) -> tuple[Outcome, list[str]]:
    """Run a case and return its outcome with a line for everything that is wrong."""
    outcome = workspace.run(case)
    text = outcome.out + outcome.err
    faults = []
    if "Traceback" in text or outcome.code == 70:
        faults.append("traceback or fault of the program")
    if outcome.code != case.code and (case.code != ANY_CODE or outcome.code not in (0, 1, 2)):
        faults.append(f"exit code {outcome.code}, expected {case.code}")
    changed = [name for name in outcome.changed if not (case.changes and name.startswith(case.changes))]
    if changed:
        faults.append(f"inputs changed: {', '.join(changed)}")
    if outcome.code not in (0, 1):
        left = [name for name in outcome.created if not any(part in name for part in SIDE_FILES)]
        if left:
            faults.append(f"written although it failed: {', '.join(left)}")
        faults += [] if "Usage:" in outcome.out else message_faults(outcome.err)
    flat = _flat(text)
    faults += [f"output lacks {data!r}" for data in case.parts if _flat(data) not in flat]
    return outcome, faults


def _flat(text: str) -> str:
    """Return text without the frames of boxes, line breaks and case."""
    return re.sub(r"\s+", "", re.sub(r"[│╭╮╰╯─]", "", text)).lower()


def message_faults(err: str) -> list[str]:
    """Return what is wrong with the form of an error message: empty, or longer than four lines or sentences."""
    message = err.partition("error: ")[2] or "".join(re.findall(r"│(.*?)│", err)) or err
    if not message.strip():
        return ["no error message"]
    lines = [line for line in message.strip().splitlines() if line.strip()]
    sentences = re.findall(r"[.?!](?=\s+[A-Z'\"-]|\s*$)", re.sub(r"\be\.g\.", "eg", message))
    faults = []
    if len(lines) > 4:
        faults.append(f"message of {len(lines)} lines")
    if len(sentences) > 4:
        faults.append(f"message of {len(sentences)} sentences")
    return faults
