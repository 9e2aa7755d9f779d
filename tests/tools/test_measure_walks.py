"""Walks of parameters through packages that are written for the test."""

from __future__ import annotations

import pytest

from tools import measure_walks

FILES = {
    "low/__init__.py": "",
    "low/files.py": """
def read(path):
    return path

class File:
    def __init__(self, path):
        self.path = read(path)
""",
    "low/sizes.py": """
def size(number):
    return number
""",
    "high/__init__.py": "from protgraph.high.loading import load",
    "high/loading.py": """
from protgraph.low.files import File
from protgraph.low.sizes import size

def load(source, other):
    for name in source:
        _open(name)
    size(other)
    check(source=source)

def _open(text):
    return File(text)

def check(*, source):
    return source
""",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    for name, source in FILES.items():
        path = tmp_path / "protgraph" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (tmp_path / "protgraph" / "__init__.py").write_text("")
    monkeypatch.setattr(measure_walks, "ROOT", tmp_path)
    caches = ("_resolve", "_tree", "_definitions", "_imports", "_imports_of", "_floor")
    for name in caches:
        getattr(measure_walks, name).cache_clear()
    yield tmp_path
    for name in caches:
        getattr(measure_walks, name).cache_clear()


def test_a_parameter_is_followed_through_loops_constructors_and_keywords(package):
    walk = measure_walks.follow("protgraph/high/loading.py:load:source")
    assert walk.stays == ["protgraph.high.loading", "protgraph.low.files", "protgraph.high.loading"]
    assert walk.climbs == 1 and len(walk.modules) == 2


def test_other_parameters_take_other_ways(package):
    walk = measure_walks.follow("protgraph/high/loading.py:load:other")
    assert walk.stays == ["protgraph.high.loading", "protgraph.low.sizes"] and walk.climbs == 0


@pytest.mark.slow
@pytest.mark.parametrize("start", measure_walks.WALKS)
def test_the_walks_of_the_table_are_within_their_limits(start):
    walk, limit = measure_walks.follow(start), measure_walks.WALKS[start]
    assert walk.modules
    assert limit.modules is None or len(walk.modules) <= limit.modules, walk.stays
    assert limit.climbs is None or walk.climbs <= limit.climbs, walk.stays
