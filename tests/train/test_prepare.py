"""Preparation: graphs and labels, hidden information, the cache, failures and errors."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import registry
from protgraph.data.cache_key import code_digest
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.labels import ResidueLabels
from protgraph.data.datasets.target import Target
from protgraph.data.store.store_description import shard_path
from protgraph.errors import DatasetError, LabelError, LeakError
from protgraph.featurize.base import StructureFeaturizer
from protgraph.featurize.plan import FeaturePlan
from protgraph.labels.loading import load_dataset, resolve_task
from protgraph.labels.preparation import prepare
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.structure.io import sources
from protgraph.task import builtin, default_task

FEATURES = ["dihedral", component("knn", k=8)]


@pytest.fixture
def plan() -> FeaturePlan:
    return FeaturePlan(FEATURES)


@pytest.mark.slow
def test_prepared_graphs_have_the_features_and_labels_of_the_files(small, plan, structures_dir, tmp_path):
    task = resolve_task("helix", small)
    prepared = prepare(small, task, plan, cache=tmp_path)
    assert {split: len(store) for split, store in prepared.splits.items()} == {"train": 8, "val": 2, "test": 2}
    assert prepared.failures == ()
    assert prepared.one_chain
    store = prepared.splits["train"]
    graph = store[store.names.index("1hf9_B")]
    residues = clean(load_structure(structures_dir / "1hf9.bcif"), chains=("B",))
    expected = plan.precompute(residues)
    for name in list(expected.keys()):
        if isinstance(expected[name], torch.Tensor):
            assert torch.equal(graph[name].nan_to_num(), expected[name].nan_to_num()), name
    assert graph.y.tolist() == small.helix(residues).tolist()
    assert graph.residue_ids.tolist() == residues.ids
    assert prepared.sizes["test"] == (2, 64 + 58)


@pytest.mark.slow
def test_a_second_preparation_uses_the_cached_graphs(small, plan, tmp_path, monkeypatch):
    task = resolve_task("helix", small)
    first = prepare(small, task, plan, cache=tmp_path)

    def refuse(*args):
        raise AssertionError("read again")

    monkeypatch.setattr(sources, "load_structure", refuse)
    monkeypatch.setattr(FeaturePlan, "precompute", refuse)
    second = prepare(small, task, FeaturePlan(FEATURES), cache=tmp_path)
    assert [s.path for s in second.splits.values()] == [s.path for s in first.splits.values()]


@pytest.mark.slow
def test_a_file_is_read_once_for_all_its_chains(small, plan, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(sources, "load_structure", lambda f, **o: read.append(f.path) or load_structure(f, **o))
    prepare(small, resolve_task("helix", small), plan, cache=tmp_path)
    assert len(read) == len(set(read)) == 11


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "val"])
def test_chains_are_single_if_those_of_training_are(split, small, plan, structures_dir, tmp_path):
    other = type(small)(structures_dir, {"train": ("1crn_A",), "val": ("1ubq_A",)})
    two = Example("1hf9", structures_dir / "1hf9.bcif", ("A", "B"), split)
    other._examples = [*(e for e in other._examples if e.split != split), two]
    prepared = prepare(other, resolve_task("helix", other), plan, cache=tmp_path)
    assert prepared.splits[split][0].chain.max() == 1
    assert prepared.one_chain == (split == "val")


@pytest.mark.slow
def test_a_fasta_file_is_opened_once_for_fingerprints_and_once_for_graphs(tmp_path, opened_files):
    rng = np.random.default_rng(0)
    path = tmp_path / "files" / "many.fasta"
    path.parent.mkdir()
    path.write_text("".join(f">p{i}\n{''.join(rng.choice(list('ACDEFGHIKL'), 30))}\n" for i in range(12)))
    opened_files.clear()
    dataset = load_dataset(path.parent, task="masked_lm", cache=tmp_path)
    prepared = prepare(dataset, resolve_task("masked_lm", dataset), FeaturePlan(["residue_one_hot"]), cache=tmp_path)
    assert sum(proteins for proteins, _ in prepared.sizes.values()) == 12
    assert opened_files.count(str(path)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("change", ["options", "task", "labels", "split"])
def test_a_change_of_any_input_gives_other_graphs(change, small, plan, structures_dir, tmp_path):
    task = resolve_task("helix", small)
    first = prepare(small, task, plan, cache=tmp_path).splits["train"]
    other = small
    if change == "options":
        plan = FeaturePlan(["dihedral", component("knn", k=9)])
    elif change == "task":
        task = resolve_task("buried", small)
    elif change == "split":
        other = type(small)(structures_dir, {"train": ("1crn_A",), "val": ("1ubq_A",)})
    else:
        other = type(small)(structures_dir)
        given = other.labels

        def changed(task, example):
            found = given(task, example)
            return ResidueLabels(found.chain, found.res_id, found.ins_code, 1 - found.values.clip(0), found.name)

        other.labels = changed
    second = prepare(other, task, plan, cache=tmp_path).splits["train"]
    assert second.path != first.path
    if change == "labels":
        assert not torch.equal(second[0].y, first[0].y)


@pytest.mark.slow
def test_graphs_of_an_edited_featurizer_are_computed_again(small, tmp_path, monkeypatch):
    plan = FeaturePlan(FEATURES)
    first = prepare(small, resolve_task("helix", small), plan, cache=tmp_path)
    monkeypatch.setattr(sys.modules["protgraph.labels.preparation"], "component_digest", lambda component: "edited")
    second = prepare(small, resolve_task("helix", small), plan, cache=tmp_path)
    assert second.splits["train"].path != first.splits["train"].path


SEEN: dict[str, list] = {}


class SpyForPrepare(StructureFeaturizer):
    """Record its inputs in ``SEEN``."""

    writes = ("b_factor",)

    def __call__(self, residues):
        SEEN.setdefault("types", []).extend(residues.res_name.tolist())
        SEEN.setdefault("aatype", []).extend(residues.aatype.tolist())
        SEEN.setdefault("atoms", []).extend(residues.atom_name.tolist())
        SEEN.setdefault("b", []).extend(residues.b_factor.tolist())
        return {"b_factor": residues.b_factor[:, None]}


@pytest.mark.parametrize("feature", ["dssp", "dssp_hydrogen_bond"])
def test_a_featurizer_that_computes_the_label_is_an_error(small, tmp_path, feature):
    with pytest.raises(LeakError, match=rf"'secondary_structure'.*'{feature}'"):
        prepare(small, builtin.SECONDARY_STRUCTURE, FeaturePlan(["dihedral", feature]), cache=tmp_path)


@pytest.mark.slow
def test_featurizers_of_plugins_get_no_hidden_information(small, tmp_path):
    SEEN.clear()
    registry.featurizers.register("spy_for_prepare", SpyForPrepare)
    task = resolve_task("inverse_folding", small)
    prepared = prepare(small, task, FeaturePlan(["spy_for_prepare"]), cache=tmp_path)
    assert task is builtin.INVERSE_FOLDING
    assert len(SEEN["types"]) == sum(n for _, n in prepared.sizes.values())
    assert set(SEEN["types"]) == {"UNK"}
    assert set(SEEN["aatype"]) == {20}
    assert set(SEEN["atoms"]) <= {"N", "CA", "C", "O"}
    assert set(SEEN["b"]) == {0.0}
    graph = prepared.splits["train"][0]
    assert set(graph.aatype.tolist()) == {20}
    assert len(set(graph.y.tolist())) > 5


@pytest.mark.slow
def test_graphs_of_a_featurizer_without_source_are_not_cached(small, tmp_path):
    space: dict = {"__name__": "__main__", "StructureFeaturizer": StructureFeaturizer}
    code = """
class Typed(StructureFeaturizer):
    writes = ("b_factor",)
    def __call__(self, residues):
        return {"b_factor": residues.b_factor[:, None] * 0 + 7}
"""
    exec(code, space)
    registry.featurizers.register("typed_for_prepare", space["Typed"])
    prepared = prepare(small, resolve_task("helix", small), FeaturePlan(["typed_for_prepare"]), cache=tmp_path)
    assert prepared.splits["val"][0].b_factor.unique().tolist() == [7.0]
    assert not (tmp_path / "graphs").exists()


@pytest.mark.slow
def test_graphs_are_stale_after_an_edit_of_code(small, tmp_path, monkeypatch):
    package = tmp_path / "edited_for_prepare"
    package.mkdir()
    body = """from protgraph import StructureFeaturizer
class Edited(StructureFeaturizer):
    writes = ("b_factor",)
    def __call__(self, residues):
        return {"b_factor": residues.b_factor[:, None] * 0 + 7}
"""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package.name, raising=False)
    (package / "__init__.py").write_text(body)
    registry.featurizers.register("edited", importlib.import_module(package.name).Edited)
    paths = []
    for text in (body, body.replace("+ 7", "+ 8")):
        (package / "__init__.py").write_text(text)
        code_digest.cache_clear()
        prepared = prepare(small, resolve_task("helix", small), FeaturePlan(["edited"]), cache=tmp_path / "cache")
        paths.append(prepared.splits["train"].path)
    assert body != text and paths[0] != paths[1]


@pytest.mark.slow
def test_broken_files_are_listed_and_the_others_continue(small, structures_dir, plan, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("1crn", "1ubq", "2erl"):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    (folder / "text.bcif").write_text("not a structure")
    chains = {"train": ("1crn_A", "text_A", "gone_A"), "val": ("1ubq_A", "2erl_Z")}
    mixed = type(small)(folder, chains)
    prepared = prepare(mixed, builtin.INVERSE_FOLDING, plan, cache=tmp_path / "kept")
    assert {split: store.names for split, store in prepared.splits.items()} == {"train": ["1crn_A"], "val": ["1ubq_A"]}
    assert [f.protein for f in prepared.failures] == ["text_A", "gone_A", "2erl_Z"]
    assert "'Z'" in prepared.failures[2].reason
    again = prepare(mixed, builtin.INVERSE_FOLDING, plan, cache=tmp_path / "kept")
    assert again.failures == prepared.failures


@pytest.mark.slow
def test_an_error_of_a_featurizer_fails_one_protein(small, tmp_path):
    class Picky(StructureFeaturizer):
        writes = ("b_factor",)

        def __call__(self, residues):
            if len(residues) < 41:
                raise ZeroDivisionError("too short")
            return {"b_factor": residues.b_factor[:, None]}

    registry.featurizers.register("picky_for_prepare", Picky)
    prepared = prepare(small, resolve_task("helix", small), FeaturePlan(["picky_for_prepare"]), cache=tmp_path)
    [failure] = prepared.failures
    assert (failure.protein, failure.error_type) == ("2erl_A", "ComponentError")
    for part in ("'picky_for_prepare'", "'2erl'", "ZeroDivisionError: too short", "test_prepare.py:"):
        assert part in failure.reason


def test_labels_of_absent_residues_are_an_error_with_their_names(small, plan, tmp_path):
    broken = type(small)(small.examples("helix")[0].path.parent)
    chain, number, code = np.array(["A", "A"]), np.array([1, 900]), np.array(["", "B"])
    broken.labels = lambda task, example: ResidueLabels(chain, number, code, np.array([0, 1]), example.id)
    with pytest.raises(LabelError, match="1crn_A A:900B"):
        prepare(broken, resolve_task("helix", small), plan, cache=tmp_path)


def test_no_training_protein_is_an_error_with_the_first_failure(small, plan, tmp_path):
    empty = type(small)(tmp_path, {"train": ("aaaa_A", "bbbb_A")})
    with pytest.raises(DatasetError, match="'inverse_folding'.*2 proteins of split 'train'.*aaaa"):
        prepare(empty, builtin.INVERSE_FOLDING, plan, cache=tmp_path)


@pytest.mark.slow
def test_damaged_prepared_data_are_computed_again(small, plan, tmp_path):
    task = resolve_task("helix", small)
    store = prepare(small, task, plan, cache=tmp_path).splits["train"]
    expected = store[0].y.clone()
    shard_path(store.path, store.shards[0].key).write_bytes(b"")
    assert torch.equal(prepare(small, task, plan, cache=tmp_path).splits["train"][0].y, expected)


@pytest.mark.slow
def test_the_graphs_of_the_first_of_two_concurrent_writers_are_kept(small, plan, tmp_path, monkeypatch):
    task, replace_file = resolve_task("helix", small), os.replace

    def overtaken(source, target):
        if target.parent.name == "graphs":
            shutil.copytree(source, target)
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", overtaken)
    prepared = prepare(small, task, plan, cache=tmp_path)
    assert len(prepared.splits["train"]) == 8
    assert len(list((tmp_path / "graphs").iterdir())) == 1


@pytest.mark.slow
def test_a_dataset_may_read_its_proteins_itself(small, plan, structures_dir, tmp_path):
    class OwnReader(type(small)):
        def read(self, example: Example):
            return clean(load_structure(structures_dir / f"{example.path.stem}.bcif"), chains=example.chains)

    own = OwnReader(tmp_path)  # a folder without files
    there = {example.id: example for example in small.examples("helix")}
    own.labels = lambda task, example: small.labels(task, there[example.id])
    prepared = prepare(own, resolve_task("helix", small), plan, cache=tmp_path)
    assert prepared.failures == ()
    assert len(prepared.splits["train"]) == 8


@pytest.mark.slow
def test_progress_counts_every_protein(small, plan, tmp_path):
    calls = []
    prepare(
        small, resolve_task("helix", small), plan, cache=tmp_path, progress=lambda done, of: calls.append((done, of))
    )
    assert calls == [(i, 12) for i in range(1, 13)]


def test_registered_names_are_resolved_to_datasets_and_tasks(small):
    registry.datasets.register("small_for_prepare", small)
    assert load_dataset("small_for_prepare") is small
    assert load_dataset(small) is small
    assert resolve_task("inverse_folding", small) is builtin.INVERSE_FOLDING
    assert resolve_task("size", small).monitor == "rmse"


def test_another_target_under_a_registered_name_is_an_error(small):
    other = type(small)(small.examples("helix")[0].path.parent)
    other.target = lambda task: small.target("helix")
    with pytest.raises(DatasetError, match="'inverse_folding'"):
        resolve_task("inverse_folding", other)


@pytest.mark.slow
def test_several_processes_read_the_same_residues(small, plan, tmp_path, monkeypatch):
    task = resolve_task("helix", small)
    alone = prepare(small, task, plan, cache=tmp_path / "one")
    monkeypatch.setattr(sources, "load_structure", lambda *args, **options: pytest.fail("read in this process"))
    several = prepare(small, task, plan, cache=tmp_path / "two", jobs=2)
    for a, b in zip(alone.splits["train"], several.splits["train"], strict=True):
        assert torch.equal(a.pos, b.pos)
        assert torch.equal(a.y, b.y)


@pytest.mark.slow
def test_another_derivation_of_labels_gives_other_graphs(small, tiny, tmp_path):
    def counting(by):
        def derive(residues):
            return np.full((len(residues), 1), by, np.float32)

        return derive

    plan = FeaturePlan(tiny.features)
    usual = replace(default_task(Target("count", "node", "regression", 1)), name="inverse_folding")
    found = [prepare(small, replace(usual, derive=counting(by)), plan, cache=tmp_path).splits["train"] for by in (1, 2)]
    assert [float(store[0].y[0, 0]) for store in found] == [1.0, 2.0]
