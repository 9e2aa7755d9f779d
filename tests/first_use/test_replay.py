"""Replay of odd command lines: exit code, message, no traceback, no input changed, nothing written by a failed call."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.first_use.broken_plugins import BROKEN_PLUGINS
from tests.first_use.groups import ALL_GROUPS, replay_group
from tests.first_use.interruptions import FULL_DISKS, RACES, SIGNALS
from tests.first_use.label_tables import LABEL_TABLES
from tests.first_use.plugin_cases import PLUGIN_GROUPS
from tests.first_use.replay import Workspace, message_faults
from tests.first_use.shell_cases import shell_cases
from tests.first_use.workspace import write_inputs


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return the inputs of all cases."""
    folder = tmp_path_factory.mktemp("first_use") / "inputs"
    folder.mkdir()
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTGRAPH_OFFLINE", "1")
        write_inputs(folder)
    return Workspace(folder)


#: tests/cli/test_doctor.py has the same distributions.
ELSEWHERE = "plugins: doctor"


@pytest.mark.slow
@pytest.mark.parametrize("group", [g for groups in ALL_GROUPS.values() for g in groups if g != ELSEWHERE])
def test_no_case_has_a_fault(workspace: Workspace, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTGRAPH_OFFLINE", "1")
    faults = {case: found for case, _, found in replay_group(group, workspace) if found}
    assert not faults


def test_there_are_as_many_cases_as_in_the_review() -> None:
    cases = shell_cases()
    assert len(cases) >= 274 and len({case.args for case in cases}) == len(cases)
    plugins = [case.plugin.name for cases in PLUGIN_GROUPS.values() for case in cases]
    assert len(set(plugins)) + len(BROKEN_PLUGINS) + 1 >= 90
    assert len(SIGNALS) + len(FULL_DISKS) + len(RACES) >= 22 and len(LABEL_TABLES) >= 71


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        ("error: no task 'a'. Did you mean 'b'?", 0),
        ("", 1),
        ("error: one. Two. Three. Four. Five.", 1),
        ("error: a\nb\nc\nd\ne", 1),
    ],
)
def test_the_form_of_a_message_is_checked(message: str, faults: int) -> None:
    assert len(message_faults(message)) == faults


def test_a_changed_input_is_found_and_restored(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "a.pdb").write_text("before")
    workspace = Workspace(folder)
    (folder / "a.pdb").write_text("after")
    (folder / "new.csv").write_text("x")
    assert workspace.compare_and_restore() == (("new.csv",), ("a.pdb",))
    assert (folder / "a.pdb").read_text() == "before" and not (folder / "new.csv").exists()
