"""Prepared stores: the graphs of the files, the same bytes in every run, and only changed shards are made again."""

from __future__ import annotations

import csv
import os
import resource
import shutil
from contextlib import contextmanager

import pytest
import torch

from protgraph import registry, worker_pool
from protgraph.data.store import GraphStore
from protgraph.data.store.store_description import shard_path
from protgraph.errors import DatasetError, FieldError, OptionError, OutputFileError
from protgraph.featurize import FeaturePlan, iter_graphs
from protgraph.featurize.base import StructureFeaturizer
from protgraph.prepare import prepare_records, prepare_store
from protgraph.registry.component import component
from protgraph.structure import ReadOptions
from tests.prepare.synthetic_work import SyntheticWork, records

PLAN = ["dihedral", component("knn", k=8), "edge_distance"]
RESIDUES = 600  # per shard: a few proteins


@pytest.fixture(scope="module")
def plan():
    return FeaturePlan(PLAN)


@pytest.fixture
def folder(tmp_path, structures_dir):
    """12 structures, one of them broken."""
    (tmp_path / "in").mkdir()
    for path in sorted(structures_dir.iterdir())[:12]:
        shutil.copyfile(path, tmp_path / "in" / path.name)
    sorted((tmp_path / "in").iterdir())[5].write_bytes(b"broken")
    return tmp_path / "in"


def prepare(folder, out, plan, **options):
    return prepare_store(folder, out, plan, **{"jobs": 0, "shard_residues": RESIDUES} | options)


def contents(store):
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def inodes(store):
    return {path.name: path.stat().st_ino for path in (store / "shards").iterdir()}


def test_a_store_has_the_graphs_residues_and_failures_of_its_files(folder, tmp_path, plan):
    prepared = prepare(folder, tmp_path / "s", plan, manifest=tmp_path / "m.csv")
    results = list(iter_graphs(folder, plan))
    done = [r for r in results if hasattr(r, "graph")]
    store = prepared.store
    assert len(store.shards) >= 4 and len(store) == len(done) == 11 and list(store.failures) == [results[5]]
    assert store.num_residues == sum(len(r.residues) for r in done) == prepared.total("residues")
    assert store.sources == [r.source for r in done] and store.checksums == [r.sha256 for r in done]
    for number, result in enumerate(done):
        for key, value in store[number].items():
            same = torch.equal(value, result.graph[key]) if isinstance(value, torch.Tensor) else True
            assert same, key
        assert store.residues(number).ids == result.residues.ids
        assert store.residues(number).report == result.residues.report
    rows = list(csv.DictReader((tmp_path / "m.csv").open()))
    assert [row["source"] for row in rows] == [r.source for r in results]
    assert [row["status"] for row in rows].index("failed") == 5
    assert not (tmp_path / ".s.parts").exists() and not (tmp_path / ".s.lock").exists()


def test_a_second_run_writes_nothing_and_a_changed_file_its_shard_only(folder, tmp_path, plan, structures_dir):
    store, again = tmp_path / "s", {"update": True}
    prepare(folder, store, plan)
    first, before = contents(store), inodes(store)
    assert prepare(folder, store, plan, **again).reused == len(before)
    assert contents(store) == first and inodes(store) == before
    changed = sorted(folder.iterdir())[2]
    shutil.copyfile(structures_dir / "1crn.bcif", changed)
    prepared = prepare(folder, store, plan, **again)
    assert len(prepared.shards) - prepared.reused in (1, 2)  # two if the size of the file moves a boundary
    assert len(set(inodes(store).items()) & set(before.items())) == prepared.reused
    shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
    prepare(folder, tmp_path / "fresh", plan)
    assert contents(store) == contents(tmp_path / "fresh")


@pytest.mark.slow
def test_an_unchanged_store_starts_no_process_and_a_changed_shard_one(
    folder, tmp_path, plan, structures_dir, monkeypatch
):
    prepare(folder, tmp_path / "s", plan)
    started = []
    start = worker_pool.WorkerProcess
    monkeypatch.setattr(worker_pool, "WorkerProcess", lambda *args: started.append(args) or start(*args))
    seen = []
    options = {"update": True, "jobs": 2, "progress": lambda *own: seen.append(own[2].is_reused)}
    prepared = prepare(folder, tmp_path / "s", plan, **options)
    assert started == [] and seen == [True] * len(prepared.shards) and prepared.reused == len(prepared.shards)
    last = sorted(folder.iterdir())[-1]
    shutil.copyfile(structures_dir / "1crn.bcif", last)
    prepared = prepare(folder, tmp_path / "s", plan, **options)
    assert len(started) == 1 and prepared.reused == len(prepared.shards) - 1


def test_a_new_file_is_added_and_a_missing_one_is_an_error(folder, tmp_path, plan, structures_dir):
    store = tmp_path / "s"
    shards = len(prepare(folder, store, plan).shards)
    shutil.copyfile(structures_dir / "1crn.bcif", folder / "zzz.bcif")
    added = prepare(folder, store, plan, update=True)
    assert added.reused >= shards - 2 and "zzz" in added.store.names[-1]
    before = contents(store)
    gone = sorted(folder.iterdir())[0]
    gone.unlink()
    with pytest.raises(OptionError, match=f"1 input .*{gone.name}"):
        prepare(folder, store, plan, update=True)
    assert contents(store) == before
    assert len(prepare(folder, store, plan, update=True, overwrite=True).store) == 11


def test_an_existing_store_is_not_replaced_by_other_features_or_without_permission(folder, tmp_path, plan):
    store = tmp_path / "s"
    prepare(folder, store, plan)
    before = contents(store)
    with pytest.raises(DatasetError, match="exists"):
        prepare(folder, store, plan)
    with pytest.raises(OptionError, match="features"):
        prepare(folder, store, FeaturePlan(["knn"]), update=True)
    with pytest.raises(OptionError, match="read"):
        prepare(folder, store, plan, update=True, read=ReadOptions(altloc="first"))
    assert contents(store) == before
    assert "node_s" not in prepare(folder, store, FeaturePlan(["knn"]), overwrite=True).store[0]
    (tmp_path / "other").mkdir()
    with pytest.raises(DatasetError, match="other"):
        prepare(folder, tmp_path / "other", plan, overwrite=True)


def test_a_damaged_shard_is_written_again(folder, tmp_path, plan):
    store = tmp_path / "s"
    prepare(folder, store, plan)
    before = contents(store)
    path = shard_path(store, GraphStore(store).shards[1].key)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert GraphStore(store).damaged_shards() == [path]
    prepared = prepare(folder, store, plan, update=True)
    assert len(prepared.shards) - prepared.reused == 1 and contents(store) == before
    path.unlink()
    prepare(folder, store, plan, update=True)
    assert contents(store) == before


def test_a_store_is_prepared_from_a_store(folder, tmp_path, plan):
    prepare(folder, tmp_path / "s", plan)
    again = prepare(tmp_path / "s", tmp_path / "t", plan).store
    assert again.names == GraphStore(tmp_path / "s").names and len(again.shards) > 1
    assert torch.equal(again.collate([0, 5]).edge_index, GraphStore(tmp_path / "s").collate([0, 5]).edge_index)
    assert prepare(tmp_path / "s", tmp_path / "t", plan, update=True).reused == len(again.shards)


@contextmanager
def file_size_limit(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_shards_before_a_full_disk_are_kept_and_the_next_run_continues(folder, tmp_path, plan):
    prepare(folder, tmp_path / "whole", plan)
    sizes = [entry.bytes for entry in GraphStore(tmp_path / "whole").shards]
    limit = sorted(sizes)[-1] - 1
    with pytest.raises(OutputFileError), file_size_limit(limit):
        prepare(folder, tmp_path / "s", plan)
    kept = list((tmp_path / ".s.parts" / "shards").iterdir())
    assert len(kept) == sizes.index(limit + 1) and not (tmp_path / "s").exists()
    assert not list(tmp_path.rglob("*.part"))
    assert prepare(folder, tmp_path / "s", plan).reused == len(kept)
    assert contents(tmp_path / "s") == contents(tmp_path / "whole") and not (tmp_path / ".s.parts").exists()


def test_nothing_stays_if_every_file_fails_or_nothing_is_finished(tmp_path, plan):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.pdb").write_text("nothing")
    prepared = prepare(tmp_path / "in", tmp_path / "new" / "s", plan)
    assert prepared.store is None and [f.error_type for f in prepared.first_failures] == ["StructureFileError"]
    with pytest.raises(ValueError, match="r1"):
        prepare_records(records(3, r1="raise"), tmp_path / "new" / "s", SyntheticWork(tmp_path), jobs=0)
    assert not (tmp_path / "new").exists()


class OwnForPrepare(StructureFeaturizer):
    """Registered in this process only."""

    writes = ("b_factor",)

    def __call__(self, residues):
        return {"b_factor": residues.b_factor[:, None]}


def test_featurizers_of_this_session_run_in_this_process(folder, tmp_path):
    registry.featurizers.register("own_for_prepare", OwnForPrepare)
    assert len(prepare(folder, tmp_path / "s", FeaturePlan(["own_for_prepare"]), jobs=2).store) == 11


def test_shards_with_other_fields_are_an_error(tmp_path, monkeypatch):
    class Odd(SyntheticWork):
        def results(self, record):
            content, [result] = super().results(record)
            if record.label == "r30":
                result.graph.extra = "attribute"
            return content, [result]

    with pytest.raises(FieldError, match="extra"):
        prepare_records(records(40), tmp_path / "s", Odd(tmp_path), jobs=0, shard_residues=20)


def test_code_that_is_not_known_is_never_reused(tmp_path):
    for times in (1, 2):
        prepared = prepare_records(records(4), tmp_path / "s", SyntheticWork(tmp_path, None), jobs=0, update=True)
        assert prepared.reused == 0 and SyntheticWork(tmp_path).times("r0") == times


def test_a_store_that_another_process_writes_is_refused(tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".s.lock"), pytest.raises(OptionError, match="another process"):
        prepare_records(records(1), tmp_path / "s", SyntheticWork(tmp_path), jobs=0)
    assert not os.path.exists(tmp_path / "s")
