"""Fixtures for real data, and the count of skipped tests by reason (``--check-skips``)."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import torch

from protgraph.registry import registries

ROOT = Path(__file__).resolve().parents[1]


def _shared(part: str) -> Path:
    folder = Path(os.environ.get("PROTGRAPH_SHARED_DATA", ROOT.parent / "shared" / "data"))
    return folder if part == "data" else folder.parent / part


@pytest.fixture(scope="session")
def structures_dir() -> Path:
    """Folder of the 259 committed PDB entries, BinaryCIF."""
    return ROOT / "datasets" / "pdb_core" / "structures"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of larger real data; skips where it is missing."""
    folder = _shared("data")
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set PROTGRAPH_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """Folder of reference networks' test vectors; skips where it is missing."""
    folder = _shared("reference")
    if not folder.is_dir():
        pytest.skip(f"no reference vectors at {folder} (set PROTGRAPH_SHARED_DATA)")
    return folder


@pytest.fixture
def float64():
    """Run a test with float64 as the default floating type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield torch.float64
    torch.set_default_dtype(before)


@pytest.fixture(autouse=True)
def _names_of_one_test():
    """Remove what a test registers after it, since other tests iterate over whole registries."""
    before = {registry: dict(registry._session) for registry in registries.values()}
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
