"""Predictions as colors: the values of :func:`protgraph.train.predict` for the file, ligands included."""

from __future__ import annotations

import numpy as np

from protgraph.model.build import build_model
from protgraph.structure import ReadOptions
from protgraph.structure.io import read_residues
from protgraph.task import builtin
from protgraph.train import predict
from protgraph.train.checkpoint import Checkpoint
from protgraph.view import prediction_colors


def test_colors_of_a_model_that_reads_ligands_are_its_predictions_for_the_file(structures_dir):
    path, task = structures_dir / "2erl.bcif", builtin.INVERSE_FOLDING.for_decoder()
    checkpoint = Checkpoint(
        model=build_model("ligandmpnn", task.target, seed=0), task=task.name, hidden=task.inputs.hidden, one_chain=False
    )
    expected = predict(checkpoint, path, device="cpu")
    plain, bound = (read_residues(path, ReadOptions().with_ligands(ligands)) for ligands in (False, True))
    colors = prediction_colors(checkpoint, bound)
    name = expected.columns[-1]
    values = [row[-1] for row in expected.rows]
    np.testing.assert_array_equal(colors[name].values, values)
    assert not np.array_equal(prediction_colors(checkpoint, plain)[name].values, values)
