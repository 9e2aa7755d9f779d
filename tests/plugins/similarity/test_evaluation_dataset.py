"""Evaluation on other datasets: their splits are added, and homologs are not trained on."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.recipes import Recipe

import protgraph as pg
from protgraph.errors import DatasetError
from protgraph.labels import load_dataset
from protgraph.labels.evaluation_dataset import Evaluation, add_evaluations, combine_evaluations

TASK = "secondary_structure"
BASE = {"1crn": "train", "2erl": "train", "1ubq": "train", "1a8o": "val", "1fas": "val", "5pti": "test"}


def folder_dataset(folder: Path, structures: Path, splits: dict[str, str], task: str = TASK) -> pg.Dataset:
    (folder / "files").mkdir(parents=True)
    for name in splits:
        shutil.copy(structures / f"{name}.bcif", folder / "files")
    table = ["file,split", *(f"{name}.bcif,{split}" for name, split in splits.items())]
    (folder / "splits.csv").write_text("\n".join(table) + "\n")
    return load_dataset(folder / "files", labels=folder / "splits.csv", task=task)


@pytest.fixture
def base(tmp_path, structures_dir) -> pg.Dataset:
    return folder_dataset(tmp_path / "base", structures_dir, BASE)


def test_without_evaluations_the_dataset_is_the_same(base):
    assert add_evaluations(base, TASK, []) == (base, "")


def test_homologs_of_the_evaluated_proteins_are_left_out(base, tmp_path, structures_dir):
    other = folder_dataset(
        tmp_path / "other", structures_dir, {"1ubi": "test", "1bpi": "test", "1orc": "val", "1y0m": "train"}
    )
    dataset, text = add_evaluations(base, TASK, [Evaluation(other, TASK)], cache=tmp_path)
    found = {example.id.split(".")[0]: example.split for example in dataset.examples(TASK)}
    assert found == {k: v for k, v in BASE.items() if k != "1ubq"} | {
        "files:1ubi": "files_test",
        "files:1bpi": "files_test",  # homolog of 5pti, which is not trained on
        "files:1orc": "files_val",
        "files:1y0m": "files_train",
    }
    assert "1 of 3 proteins of train, 0 of 2 of val" in text
    assert dataset.version != base.version
    assert dataset.splits(TASK)[:3] == ["train", "val", "test"]


def test_labels_are_those_of_the_own_dataset():
    base = pg.load_dataset("pdb_core")
    pair = Evaluation(base, "interface")
    dataset = combine_evaluations(base, "ligand_binding", [pair], [])
    first = pair.examples[0]
    own, theirs = dataset.labels("ligand_binding", pair.renamed(first)), base.labels("interface", first)
    np.testing.assert_array_equal(own.values, theirs.values)
    example = base.examples("ligand_binding")[0]
    np.testing.assert_array_equal(
        dataset.labels("ligand_binding", example).values, base.labels("ligand_binding", example).values
    )


def test_a_task_of_another_kind_is_refused(base, tmp_path, structures_dir):
    other = folder_dataset(tmp_path / "other", structures_dir, {"1orc": "train", "1y0m": "test"}, "b_factor")
    with pytest.raises(DatasetError, match="b_factor"):
        add_evaluations(base, TASK, [Evaluation(other, "b_factor")], cache=tmp_path)


def test_a_recipe_with_an_unknown_key_of_an_evaluation_is_refused():
    plain = {"name": "m", "summary": "S.", "dataset": "pdb_core", "task": TASK, "models": ["gcn"]}
    with pytest.raises(pg.errors.OptionError, match="evaluate"):
        Recipe.from_dict(plain | {"evaluate": [{"dataset": "pdb_core"}]})
