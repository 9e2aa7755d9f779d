"""Collect no tests from the twins: ``test_broken_twins`` imports them."""

from __future__ import annotations

from pathlib import Path

# Importing a module of twins a second time would register each twin twice.
collect_ignore = [path.name for path in Path(__file__).parent.glob("*_twins.py") if not path.name.startswith("test_")]
