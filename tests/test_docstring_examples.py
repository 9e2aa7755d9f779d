"""Examples in docstrings of the plugins and datasets; pytest collects those of ``protgraph`` itself."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import protgraph_datasets
import protgraph_plugins
import pytest


def modules() -> Iterator[str]:
    for package in (protgraph_plugins, protgraph_datasets):
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        yield from (m.name for m in found if ".template" not in m.name)


@pytest.mark.slow
def test_examples_of_plugins_and_datasets_run() -> None:
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = {name: doctest.testmod(importlib.import_module(name), optionflags=options) for name in modules()}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 3
