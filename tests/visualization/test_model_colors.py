"""Predictions as colors: the values of :func:`protgraph.train.predict` for the file, ligands included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from protgraph import registry
from protgraph.model.build import build_model
from protgraph.structure import ReadOptions
from protgraph.structure.io import read_residues
from protgraph.task import builtin
from protgraph.train import predict
from protgraph.train.checkpoint import Checkpoint
from protgraph.visualization import attention_edges, prediction_colors


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


def test_attention_of_a_model_that_reads_types_depends_on_them(structures_dir):
    task = registry.tasks.get("masked_lm")
    residues = read_residues(structures_dir / "1crn.bcif")
    checkpoint = Checkpoint(
        model=build_model("bert", task.target, seed=0), task=task.name, hidden=task.inputs.hidden, visible_types=True
    )
    mutated = replace(residues, aatype=np.roll(residues.aatype, 1))
    edges, others = (attention_edges(checkpoint, protein) for protein in (residues, mutated))
    assert not np.array_equal(edges.pairs, others.pairs)
