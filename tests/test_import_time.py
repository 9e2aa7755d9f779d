"""Cost of importing protgraph, listing components and printing help."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from protgraph.cli.app import COMMANDS
from protgraph.deferred_imports import deferred_names

HEAVY = ("torch", "numpy", "e3nn", "biotite", "torch_geometric", "lightning", "pandas", "matplotlib")
IMPORT_SECONDS = 0.01  # processor time; measured 0.001 to 0.003
LIST_SECONDS = 0.6  # a third of it is pydantic, which typer imports (0.29, Python 3.13.0)


def python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def heavy_after(code: str) -> str:
    return python(f"{code}\nimport sys\nprint('loaded', [m for m in {HEAVY} if m in sys.modules])").splitlines()[-1]


def after_command(*args: str) -> str:
    call = f"try:\n    main({list(args)})\nexcept SystemExit as e:\n    assert not e.code"
    return heavy_after(f"from protgraph.cli.app import main\n{call}")


EACH_IN_A_COPY = f"""
import contextlib, os, sys
from protgraph.cli.app import COMMANDS, main
for command in COMMANDS:
    if not os.fork():
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):
            main([command, "--help"])
        print(command, [m for m in {HEAVY} if m in sys.modules], flush=True)
        os._exit(0)
    os.wait()
"""
"""Program that prints the help of each command in a copy of one process, and which heavy modules that has loaded."""


def test_import_costs_milliseconds() -> None:
    code = "import time; t = time.process_time(); import protgraph; print(time.process_time() - t)"
    assert any(float(python(code)) < IMPORT_SECONDS for _ in range(5))


def test_import_loads_nothing_heavy() -> None:
    assert heavy_after("import protgraph") == "loaded []"


def test_dir_and_failing_access_load_nothing_heavy() -> None:
    assert heavy_after("import protgraph as pg\ndir(pg)\nhasattr(pg, 'nothing')") == "loaded []"


@pytest.mark.parametrize("args", [["list"], ["list", "layers"], ["--help"], ["--version"]], ids=" ".join)
def test_listing_and_help_load_nothing_heavy(args: list[str]) -> None:
    assert after_command(*args) == "loaded []"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot copy a process")
def test_help_of_every_command_loads_nothing_heavy() -> None:
    assert python(EACH_IN_A_COPY).splitlines() == [f"{command} []" for command in COMMANDS]


@pytest.mark.slow
@pytest.mark.parametrize("args", [["data", "list"], ["data", "info", "ligysis"]], ids=" ".join)
def test_cards_of_datasets_load_neither_torch_nor_pandas(args: list[str]) -> None:
    loaded = after_command(*args)
    assert "torch" not in loaded and "pandas" not in loaded and "lightning" not in loaded


def test_list_takes_less_than_six_tenths_of_a_second() -> None:
    def seconds() -> float:  # processor time does not depend on other processes
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python("from protgraph.cli.app import main; main(['list'])")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert any(seconds() < LIST_SECONDS for _ in range(5))


def loaded_by(arguments: list[str], unused: tuple[str, ...]) -> str:
    """Return the modules of ``unused`` that a command loads."""
    call = f"try:\n    main({arguments})\nexcept SystemExit as e:\n    assert not e.code"
    code = f"from protgraph.cli.app import main\n{call}\nimport sys\nprint([m for m in {unused} if m in sys.modules])"
    return python(code).splitlines()[-1]


#: With another torch, its import loads what is deferred.
IS_TORCH_DEFERRED = any(name.startswith("torch.") for name in deferred_names(version("torch")))
DEFERRED = ("sympy", "torch._dynamo.utils") if IS_TORCH_DEFERRED else ()
UNUSED = ("e3nn", "lightning", "pandas", *DEFERRED, "torchmetrics", "transformers")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ligand_site", "secondary_structure"])
def test_predict_by_name_loads_no_part_that_it_does_not_use(name: str, tmp_path: Path, structures_dir: Path) -> None:
    arguments = ["predict", name, str(structures_dir / "1ubq.bcif"), "-o", str(tmp_path / "o.csv"), "--device", "cpu"]
    assert loaded_by(arguments, UNUSED) == "[]"


@pytest.mark.slow
@pytest.mark.usefixtures("proteinmpnn_folder")
def test_a_scan_with_its_heat_map_loads_no_part_that_it_does_not_use(tmp_path: Path, structures_dir: Path) -> None:
    arguments = ["scan", str(structures_dir / "1ubq.bcif"), "--positions", "A:1-4", "-o", str(tmp_path / "o.csv")]
    arguments += ["--model", "proteinmpnn.v_48_020"]
    assert loaded_by(arguments, (*UNUSED, "scipy.stats", "scipy.optimize")) == "[]"
    assert (tmp_path / "o.png").is_file()
