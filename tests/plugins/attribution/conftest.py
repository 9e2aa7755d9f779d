"""Fixtures: a small dataset with a model trained on it."""

from __future__ import annotations

from tests.train.conftest import quick, small, tiny, trained  # noqa: F401 - fixtures
