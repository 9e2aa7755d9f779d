"""Fixtures: the command line, a small dataset and a model that is trained on it."""

from __future__ import annotations

from tests.cli.conftest import run
from tests.train.conftest import quick, small, tiny, trained

__all__ = ["quick", "run", "small", "tiny", "trained"]
