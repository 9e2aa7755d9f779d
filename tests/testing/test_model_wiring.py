"""Downloaded parts of a model are replaced by the options that their components state; nothing else changes."""

from __future__ import annotations

from typing import ClassVar

import pytest

import protgraph as pg
from protgraph.testing import check_component, find_components, offline_models


class Downloading(pg.GraphLayer):
    """A layer with published weights."""

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = pg.data.Conformity(offline={"weights": "none"})

    def __init__(self, fields, *, weights: str = "far", scale: float = 2.0):
        super().__init__(fields)
        if weights == "far":
            raise ConnectionError("no network in tests")
        self.scale = scale
        self.declare(h=fields["h"].irreps)

    def forward(self, f):
        return {"h": f["h"] * self.scale}


@pytest.fixture
def spec():
    pg.layers.register("downloading", Downloading)
    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("downloading", weights="far", scale=3.0)]
    return pg.ModelSpec("m", layers=layers)


def test_stated_options_take_the_place_of_others(spec):
    offline = offline_models(spec)
    assert dict(offline.layers[1].options) == {"weights": "none", "scale": 3.0}
    assert offline.layers[0] == spec.layers[0] and offline.name == spec.name
    assert dict(spec.layers[1].options)["weights"] == "far"


def test_other_models_stay_as_they_are():
    spec = pg.models.get("gat")
    assert offline_models(spec) is spec


@pytest.mark.slow
def test_the_suite_builds_layers_and_models_with_offline_options(spec):
    for component in (*find_components("downloading"), *find_components(spec)):
        assert all(report.ok for report in check_component(component)), component
