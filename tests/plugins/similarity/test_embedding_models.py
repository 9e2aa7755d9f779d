"""Embeddings of ensembles, of one member, and of the encoder of ProteinMPNN; search with each."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from protgraph_plugins.design import encode
from protgraph_plugins.similarity import search_embeddings

import protgraph as pg
from protgraph.errors import CheckpointError, OptionError
from protgraph.inference import Embeddings, embedding_checkpoint
from protgraph.model import PublishedWeights


@pytest.fixture(scope="module")
def files(structures_dir):
    return [structures_dir / f"{name}.bcif" for name in ("1ubq", "1crn", "1jk9")]


@pytest.fixture(scope="module")
def ensemble(files):
    return pg.embed("secondary_structure", files, device="cpu")


def test_vectors_of_an_ensemble_are_those_of_its_members_side_by_side(ensemble, files):
    alone = [pg.embed(f"secondary_structure[{i}]", files, device="cpu") for i in range(3)]
    np.testing.assert_allclose(ensemble.node, np.concatenate([e.node for e in alone], 1), atol=1e-5)
    np.testing.assert_allclose(ensemble.protein, np.concatenate([e.protein for e in alone], 1), atol=1e-5)
    assert len({e.model_digest for e in (ensemble, *alone)}) == 4
    with pytest.raises(CheckpointError, match="has 3 members"):
        pg.embed("secondary_structure[3]", files[0], device="cpu")


def test_one_member_predicts_without_the_calibration_of_the_mean(files):
    checkpoint = pg.load_checkpoint("ligand_site[1]")
    whole = pg.load_checkpoint("ligand_site")
    assert len(checkpoint.members) == 1 and checkpoint.calibration is None and checkpoint.threshold is None
    weights = zip(checkpoint.model.parameters(), whole.members[1].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)
    assert len(pg.predict(checkpoint, files[0], device="cpu")) == 76


@pytest.mark.usefixtures("proteinmpnn_folder")
def test_the_encoder_of_proteinmpnn_is_embedded_for_each_chain_alone(files):
    embedded = pg.embed("proteinmpnn.v_48_020", files, device="cpu")
    assert embedded.node.shape == (len(embedded.residues), 128)
    model = pg.pretrained("proteinmpnn.v_48_020")
    for p, (file, chain) in enumerate(zip(embedded.files, embedded.chains, strict=True)):
        residues = pg.clean(pg.load_structure(file)).chains([chain])
        expected = encode(model, [residues]).fields["h"].numpy()
        rows = embedded.node[embedded.ptr[p] : embedded.ptr[p + 1]]
        np.testing.assert_allclose(rows, expected, atol=2e-5)
        np.testing.assert_allclose(embedded.protein[p], expected.mean(0), atol=2e-5)
    # Neither residue types nor side chains are read.
    ubiquitin = embedded.node[embedded.ptr[0] : embedded.ptr[1]]
    assert np.abs(ubiquitin).max() > 0.1


def published_network(name: str, file: object = None) -> PublishedWeights:
    """Return weights of a model that predicts from complete structures, for the tests below."""
    target = pg.tasks.get("secondary_structure").target
    state = pg.build_model(pg.models.get(name), target, seed=1).state_dict()
    return PublishedWeights(target, state, task="secondary_structure", one_chain=True)


def test_a_published_model_that_predicts_from_structures_embeds_what_its_head_reads(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "published_network", sys.modules[__name__])
    layers = [pg.component("embed", reads=["aatype", "dihedral"], dim=8), pg.component("gcn", dim=8)]
    weights = "published_network:published_network"
    pg.models.register("published_net", pg.ModelSpec("published_net", ["dihedral", "knn"], layers, weights=weights))
    try:
        checkpoint = embedding_checkpoint("published_net")
        assert (checkpoint.task, checkpoint.hidden, checkpoint.reads) == (
            "secondary_structure",
            frozenset(),
            "one chain",
        )
        embedded = pg.embed("published_net", files[:1], device="cpu")
        model = pg.pretrained("published_net")
        batch = pg.collate([model.plan.precompute(pg.clean(pg.load_structure(files[0])))])
        expected = model.embed_fields(model.fields_of(batch))["h"].detach().numpy()
        np.testing.assert_allclose(embedded.node, expected, atol=1e-5)
    finally:
        pg.models.unregister("published_net")


def test_published_weights_without_vectors_of_a_file_are_refused(files, shared_data, monkeypatch, run, tmp_path):
    monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(shared_data / "weights" / "paragraph"))
    with pytest.raises(OptionError, match=r"'paragraph.paired'.*part of a protein"):
        pg.embed("paragraph.paired", files[:1], device="cpu")
    result = run("embed", "paragraph.paired", files[0], "-o", tmp_path / "v.npz")
    assert result.code == 2 and "paragraph.paired" in result.err and not (tmp_path / "v.npz").exists()


def test_search_uses_the_model_whose_name_is_recorded(ensemble, files, tmp_path):
    path = tmp_path / "v.npz"
    ensemble.write(path)
    known = Embeddings.read(path)
    assert known.checkpoint == "secondary_structure" and known.is_of(pg.load_checkpoint("secondary_structure"))
    hits = search_embeddings(files[0], path, k=1, device="cpu")
    assert hits.column("protein").tolist() == ["1ubq"] and hits.column("cosine")[0] == pytest.approx(1, abs=1e-6)
    with pytest.raises(CheckpointError, match="different models"):
        search_embeddings(files[0], path, checkpoint="secondary_structure[0]", device="cpu")


@pytest.mark.usefixtures("proteinmpnn_folder")
def test_the_commands_take_a_published_model(run, files, tmp_path):
    result = run("embed", "proteinmpnn.v_48_020", *files, "-o", tmp_path / "v.npz", "--device", "cpu")
    assert result.code == 0 and "128 wide" in result.out, result.err
    result = run("search", files[1], "--in", tmp_path / "v.npz", "-k", "1", "--device", "cpu")
    assert result.code == 0 and "1crn" in result.out, result.err
    result = run("embed", "proteinmpnn.exact_v_48_020", files[0], "-o", tmp_path / "e.npz", "--device", "cpu")
    assert result.code == 2 and "unresolved" in result.err
