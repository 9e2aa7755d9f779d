"""Every module imports without the modules and functions that only POSIX systems have."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Our own modules only: on Linux, libraries such as psutil import these modules themselves.
PROGRAM = """
import builtins, importlib, os, pkgutil, sys, types

HIDDEN = {"fcntl", "resource", "termios", "pwd", "grp"}
POSIX = {"fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "setsid", "sched_getaffinity", "uname"}
real_import = builtins.__import__

def is_ours(scope):
    return str(scope.get("__name__", "")).startswith("protgraph")

def guarded_import(name, scope=None, *args, **kwargs):
    if name.partition(".")[0] in HIDDEN and is_ours(scope or {}):
        raise ModuleNotFoundError(f"{scope['__name__']} imports {name}")
    return real_import(name, scope, *args, **kwargs)

class Guard(types.ModuleType):
    def __getattribute__(self, name):
        if name in POSIX and is_ours(sys._getframe(1).f_globals):
            raise AttributeError(f"{sys._getframe(1).f_globals['__name__']} uses os.{name}")
        return super().__getattribute__(name)

builtins.__import__ = guarded_import
os.__class__ = Guard
sys.modules["fcntl"] = None
for top in sys.argv[1:]:
    package = importlib.import_module(top)
    for module in pkgutil.walk_packages(package.__path__, top + "."):
        if not module.name.endswith(("__main__", ".triton_programs")):  # Triton is for Linux
            importlib.import_module(module.name)
            print(module.name)
"""
PACKAGES = ("protgraph", "protgraph_plugins", "protgraph_datasets")


def _import_all(*packages: str, path: str = "") -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {path!r})\n{PROGRAM}" if path else PROGRAM
    command = [sys.executable, "-W", "ignore", "-c", program, *packages]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_module_imports_without_posix_modules():
    run = _import_all(*PACKAGES)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) > 300


def test_an_import_of_a_posix_module_is_found(tmp_path):
    for line in ("import fcntl", "import resource", "from os import fork", "import os; os.getuid()"):
        package = tmp_path / "protgraph_twin"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        (package / "module.py").write_text(line + "\n")
        assert _import_all("protgraph_twin", path=str(tmp_path)).returncode, line
