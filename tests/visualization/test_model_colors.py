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
from protgraph.visualization import attention_edges, prediction_colors, view


def test_colors_of_a_model_that_reads_ligands_are_its_predictions_for_the_file(structures_dir):
    path, task = structures_dir / "2erl.bcif", builtin.INVERSE_FOLDING.for_decoder()
    checkpoint = Checkpoint(
        model=build_model("ligandmpnn", task.target, seed=0), task=task.name, hidden=task.inputs.hidden, one_chain=False
    )
    expected = predict(checkpoint, path, device="cpu")
    plain, bound = (read_residues(path, ReadOptions().with_ligands(ligands)) for ligands in (False, True))
    colors, _ = prediction_colors(checkpoint, bound)
    name = expected.columns[-1]
    values = [row[-1] for row in expected.rows]
    np.testing.assert_array_equal(colors[name].values, values)
    assert not np.array_equal(prediction_colors(checkpoint, plain)[0][name].values, values)


def test_warnings_of_the_prediction_are_notes_of_the_scene(structures_dir, tmp_path):
    residues = read_residues(structures_dir / "1crn.bcif")
    lines = [
        f"ATOM  {i + 1:5d}  CA  {name} A{i + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C"
        for i, (name, (x, y, z)) in enumerate(zip(residues.res_name, residues.pos.tolist(), strict=True))
    ]
    (tmp_path / "trace.pdb").write_text("\n".join(lines) + "\n")
    notes = [view(one, prediction="dna_site").notes for one in (tmp_path / "trace.pdb", residues)]
    assert [any("CA atoms only" in note for note in found) for found in notes] == [True, False]


def test_attention_of_a_model_that_reads_types_depends_on_them(structures_dir):
    task = registry.tasks.get("masked_lm")
    residues = read_residues(structures_dir / "1crn.bcif")
    checkpoint = Checkpoint(
        model=build_model("bert", task.target, seed=0), task=task.name, hidden=task.inputs.hidden, visible_types=True
    )
    mutated = replace(residues, aatype=np.roll(residues.aatype, 1))
    edges, others = (attention_edges(checkpoint, protein) for protein in (residues, mutated))
    assert not np.array_equal(edges.pairs, others.pairs)
