"""Proteins for which a model gives NaN are failures that name the component; the others are predicted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.checkpoint import Checkpoint
from protgraph.errors import ComponentError
from protgraph.inference import embed, predict

TARGETS = {
    "classes": pg.Target("helix", "node", "classification", 2),
    "yes_no": pg.Target("site", "node", "multilabel", 1),
    "number": pg.Target("stability", "graph", "regression", 1),
}


@pytest.fixture
def files(structures_dir):
    """Return files of 46, 76 and 64 residues."""
    return [structures_dir / f"{name}.bcif" for name in ("1crn", "1ubq", "1orc")]


def network(target: pg.Target) -> pg.ProteinModel:
    """Return a model whose layer gives NaN for more than 70 residues, in all rows of the batch."""

    @pg.layers.register("nan_for_long", replace=True)
    class NanForLong(pg.GraphLayer):
        reads, writes = ("h",), ("h",)

        def __init__(self, fields):
            super().__init__(fields)
            self.declare(h=fields["h"].irreps)

        def forward(self, f):
            return {"h": f["h"] * (float("nan") if len(f["h"]) > 70 else 1.0)}

    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("nan_for_long")]
    return pg.build_model(pg.ModelSpec("acme", ["knn"], layers), target, seed=0)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_protein_with_nan_is_a_failure_and_the_others_are_predicted(target, files):
    checkpoint = Checkpoint(model=network(target), task="helix")
    for result in (predict(checkpoint, files, device="cpu"), embed(checkpoint, files, device="cpu")):
        (failure,) = result.failures
        assert (failure.source, failure.error_type) == (str(files[1]), ComponentError.__name__)
        assert all(part in failure.message for part in ("layer 'nan_for_long'", "test_finite_output.py:", "1ubq"))
    assert list(result.files) == [str(files[0]), str(files[2])] and np.isfinite(result.node).all()
    rows = predict(checkpoint, files, device="cpu").rows
    assert rows == [row for file in files[::2] for row in predict(checkpoint, [file], device="cpu").rows]


def test_a_weight_that_is_nan_is_named(files):
    model = network(TARGETS["classes"])
    name = next(name for name, _ in model.named_parameters() if name.startswith("head"))
    with torch.no_grad():
        dict(model.named_parameters())[name][:] = torch.nan
    result = predict(Checkpoint(model=model, task="helix"), files[:1], device="cpu")
    assert not result.rows and [name in f.message for f in result.failures] == [True]
