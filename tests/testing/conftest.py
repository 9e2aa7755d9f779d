"""The twins are no tests: ``test_broken_twins`` loads them."""

from __future__ import annotations

collect_ignore_glob = ["[!t]*_twins.py"]
