"""The engine Ray on a local cluster of 2 workers: the bytes of the local engine, also if workers are killed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from protgraph.errors import MissingExtraError
from protgraph.prepare import prepare_records, prepare_store, run_shards, split_shards
from tests.prepare.synthetic_work import LENGTH, SyntheticWork, records

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_error_names_the_extra(tmp_path):
    with pytest.raises(MissingExtraError, match=r"protgraph-pyg\[ray\]"):
        list(run_shards(split_shards(records(1)), SyntheticWork(tmp_path), engine="ray"))


@pytest.fixture(scope="module")
def cluster():
    """Two workers for all tests of the module: a cluster takes seconds to start."""
    import ray
    from protgraph_plugins.scale import ray_engine

    ray_engine._start(ray, 2)
    yield
    ray.shutdown()


def contents(store):
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def prepare(given, out, log, **options):
    log.mkdir()
    return prepare_records(given, out, SyntheticWork(log), **{"shard_residues": 4 * LENGTH, "jobs": 2} | options)


@needs_ray
@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_the_bytes_are_those_of_the_local_engine(cluster, tmp_path):
    prepare(records(40), tmp_path / "whole", tmp_path / "log", jobs=0)
    prepared = prepare(records(40, r3="kill once", r20="kill once"), tmp_path / "s", tmp_path / "log2", engine="ray")
    assert prepared.total("failures") == 0 and SyntheticWork(tmp_path / "log2").times("r20") > 1
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


@needs_ray
@pytest.mark.slow
def test_a_record_that_always_kills_its_process_fails_alone(cluster, tmp_path):
    prepared = prepare(records(20, r5="kill"), tmp_path / "s", tmp_path / "log", engine="ray")
    assert {f.source: f.error_type for f in prepared.store.failures} == {"r5": "WorkerDiedError"}
    prepare(records(20, r5="kill"), tmp_path / "local", tmp_path / "log2")
    assert contents(tmp_path / "s") == contents(tmp_path / "local")
    with pytest.raises(ValueError, match="r3"):
        prepare(records(20, r3="raise"), tmp_path / "t", tmp_path / "log3", engine="ray")


@needs_ray
@pytest.mark.slow
def test_files_give_the_bytes_of_the_local_engine(cluster, tmp_path, structures_dir):
    from protgraph.featurize import FeaturePlan

    files, plan = sorted(structures_dir.iterdir())[:20], FeaturePlan(["dihedral", "knn"])
    prepare_store(files, tmp_path / "local", plan, jobs=2, shard_residues=1000)
    prepare_store(files, tmp_path / "ray", plan, engine="ray", jobs=2, shard_residues=1000)
    assert len(list((tmp_path / "ray" / "shards").iterdir())) > 2
    assert contents(tmp_path / "local") == contents(tmp_path / "ray")
