"""What would be downloaded is replaced by what its component states, and nothing else is."""

from __future__ import annotations

from typing import ClassVar

import pytest

import protgraph as pg
from protgraph.testing import offline_models, subjects
from protgraph.testing.suite import check


class Downloading(pg.GraphLayer):
    """Stands for a layer with published weights."""

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = pg.Conformity(offline={"weights": "none"})

    def __init__(self, fields, *, weights: str = "far", scale: float = 2.0):
        super().__init__(fields)
        if weights == "far":
            raise ConnectionError("no network in tests")
        self.scale = scale
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
        return {"h": f["h"] * self.scale}


@pytest.fixture
def graph():
    pg.layers.register("downloading", Downloading)
    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("downloading", weights="far", scale=3.0)]
    return pg.ModelSpec("m", layers=layers)


def test_stated_options_take_the_place_of_others(graph):
    made = offline_models(graph)
    assert dict(made.layers[1].options) == {"weights": "none", "scale": 3.0}
    assert made.layers[0] == graph.layers[0] and made.name == graph.name
    assert dict(graph.layers[1].options)["weights"] == "far"


def test_other_models_stay_as_they_are():
    graph = pg.models.get("gat")
    assert offline_models(graph) is graph


def test_the_suite_builds_layers_and_models_so(graph):
    for subject in (*subjects("downloading"), *subjects(graph)):
        assert all(result.ok for result in check(subject)), subject
