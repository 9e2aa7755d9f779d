"""Modules of plugins that hang, interrupt or end the process while they are imported are named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from protgraph.errors import PluginLoadError
from protgraph.registry import Registry, provider


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Own(BaseException): pass\nraise Own('unusual')", "Own: unusual"),
        ("import os; os._exit(0)", "exit status 0"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_a_module_that_ends_the_process_is_named(install, code, words):
    install("hostile", {"protgraph.shapes": {"bad": "hostile_mod:Bad"}}, {"hostile_mod": code})
    shapes = Registry(kind="shape", group="protgraph.shapes")
    with pytest.raises(PluginLoadError, match=rf"'bad' of hostile 1.2 .*hostile_mod:Bad.*{words}"):
        shapes.get("bad")


def test_ctrl_c_during_an_import_interrupts(install):
    code = "import signal\nsignal.raise_signal(signal.SIGINT)\n"
    install("slow", {"protgraph.shapes": {"bad": "slow_mod:Bad"}}, {"slow_mod": code})
    with pytest.raises(KeyboardInterrupt):
        Registry(kind="shape", group="protgraph.shapes").get("bad")


def test_a_child_process_of_an_import_can_end_itself(install):
    code = """
        import os
        child = os.fork()
        if child == 0:
            os._exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """
    install("forks", {"protgraph.shapes": {"status": "forks_mod:status"}}, {"forks_mod": code})
    assert Registry(kind="shape", group="protgraph.shapes").get("status") == 7


@pytest.mark.slow
def test_a_long_import_is_named(install, monkeypatch, capsys):
    monkeypatch.setattr(provider, "_LONG_IMPORT", 0.05)
    install("slow", {"protgraph.shapes": {"late": "late_mod:x"}}, {"late_mod": "import time; time.sleep(0.5); x = 1"})
    Registry(kind="shape", group="protgraph.shapes").get("late")
    assert capsys.readouterr().err == "still importing late_mod:x of slow 1.2 (shape 'late') after 0.05 s\n"


def test_a_segmentation_fault_of_an_import_is_located(install):
    site = install(
        "crash", {"protgraph.layers": {"crash": "crash_mod:x"}}, {"crash_mod": "import ctypes\nctypes.string_at(0)"}
    )
    program = (
        f"import sys; sys.path.insert(0, {str(site)!r}); from protgraph.cli.app import main; main(['info', 'crash'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode < 0 and "crash_mod.py" in done.stderr
