"""Where tests find real data: the committed structures always, the larger shared folders where they are."""

from __future__ import annotations

import os
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
    """What a test registers is gone after it: other tests go through whole registries."""
    before = {registry: dict(registry._session) for registry in registries.values()}
    yield
    for registry, names in before.items():
        registry._session.clear()
        registry._session.update(names)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, none is here")
