"""Folders of user files as datasets, with and without a label table."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import protgraph as pg
from protgraph import registry
from protgraph.data.datasets.labels import align
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, LabelError, UnknownNameError
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels import load_dataset, prepare
from protgraph.labels.loading import check_labels_are_used, resolve_task, tasks_without_labels
from protgraph.registry.component import component
from protgraph.task import builtin
from protgraph.task.contact_prediction import CONTACT
from protgraph.task.language_modeling import MASKED_LM
from protgraph.train import FitConfig, fit

SMALL = ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8", "1fas")
WITHOUT = (
    *("b_factor", "contact", "inverse_folding", "masked_geometry", "masked_lm", "masked_residue_type"),
    *("multiview_contrast", "next_residue", "secondary_structure", "structure_denoising", "structure_prediction"),
)


@pytest.fixture
def folder(tmp_path: Path, structures_dir: Path) -> Path:
    found = tmp_path / "my_structures"
    found.mkdir()
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", found)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("file,size,kind\n" + "".join(f"{name},{i}.5,{'ab'[i % 2]}\n" for i, name in enumerate(SMALL)))
    return path


def get(folder: Path, labels: Path | None = None, task: object = None, **options: object):
    return load_dataset(folder, labels=labels, task=task, cache=folder.parent / "cache", **options)


def test_tasks_without_labels_derive_them_or_restore_inputs():
    assert tasks_without_labels() == list(WITHOUT)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT)
def test_a_task_that_derives_labels_needs_only_a_folder(folder, name):
    data = get(folder, task=name)
    task = resolve_task(name, data)
    assert data.tasks() == [name] and task is registry.tasks.get(name)
    prepared = prepare(data, task, FeaturePlan([]), cache=folder.parent / "cache")
    assert prepared.failures == () and set(prepared.splits) == {"train", "val", "test"}


@pytest.mark.slow
def test_labels_are_derived_by_the_task(folder):
    data = get(folder, task="secondary_structure")
    prepared = prepare(data, builtin.SECONDARY_STRUCTURE, FeaturePlan([]), cache=folder.parent / "cache")
    example = data.examples("secondary_structure", "val")[0]
    expected = builtin.secondary_structure(data.read(example))
    assert prepared.splits["val"][0].y.tolist() == expected.tolist()
    assert {0, 1, 2} >= set(expected.tolist()) - {-1}


def test_a_task_is_a_label_column_or_several_columns_that_are_named(folder, table):
    assert get(folder, table, "size").target("size") == Target("size", "graph", "regression", 1, ("size",))
    assert get(folder, table, "kind").target("kind") == Target("kind", "graph", "classification", 2, ("a", "b"))
    with pytest.raises(LabelError, match="size, kind.*--column"):
        get(folder, table)
    table.write_text("file,ph,kd\n1crn,7,1\n1vii,8,2\n")
    assert get(folder, table, columns=["ph", "kd"]).target("ph+kd").names == ("ph", "kd")
    assert get(folder, table, "ph+kd", columns=["ph", "kd"]).tasks() == ["ph+kd"]
    assert get(folder, table, columns="kd").target("kd").names == ("kd",)
    assert get(folder, table, "kd", kind="classification").target("kd").kind == "classification"
    assert get(folder, table, "ligand_binding", columns="kd").tasks() == ["ligand_binding"]
    table.write_text("file,ph,split\n1crn,7,train\n1vii,8,val\n")
    assert get(folder, table).tasks() == ["ph"]


@pytest.mark.parametrize(
    ("task", "columns", "parts"),
    [
        ("siez", None, ["'siez'", "'size'", "size, kind"]),
        ("secondary_structur", None, ["'secondary_structur'", "'secondary_structure'", "size, kind"]),
        ("ligand_binding", None, ["'ligand_binding'", "size, kind", "--column"]),
        ("aa", ["size"], ["'aa'", "size"]),
        ("nope", None, ["'nope'", "size, kind", "masked_lm"]),
    ],
)
def test_labels_are_never_trained_under_a_misspelled_task(folder, table, task, columns, parts):
    with pytest.raises(UnknownNameError) as error:
        get(folder, table, task, columns=columns)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_a_label_column_has_priority_over_a_task_of_its_name(folder, table):
    table.write_text(table.read_text().replace("size", "b_factor"))
    data = get(folder, table, "b_factor")
    assert data.has_labels and data.target("b_factor").level == "graph"
    with pytest.raises(DatasetError, match="'b_factor'"):
        resolve_task("b_factor", data)


def test_classes_of_a_registered_task_have_its_order(folder, tmp_path):
    """Sorted, the classes of the table are C, E, H; the registered task has H, E, C."""
    rows = "".join(f"1crn,A,{i},{c}\n" for i, c in enumerate("HECC", 1))
    (tmp_path / "ss.csv").write_text("file,chain,res_id,secondary_structure\n" + rows)
    data = get(folder, tmp_path / "ss.csv", "secondary_structure")
    assert data.target("secondary_structure") == builtin.SECONDARY_STRUCTURE.target
    assert align(
        data.labels("secondary_structure", data.examples("secondary_structure")[0]),
        data.read(data.examples("secondary_structure")[0]),
    )[:4].tolist() == [0, 1, 2, 2]
    (tmp_path / "ss.csv").write_text("file,chain,res_id,secondary_structure\n" + rows.replace(",H", ",G"))
    data = get(folder, tmp_path / "ss.csv", "secondary_structure")
    assert data.target("secondary_structure").names == ("C", "E", "G")
    with pytest.raises(DatasetError, match="'secondary_structure'"):
        resolve_task("secondary_structure", data)


def test_a_label_table_that_no_task_uses_is_an_error(folder, table):
    derived, given = get(folder, table, "secondary_structure"), get(folder, table, "kind")
    with pytest.raises(DatasetError, match=r"\(size, kind\): secondary_structure"):
        check_labels_are_used([derived])
    check_labels_are_used([derived, given])
    check_labels_are_used([get(folder, task="secondary_structure"), load_dataset("pdb_core")])
    table.write_text("file,split\n1crn,train\n1vii,val\n")
    check_labels_are_used([get(folder, table, "secondary_structure")])


def test_missing_labels_are_an_error_with_the_tasks_that_need_none(folder, table):
    with pytest.raises(DatasetError, match="'ligand_binding'") as error:
        get(folder, task="ligand_binding")
    assert f"Tasks that need none: {', '.join(WITHOUT)}." in str(error.value)
    with pytest.raises(DatasetError, match="'contct'.*Did you mean 'contact'"):
        get(folder, task="contct")
    with pytest.raises(DatasetError, match="my_structures"):
        get(folder)
    table.write_text("file,split\n1crn,train\n")
    with pytest.raises(DatasetError, match="'mine'.*labels.csv"):
        get(folder, table, "mine")


def test_registered_datasets_have_priority_over_folders(folder, table, monkeypatch):
    monkeypatch.chdir(folder.parent)
    folder.rename("pdb_core")
    assert load_dataset("pdb_core").version == "1.0"
    assert load_dataset("./pdb_core", task="inverse_folding", cache="cache").name == "pdb_core"
    with pytest.raises(DatasetError, match="labels.csv.*'pdb_core'"):
        load_dataset("pdb_core", labels=table)
    with pytest.raises(UnknownNameError, match="'pdb_cor'.*'pdb_core'"):
        load_dataset("pdb_cor")


@pytest.mark.slow
def test_a_protein_without_a_label_is_listed(folder):
    (folder / "some.fasta").write_text(">seq\nMKTAYIAK\n")
    (folder / "broken.cif").write_text("no structure")
    prepared = prepare(get(folder, task=CONTACT), CONTACT, FeaturePlan([]), cache=folder.parent / "cache")
    failures = {failure.protein: failure for failure in prepared.failures}
    assert failures.keys() == {"seq", "broken"}
    assert "'contact'" in failures["seq"].message and "coordinates" in failures["seq"].message
    assert failures["broken"].error_type == "StructureFileError"
    prepared = prepare(get(folder, task=MASKED_LM), MASKED_LM, FeaturePlan([]), cache=folder.parent / "cache")
    assert [failure.protein for failure in prepared.failures] == ["broken"]


@pytest.mark.slow
def test_a_constant_b_factor_is_not_a_label(folder):
    lines = []
    for i in range(1, 9):
        atoms = ((" N  ", 0.0, "N"), (" CA ", 1.5, "C"), (" C  ", 2.5, "C"))
        for j, (name, x, element) in enumerate(atoms):
            place = f"{x + 3.8 * i:8.3f}{0.5 * j:8.3f}{0.3 * i:8.3f}"
            lines.append(f"ATOM  {3 * i + j:5d} {name} ALA A{i:4d}    {place}  1.00 20.00          {element:>2}\n")
    (folder / "model.pdb").write_text("".join(lines) + "END\n")
    prepared = prepare(get(folder, task="b_factor"), builtin.B_FACTOR, FeaturePlan([]), cache=folder.parent / "cache")
    [failure] = prepared.failures
    assert (failure.protein, failure.error_type) == ("model", "DatasetError") and "'b_factor'" in failure.message


@pytest.mark.slow
def test_fit_accepts_a_path_of_a_folder(folder, monkeypatch):
    model = pg.ModelSpec(
        "tiny", features=["dihedral", component("knn", k=8)], layers=[component("embed", reads=["dihedral"], dim=8)]
    )
    config = FitConfig(epochs=1, device="cpu")
    result = fit(model, str(folder), "inverse_folding", config=config, cache=folder.parent / "cache")
    assert result.dataset == "my_structures" and len(result.dataset_version) == 12
    assert sum(proteins for proteins, _ in result.sizes.values()) == len(SMALL)
    mine = replace(builtin.INVERSE_FOLDING, name="mine")
    assert fit(model, folder, mine, config=config, cache=folder.parent / "cache").task is mine
