"""Collect no tests from the twins: ``test_broken_twins`` imports them."""

from __future__ import annotations

collect_ignore_glob = ["[!t]*_twins.py"]
