"""A store at an address gives the batches of the local store; downloads are verified, resumed and kept."""

from __future__ import annotations

import csv
import pickle
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from protgraph_plugins.scale import RemoteFiles
from torch.utils.data import DataLoader
from typer.testing import CliRunner

import protgraph as pg
from protgraph.cli.app import app
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store import GraphStore, ProteinBatches, is_store, open_store, stores
from protgraph.data.store.store_description import _remote_files
from protgraph.data.store.store_writer import ShardWriter
from protgraph.errors import DatasetError, FetchError, MissingExtraError, OfflineError
from protgraph.inference import predict
from protgraph.train import FitConfig
from tests.local_server import running
from tests.train.conftest import tiny_spec


def write(folder, number=40, seed=0):
    """Write a store of several shards with random graphs."""
    generator = torch.Generator().manual_seed(seed)
    writer = ShardWriter(folder, shard_bytes=8000, info={"features": ["knn"]})
    for i in range(number):
        nodes = int(torch.randint(5, 60, (), generator=generator))
        edges = torch.randint(nodes, (2, 3 * nodes), generator=generator)
        pos = torch.randn(nodes, 3, generator=generator)
        y = torch.randint(3, (nodes,), generator=generator)
        writer.add(ProteinGraph(pos=pos, edge_index=edges, y=y, y_level="node", name=f"protein{i}"))
    writer.close()
    return GraphStore(folder)


def assert_same(batch, expected):
    assert set(batch.keys()) == set(expected.keys())
    for key in expected.keys():  # noqa: SIM118 -- not a mapping
        if isinstance(expected[key], torch.Tensor):
            assert torch.equal(batch[key], expected[key]), key
        else:
            assert str(batch[key]) == str(expected[key]), key


def serve(server, folder, name):
    """Add the files of a store to a server, and return its address."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    server.files |= {f"/{name}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}
    return f"{server.address}/{name}"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PROTGRAPH_OFFLINE", raising=False)
    _remote_files.cache_clear()
    return tmp_path / "cache" / "stores" / "shards"


@pytest.fixture
def server(cache):
    with running() as served:
        yield served


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("local") / "store")


def reopened(address):
    """Open an address as another process does."""
    _remote_files.cache_clear()
    return GraphStore(address)


def test_batches_are_those_of_the_store_and_a_shard_is_downloaded_when_it_is_used(server, store, cache):
    remote = GraphStore(serve(server, store.path, "store"))
    assert len(remote.shards) > 5 and remote.shards == store.shards and remote.info == store.info
    assert list(cache.iterdir()) == [] and len(server.requests) == 1
    members = [0, len(store) - 1]
    assert_same(remote.collate(members), store.collate(members))
    assert len(list(cache.iterdir())) == 2
    assert remote.names == store.names and remote.sizes.tolist() == store.sizes.tolist()
    batches = list(ProteinBatches(remote.sizes, max_nodes=100, shuffle=True))
    for members in batches:
        assert_same(remote.collate(members), store.collate(members))
    assert max(Counter(path for path, _ in server.requests).values()) == 1
    assert sorted(path.suffix for path in cache.iterdir()) == [".safetensors"] * len(store.shards)


def test_an_address_is_accepted_as_text_and_as_path(server, store):
    address = serve(server, store.path, "store")
    for path in (address, Path(address), address + "/"):
        assert is_store(path) and open_store(path).names == store.names
        assert open_store(path) is open_store(path) and open_store(path).path == address
    again = pickle.loads(pickle.dumps(open_store(address)))
    assert_same(again[17], store[17])
    assert is_store("s3://bucket/folder") and not is_store("foldcomp:entry") and not is_store("ab/http://x")
    assert not is_store("unknown://host/store")


@pytest.mark.slow
def test_worker_processes_read_the_same_batches(server, store):
    remote = GraphStore(serve(server, store.path, "store"))
    batches = ProteinBatches(remote.sizes, max_nodes=100, shuffle=True)
    loader = DataLoader(range(len(remote)), batch_sampler=batches, collate_fn=remote.collate, num_workers=2)
    for batch, members in zip(loader, batches, strict=True):
        assert_same(batch, store.collate(members))


def test_a_download_that_is_cut_requests_the_rest(server, store):
    address = serve(server, store.path, "store")
    remote = GraphStore(address)
    server.script = ["cut"]
    assert_same(remote[0], store[0])
    size = store.shards[0].bytes
    assert [ranged for _, ranged in server.requests[1:]] == [None, f"bytes={size // 2}-"]


def test_a_later_run_continues_the_download(server, store, cache):
    address = serve(server, store.path, "store")
    server.script = ["", "cut", "403"]
    with pytest.raises(FetchError, match="HTTP 403"):
        GraphStore(address)[0]
    assert not [path for path in cache.iterdir() if path.suffix == ".safetensors"]
    assert_same(reopened(address)[0], store[0])
    assert server.requests[-1][1] == f"bytes={store.shards[0].bytes // 2}-"


def test_a_shard_with_another_checksum_is_rejected(server, store, cache):
    address = serve(server, store.path, "store")
    (name,) = (name for name in server.files if name.endswith("000000.safetensors"))
    content = bytearray(server.files[name])
    content[-1] ^= 1
    server.files[name] = bytes(content)
    with pytest.raises(FetchError, match="SHA-256"):
        GraphStore(address)[0]
    assert list(cache.iterdir()) == []
    del server.files[name]
    with pytest.raises(DatasetError, match="000000"):
        GraphStore(address)[0]


def test_an_address_without_a_store_raises(server):
    with pytest.raises(DatasetError, match="not a graph store"):
        GraphStore(f"{server.address}/nothing")


def test_of_a_store_that_is_written_again_only_new_shards_are_downloaded(server, store, tmp_path):
    address = serve(server, store.path, "store")
    before = open_store(address)
    assert before.names == store.names
    longer = write(tmp_path / "longer", number=60)
    serve(server, longer.path, "store")
    server.requests.clear()
    after = reopened(address)
    assert after.names == longer.names and after.path == before.path
    known = {shard.sha256 for shard in store.shards}
    new = [shard for shard in longer.shards if shard.sha256 not in known]
    assert len(server.requests) == 1 + len(new) < 1 + len(longer.shards)


def test_threads_download_each_shard_once(server, store):
    address = serve(server, store.path, "store")
    found = [GraphStore(address) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert all(names == store.names for names in threads.map(lambda remote: remote.names, found))
    assert max(Counter(path for path, _ in server.requests).values()) == 1


def test_offline_the_shards_of_the_cache_are_used(server, store, monkeypatch):
    address = serve(server, store.path, "store")
    GraphStore(address)[0]
    monkeypatch.setenv("PROTGRAPH_OFFLINE", "1")
    server.requests.clear()
    remote = reopened(address)
    assert_same(remote[0], store[0])
    with pytest.raises(OfflineError, match="safetensors"):
        remote[len(store) - 1]
    with pytest.raises(OfflineError, match="other"):
        GraphStore(f"{server.address}/other")
    assert server.requests == []


def test_verify_compares_the_shards_of_the_cache(server, store, cache):
    address = serve(server, store.path, "store")
    verify = lambda: CliRunner().invoke(app, ["data", "verify", address])  # noqa: E731
    done = verify()
    assert done.exit_code == 0 and "0 damaged" in done.output, done.output
    path = cache / f"{store.shards[3].sha256}.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = verify()
    assert done.exit_code == 1 and path.name in done.output
    path.unlink()
    assert verify().exit_code == 0


@pytest.fixture
def memory_address(cache, store):
    """Address of the store in the file system ``memory`` of fsspec, as an object store."""
    import fsspec

    stores.register("memory", RemoteFiles)
    filesystem = fsspec.filesystem("memory")
    filesystem.put(str(store.path), "/bucket/store", recursive=True)
    yield "memory://bucket/store"
    filesystem.rm("/bucket", recursive=True)
    stores.unregister("memory")


def test_object_stores_are_read_by_fsspec_and_continue_after_an_interruption(memory_address, store, cache):
    remote = GraphStore(memory_address)
    first = store.shards[0]
    content = (store.path / "shards" / f"{first.key}.safetensors").read_bytes()
    part = cache / f"{first.sha256}.safetensors.part"
    part.write_bytes(b"\0" * 100)
    with pytest.raises(FetchError, match="SHA-256"):
        remote[0]
    part.write_bytes(content[:100])
    assert_same(remote[0], store[0])
    assert remote.names == store.names and {path.suffix for path in cache.iterdir()} == {".safetensors"}
    with pytest.raises(DatasetError, match="not a graph store"):
        GraphStore("memory://bucket/other")


def test_a_scheme_without_its_library_names_the_extra(cache):
    pytest.importorskip("fsspec")
    try:
        import s3fs  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"protgraph-pyg\[remote\]"):
            GraphStore("s3://bucket/store")


# --- training and prediction ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def featurized(tmp_path_factory, structures_dir):
    """Store of the command, with the features of the model."""
    folder = tmp_path_factory.mktemp("featurized")
    (folder / "files").mkdir()
    for name in ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8", "1fas"):
        shutil.copy(structures_dir / f"{name}.bcif", folder / "files")
    options = ["-f", "dihedral", "-f", "knn:k=8", "-f", "edge_distance", "--shard-residues", "100"]
    done = CliRunner().invoke(app, ["featurize", str(folder / "files"), "-o", str(folder / "same"), *options])
    assert done.exit_code == 0, done.output
    return folder / "same"


@pytest.fixture
def tiny():
    return tiny_spec(dropout=0.1)


@pytest.fixture
def quick():
    return FitConfig(epochs=2, lr=5e-3, batch_residues=256, device="cpu")


def assert_same_weights(one, two):
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("task", ["secondary_structure", "inverse_folding"])
def test_training_from_an_address_gives_the_run_of_the_store(server, featurized, tiny, quick, task, tmp_path):
    address = serve(server, featurized, "same")
    runs = [
        pg.fit(tiny, data, task, config=quick, cache=tmp_path / str(number))
        for number, data in enumerate((featurized, address))
    ]
    assert_same_weights(*(run.model.state_dict() for run in runs))
    names = ("epoch", "train_loss", "val_loss")
    one, two = ([{name: row[name] for name in names if name in row} for row in run.history] for run in runs)
    assert one == two and runs[0].metrics == runs[1].metrics


@pytest.mark.slow
def test_a_run_from_an_address_is_resumed(server, featurized, tiny, quick, tmp_path):
    def stop(row):
        if row["epoch"] == 1:
            raise RuntimeError("stop")

    address = serve(server, featurized, "same")
    options = {"config": replace(quick, epochs=3), "cache": tmp_path}
    complete = pg.fit(tiny, featurized, "secondary_structure", **options)
    options |= {"run_dir": tmp_path / "run"}
    with pytest.raises(RuntimeError, match="stop"):
        pg.fit(tiny, address, "secondary_structure", **options, on_epoch=stop)
    resumed = pg.fit(tiny, GraphStore(address), "secondary_structure", **options, resume=True)
    assert_same_weights(complete.model.state_dict(), resumed.model.state_dict())


@pytest.mark.slow
def test_predict_and_inspect_read_an_address(server, featurized, tiny, quick, tmp_path):
    address = serve(server, featurized, "same")
    model = pg.fit(tiny, featurized, "secondary_structure", config=quick, cache=tmp_path)
    one, two = (predict(model.checkpoint(), path, device="cpu") for path in (featurized, address))
    assert one.rows == two.rows and len(one.rows) > 200 and one.notes == two.notes
    run = lambda *words: CliRunner().invoke(app, list(map(str, words)))  # noqa: E731
    texts = [run("data", "inspect", path, "--task", "secondary_structure") for path in (featurized, address)]
    assert [text.exit_code for text in texts] == [0, 0]
    assert texts[0].output == texts[1].output


@pytest.mark.slow
def test_the_commands_train_and_predict_take_an_address(server, featurized, tmp_path):
    address, model = serve(server, featurized, "same"), tmp_path / "m.safetensors"
    arguments = ["train", "gcn", "--data", address, "--task", "secondary_structure", "--epochs", "1", "-q"]
    done = CliRunner().invoke(app, [*arguments, "--device", "cpu", "-o", str(model)])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["predict", str(model), address, "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    with (tmp_path / "out.csv").open() as file:
        assert len(list(csv.DictReader(file))) > 200
