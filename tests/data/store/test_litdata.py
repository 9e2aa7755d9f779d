"""Streamed stores give the batches of the local store, in the same order."""

from __future__ import annotations

import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.data.store.open_store import is_store, open_store
from protgraph.data.store.store_writer import ShardWriter
from protgraph.errors import DatasetError

pytest.importorskip("litdata", reason="litdata is not installed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    from protgraph.data import export_litdata

    folder, generator = tmp_path_factory.mktemp("stream"), torch.Generator().manual_seed(0)
    graphs = []
    for i in range(40):
        nodes = int(torch.randint(5, 60, (), generator=generator))
        edges = torch.randint(nodes, (2, 3 * nodes), generator=generator)
        pos = torch.randn(nodes, 3, generator=generator)
        y = torch.randint(3, (nodes,), generator=generator)
        ids = np.array([f"A:{k}" for k in range(nodes)])
        graphs.append(ProteinGraph(pos=pos, edge_index=edges, y=y, y_level="node", residue_ids=ids, name=f"protein{i}"))
    writer = ShardWriter(folder / "store", shard_bytes=8000, info={"features": ["knn"]})
    for graph in graphs:
        writer.add(graph)
    writer.close()
    store = GraphStore(folder / "store")
    export_litdata(store, folder / "stream")
    return store, folder / "stream"


def assert_same(batch, expected):
    assert set(batch.keys()) == set(expected.keys())
    for key in expected.keys():  # noqa: SIM118 -- not a mapping
        if isinstance(expected[key], torch.Tensor):
            assert torch.equal(batch[key], expected[key]), key
        else:
            assert str(batch[key]) == str(expected[key]), key


@pytest.mark.parametrize("world_size", [1, 2])
def test_streamed_batches_are_those_of_the_store(folders, world_size):
    from protgraph.data import LitdataStore, StreamingDataLoader

    store, folder = folders
    stream = LitdataStore(folder)
    assert (
        len(stream.shards) > 10
        and stream.shards == store.shards
        and stream.names == store.names
        and stream.info == store.info
    )
    loaders = [
        StreamingDataLoader(stream, max_nodes=100, seed=4, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    orders = []
    for epoch in (0, 3):
        batches = ProteinBatches(store.sizes, max_nodes=100, shuffle=True, seed=4, epoch=epoch)
        orders.append(list(batches))
        for rank, loader in enumerate(loaders):
            loader.set_epoch(epoch)
            for batch, members in zip(loader, batches, strict=True):
                share = members[rank::world_size]
                assert ("is_padding" in batch) is (not share)
                if share:
                    assert_same(batch, store.collate(share))
    assert orders[0] != orders[1]


@pytest.mark.slow
def test_workers_stream_the_same_batches(folders):
    from protgraph.data import LitdataStore, StreamingDataLoader

    store, folder = folders
    batches = ProteinBatches(store.sizes, max_nodes=100, shuffle=True)
    loader = StreamingDataLoader(LitdataStore(folder), max_nodes=100, workers=2)
    for batch, members in zip(loader, batches, strict=True):
        assert_same(batch, store.collate(members))


def test_a_streamed_store_is_read_like_a_store(folders):
    from protgraph.data import LitdataStore

    store, folder = folders
    stream = pickle.loads(pickle.dumps(LitdataStore(folder)))
    for i in (0, 17, 39):
        assert_same(stream[i], store[i])


def test_the_command_exports_and_keeps_an_existing_folder(folders, tmp_path):
    from protgraph.cli.app import app
    from protgraph.data import LitdataStore, export_litdata

    store, _ = folders
    done = CliRunner().invoke(app, ["export", str(store.path), "--to", "litdata", "-o", str(tmp_path / "stream")])
    assert done.exit_code == 0, done.output
    assert LitdataStore(tmp_path / "stream").names == store.names
    with pytest.raises(DatasetError, match="stream"):
        export_litdata(store, tmp_path / "stream")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="mine"):
        export_litdata(store, tmp_path / "mine", overwrite=True)
    export_litdata(store, tmp_path / "stream", overwrite=True)
    assert sorted(path.suffix for path in (tmp_path / "stream").iterdir())[-1] == ".json"


def test_chunks_are_fetched_from_an_address_when_they_are_used(folders, tmp_path):
    from protgraph.data import LitdataStore

    store, folder = folders
    remote = LitdataStore(f"local:{folder}", cache_dir=str(tmp_path / "cache"))
    fetched = lambda: {path.name for path in (tmp_path / "cache").rglob("*.bin")}  # noqa: E731
    assert fetched() == {f"chunk-0-{len(store.shards)}.bin"}
    members = [0, len(store) - 1]
    assert_same(remote.collate(members), store.collate(members))
    assert len(fetched()) == 3


def test_one_function_opens_both_formats_and_an_address(folders, tmp_path):
    from protgraph.data import LitdataStore

    store, folder = folders
    for path in (store.path, folder, str(folder)):
        assert is_store(path) and open_store(path) is open_store(path) and open_store(path).names == store.names
    assert type(open_store(store.path)) is GraphStore and type(open_store(folder)) is LitdataStore
    assert is_store("s3://bucket/folder") and is_store(Path("s3://bucket/folder"))
    (tmp_path / "index.json").write_text("{}")  # a folder of the user
    assert not is_store(tmp_path) and not is_store(tmp_path / "absent")


def test_damaged_missing_and_incomplete_chunks_are_found(folders, tmp_path):
    from protgraph.cli.app import app

    _, folder = folders
    stream = shutil.copytree(folder, tmp_path / "stream")
    verify = lambda: CliRunner().invoke(app, ["data", "verify", str(stream)])  # noqa: E731
    assert verify().exit_code == 0 and open_store(stream).damaged_shards() == []
    chunk = stream / "chunk-0-3.bin"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    done = verify()
    assert done.exit_code == 1 and "1 damaged" in done.output and open_store(stream).damaged_shards() == [chunk]
    chunk.write_bytes(content[:-1])
    with pytest.raises(DatasetError, match=re.escape(chunk.name)):
        open_store(stream).verify()
    chunk.unlink()
    with pytest.raises(DatasetError, match=re.escape(chunk.name)):
        type(open_store(stream))(stream)


def test_a_damaged_shard_is_not_exported(folders, tmp_path):
    from protgraph.data import export_litdata

    store = GraphStore(shutil.copytree(folders[0].path, tmp_path / "store"))
    (path, *_) = sorted((store.path / "shards").iterdir())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=re.escape(path.name)):
        export_litdata(store, tmp_path / "stream")
    assert not (tmp_path / "stream").exists()
