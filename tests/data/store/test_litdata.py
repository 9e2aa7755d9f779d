"""Streamed stores give the batches of the local store, in the same order."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.loader import ProteinBatches
from protgraph.data.store.store_writer import write_store
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
    store = write_store(folder / "store", graphs, info={"features": ["knn"]})
    export_litdata(store, folder / "stream", shard_bytes=8000)
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
    assert len(stream.shards) > 5 and stream.names == store.names and stream.info == store.info
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
