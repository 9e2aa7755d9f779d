"""Predictions and labels as colors: the values of :func:`protgraph.predict`, labels by residue, and their agreement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.view import Color, agreement, attention_edges, label_color, prediction_colors, view

import protgraph as pg
from protgraph import registry
from protgraph.checkpoint import Checkpoint
from protgraph.errors import LabelError
from protgraph.inference import predict
from protgraph.model import build_model
from protgraph.structure import ReadOptions, Residues
from protgraph.structure.io import read_residues
from protgraph.task import builtin


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


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def residues(structures_dir: Path) -> Residues:
    return pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))


def write_labels(folder: Path, *columns: str) -> Path:
    """Write yes/no labels of residues 1 to 40 of crambin, yes for even numbers, and of a residue 900."""
    rows = [f"1crn,A,{i}{f',{1 - i % 2}' * len(columns)}" for i in (*range(1, 41), 900)]
    (folder / "labels.csv").write_text("\n".join([f"file,chain,res_id,{','.join(columns)}", *rows]) + "\n")
    return folder / "labels.csv"


def test_labels_are_those_of_the_residues_and_missing_ones_are_nan(residues: Residues, tmp_path: Path) -> None:
    color, notes = label_color(write_labels(tmp_path, "site"), residues)
    np.testing.assert_array_equal(color.values, [*((1 - np.arange(1, 41) % 2).tolist()), *[np.nan] * 6])
    assert (color.name, color.labels) == ("site", ("no", "yes"))
    assert len(notes) == 1 and "A:900" in notes[0]


def test_one_of_several_columns_has_to_be_chosen(residues: Residues, tmp_path: Path) -> None:
    table = write_labels(tmp_path, "site", "exposed")
    with pytest.raises(LabelError) as caught:
        label_color(table, residues)
    message = str(caught.value)
    assert "site, exposed" in message and "--label (label=)" in message
    assert "--task" not in message and "columns=" not in message
    assert label_color(table, residues, column="exposed")[0].name == "exposed"


def test_agreement_has_the_four_cases_of_yes_no_labels() -> None:
    label = Color("site", np.array([0, 0, 1, 1, np.nan]), ("no", "yes"))
    predicted = Color("predicted", np.array([0.0, 1, 0, 1, 1]))
    found = agreement(label, [predicted])
    texts = [found.value_text(i) for i in range(5)]
    assert texts == ["true negative", "false positive", "false negative", "true positive", "none"]
    assert agreement(label, [Color("p_site", np.zeros(5))]) is None
