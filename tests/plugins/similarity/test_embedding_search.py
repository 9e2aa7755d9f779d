"""Search by embedding gives the hits of a direct comparison, in a defined order, and refuses other models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.similarity import embedding_search, search_embeddings
from protgraph_plugins.similarity.embedding_search import nearest_by_cosine

import protgraph as pg
from protgraph.checkpoint import Checkpoint
from protgraph.errors import CheckpointError, DatasetError, OptionError, SelectionError
from protgraph.inference import Embeddings, embed

FILES = ("1ubq", "1hf9", "1crn", "1orc", "5pti")


def by_hand(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = (x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1)[:, None] for x in (queries, vectors))
    cosine = a @ b.T
    rows = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    return rows, np.take_along_axis(cosine, rows, 1)


@pytest.mark.parametrize("blocks", [(256, 16384), (7, 13)])
def test_hits_are_those_of_all_cosines(monkeypatch, blocks):
    monkeypatch.setattr(embedding_search, "_QUERIES", blocks[0])
    monkeypatch.setattr(embedding_search, "_VECTORS", blocks[1])
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(20, 8)).astype(np.float32), rng.normal(size=(1000, 8)).astype(np.float32)
    rows, cosine = nearest_by_cosine(queries, vectors, 5)
    expected_rows, expected = by_hand(queries, vectors, 5)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_allclose(cosine, expected, atol=1e-8)


@pytest.mark.parametrize("block", [16384, 7, 64])
def test_the_first_of_equal_vectors_comes_first(monkeypatch, block):
    monkeypatch.setattr(embedding_search, "_VECTORS", block)
    vectors = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)[np.arange(300) % 30]
    rows, cosine = nearest_by_cosine(vectors[[4]], vectors, 12)
    assert rows[0].tolist()[:10] == list(range(4, 300, 30)) and np.allclose(cosine[0, :10], 1)
    assert rows[0, 10] < 30


def test_a_zero_vector_is_similar_to_nothing():
    rows, cosine = nearest_by_cosine(np.eye(3), np.array([[0.0, 0, 0], [1, 0, 0]]), 5)
    assert rows.shape == (3, 2) and cosine[0].tolist() == [1.0, 0.0]


@pytest.fixture(scope="module")
def checkpoint(trained, tmp_path_factory):
    return trained.save(tmp_path_factory.mktemp("model") / "m.safetensors")


@pytest.fixture(scope="module")
def known(checkpoint, structures_dir, tmp_path_factory):
    """Return embeddings of five files, as read from a file."""
    embeddings = embed(checkpoint, [structures_dir / f"{name}.bcif" for name in FILES], device="cpu")
    assert repr(embeddings) == f"Embeddings({len(embeddings.node)} residues of 6 proteins, 16 wide)"
    [path] = embeddings.write(tmp_path_factory.mktemp("v") / "v.npz")
    return Embeddings.read(path)


def test_a_file_is_embedded_with_the_recorded_checkpoint(known, structures_dir, checkpoint):
    assert known.checkpoint == str(checkpoint)
    hits = search_embeddings(structures_dir / "1ubq.bcif", known, k=3, device="cpu")
    rows, cosine = by_hand(known.protein[:1], known.protein, 3)
    assert hits.column("protein").tolist() == [known.names[r] for r in rows[0]] and hits.rows[0][3] == "1ubq"
    np.testing.assert_allclose(hits.column("cosine"), cosine[0], atol=1e-6)
    assert hits.column("rank").tolist() == [1, 2, 3] and set(hits.column("query")) == {"1ubq A"}


def test_a_protein_of_the_embeddings_is_not_a_hit_of_itself(known):
    hits = search_embeddings("1ubq", known, k=10)
    assert len(hits) == 5 and "1ubq" not in hits.column("protein")
    both = search_embeddings("1hf9", known, k=2)
    assert both.column("query").tolist() == ["1hf9 A"] * 2 + ["1hf9 B"] * 2
    assert both.rows[0][3:5] == ("1hf9", "B")


def test_residues(known):
    hits = search_embeddings("1hf9", known, k=4, level="residue", residue="B:7")
    row = int(np.flatnonzero(known.residues == "B:7")[0])
    rows, cosine = by_hand(known.node[[row]], known.node, 5)
    assert rows[0, 0] == row
    assert hits.column("residue").tolist() == known.residues[rows[0, 1:]].tolist()
    np.testing.assert_allclose(hits.column("cosine"), cosine[0, 1:], atol=1e-6)
    assert len(search_embeddings("1hf9", known, k=4, level="residue")) == 4 * 82


def test_embeddings_of_another_model_are_refused(known, trained, structures_dir, tmp_path):
    other = trained.checkpoint()
    changed = replace(other, model=type(other.model)(other.model.spec, other.model.target))
    changed.model.load_state_dict(other.model.state_dict())
    with torch.no_grad():
        next(changed.model.parameters()).add_(1e-3)
    changed.model.eval()
    for query in (structures_dir / "1ubq.bcif", embed(changed, structures_dir / "1ubq.bcif", device="cpu")):
        with pytest.raises(CheckpointError):
            search_embeddings(query, known, checkpoint=changed, device="cpu")
    moved = replace(known, checkpoint=str(tmp_path / "gone.safetensors"))
    with pytest.raises(CheckpointError, match=r"gone\.safetensors"):
        search_embeddings(structures_dir / "1ubq.bcif", moved, device="cpu")
    assert len(search_embeddings(structures_dir / "1ubq.bcif", moved, checkpoint=other, device="cpu")) == 6


def test_wrong_arguments(known, tmp_path):
    with pytest.raises(SelectionError, match="Did you mean '1ubq'"):
        search_embeddings("1ubk", known)
    with pytest.raises(SelectionError, match="A:42"):
        search_embeddings("1ubq", known, level="residue", residue="A42")
    for options in ({"level": "residues"}, {"k": 0}, {"residue": "A:1"}):
        with pytest.raises(OptionError, match=str(next(iter(options.values())))):
            search_embeddings("1ubq", known, **options)
    (tmp_path / "a.npz").write_bytes(b"nothing")
    np.savez(tmp_path / "b.npz", node=np.zeros(3))
    for name in ("a.npz", "b.npz", "gone.npz"):
        with pytest.raises(DatasetError, match=name):
            search_embeddings("1ubq", tmp_path / name)


def test_a_query_with_nan_is_a_failure(structures_dir):
    @pg.layers.register("nan_for_long_query", replace=True)
    class NanForLong(pg.GraphLayer):
        reads, writes = ("h",), ("h",)

        def __init__(self, fields):
            super().__init__(fields)
            self.declare(h=fields["h"].irreps)

        def forward(self, f):
            return {"h": f["h"] * (float("nan") if len(f["h"]) > 70 else 1.0)}

    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("nan_for_long_query")]
    target = pg.Target("helix", "node", "classification", 2)
    checkpoint = Checkpoint(pg.build_model(pg.ModelSpec("acme", ["knn"], layers), target, seed=0), task="helix")
    embeddings = embed(checkpoint, [structures_dir / "1crn.bcif"], device="cpu")
    query = structures_dir / "1ubq.bcif"  # 76 residues
    hits = search_embeddings(query, embeddings, checkpoint=checkpoint)
    assert not hits.rows and [failure.source for failure in hits.failures] == [str(query)]
