"""Fixtures: an empty registry, and temporary distributions."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from protgraph.registry import Registry


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


@pytest.fixture
def shapes() -> Registry:
    return Registry(kind="shape", group="protgraph.shapes")
