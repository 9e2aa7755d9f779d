"""Groups of cases and their replay: command lines, label tables, plugins, interruptions, and Python calls."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.first_use.api_calls import API_CALLS, api_names, call_faults
from tests.first_use.broken_plugins import BROKEN_PLUGINS, MALFORMED_PLUGIN
from tests.first_use.interruptions import FULL_DISKS, RACES, SIGNALS, replay_interruption
from tests.first_use.label_tables import FILES, LABEL_TABLES, TWO_CHAINS, LabelTableCase
from tests.first_use.plugin_cases import PLUGIN_GROUPS
from tests.first_use.replay import Outcome, ShellCase, Workspace, replay, replay_doctor, replay_plugin
from tests.first_use.shell_cases import GROUPS
from tests.first_use.workspace import STRUCTURES

__all__ = ["ALL_GROUPS", "replay_group"]

#: Kind of case, as in the review → groups of it.
ALL_GROUPS: Mapping[str, Sequence[str]] = {
    "command lines": tuple(GROUPS),
    "label tables": ("label tables",),
    "Python calls": ("Python calls",),
    "plugins": (*PLUGIN_GROUPS, "plugins: doctor"),
    "interruptions": ("signals", "full disks", "races"),
}

_Replay = Callable[[Any], tuple[Outcome, list[str]]]


def replay_group(name: str, workspace: Workspace) -> Iterator[tuple[str, Outcome, list[str]]]:
    """Run the cases of a group; yield each with its outcome and a line for everything that is wrong."""
    cases, run = _cases(name, workspace)
    for case in cases:
        yield (case.name if isinstance(case, LabelTableCase) else str(case), *run(case))


def _cases(name: str, workspace: Workspace) -> tuple[Sequence[Any], _Replay]:
    plugins = workspace.folder.with_name("plugins")
    interruptions = {"signals": SIGNALS, "full disks": FULL_DISKS, "races": RACES}
    if name in GROUPS:
        return GROUPS[name], lambda case: replay(workspace, case)
    if name in PLUGIN_GROUPS:
        return PLUGIN_GROUPS[name], lambda case: replay_plugin(workspace, case, plugins)
    if name in interruptions:
        return interruptions[name], lambda case: replay_interruption(workspace, case)
    if name == "plugins: doctor":
        reports = replay_doctor([*BROKEN_PLUGINS, MALFORMED_PLUGIN], plugins)
        return list(reports), reports.__getitem__
    if name == "label tables":
        structures = _table_structures(workspace)
        return LABEL_TABLES, lambda case: _replay_table(workspace, structures, case)
    names = api_names(workspace.folder)
    return API_CALLS, lambda call: (Outcome(0, "", ""), call_faults(call, names))


def _table_structures(workspace: Workspace) -> Path:
    """Write the structures that the label tables name, beside the other inputs."""
    folder = workspace.folder.with_name("table_structures")
    folder.mkdir(exist_ok=True)
    for name in (*FILES, TWO_CHAINS):
        shutil.copy(STRUCTURES / f"{name}.bcif", folder)
    return folder


def _replay_table(workspace: Workspace, structures: Path, case: LabelTableCase) -> tuple[Outcome, list[str]]:
    """Inspect a table that must be understood; train on one that must be refused."""
    table = structures.with_name(f"labels{case.suffix}")
    table.write_bytes(case.content)
    options = " ".join(f"'{text}'" for text in case.arguments())
    if not case.is_refused:
        args = f"data inspect {structures} --labels {table} {options}"
        return replay(workspace, ShellCase(args, 0, case.parts))
    args = f"train gcn --data {structures} --labels {table} {options} --epochs 1 -q --log none -o new.safetensors"
    return replay(workspace, ShellCase(args, 2, case.parts))
