"""Fixtures: a small dataset and a model that is trained on it."""

from __future__ import annotations

from tests.train.conftest import quick, small, tiny, trained

__all__ = ["quick", "small", "tiny", "trained"]
