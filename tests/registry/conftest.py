"""Fixture: an empty registry."""

from __future__ import annotations

import pytest

from protgraph.registry import Registry


@pytest.fixture
def shapes() -> Registry:
    return Registry(kind="shape", group="protgraph.shapes")
