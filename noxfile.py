"""Versions of Python and of dependencies, and installations outside the repository: ``nox`` runs all, ``nox -l`` lists.

    nox -s "tests-3.12(dependencies='lowest')"
    nox -s install

An interpreter that is missing is skipped by nox; ``uv python install 3.12`` or the package manager provides it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nox

nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["tests", "install"]

ROOT = Path(__file__).resolve().parent
PYTHONS = ["3.11", "3.12", "3.13"]
#: A benchmark of seconds, in place of the built-in ones.
QUICK = """
name = "quick"
models = ["majority", "gcn"]
tasks = ["secondary_structure"]
seeds = [0]
[datasets]
secondary_structure = "pdb_core"
[fit]
epochs = 1
device = "cpu"
"""


@nox.session(python=PYTHONS)
@nox.parametrize("dependencies", ["lowest", "newest"])
def tests(session: nox.Session, dependencies: str) -> None:
    """Run the tests with the lowest allowed or the newest version of each dependency."""
    constraints = []
    if dependencies == "lowest":
        lowest = session.run(sys.executable, "tools/lowest_versions.py", external=True, silent=True)
        file = Path(session.create_tmp()) / "lowest.txt"
        file.write_text(str(lowest), encoding="utf-8")
        constraints = ["--constraint", str(file)]
    session.install(*constraints, ".[test]")
    session.run("python", "-m", "pytest", "-n", "auto", "-m", "not slow", *session.posargs)


@nox.session(python=PYTHONS)
@nox.parametrize("distribution", ["wheel", "sdist"])
def install(session: nox.Session, distribution: str) -> None:
    """Install the built distribution into a clean environment, and run a benchmark outside the repository."""
    session.install("build")
    folder = Path(session.create_tmp()).resolve()
    session.run("python", "-m", "build", f"--{distribution}", "--outdir", str(folder / "dist"), str(ROOT))
    (built,) = (folder / "dist").glob("*.whl" if distribution == "wheel" else "*.tar.gz")
    session.install(str(built))
    outside = folder / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "quick.toml").write_text(QUICK, encoding="utf-8")
    session.chdir(outside)
    session.run("protgraph", "doctor")
    session.run("protgraph", "bench", "run", "quick.toml", "--overwrite")
