"""Sequence tasks in training, evaluation and prediction: masked residues, contacts, and FASTA files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph.data.datasets.card import parse_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.folder import FolderDataset
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import MissingCoordinatesError
from protgraph.evaluation import evaluate
from protgraph.evaluation.evaluation import collate_evaluation, predict_split, symmetrize_pairs
from protgraph.featurize import ModelInputs, iter_graphs, successes
from protgraph.featurize.plan import FeaturePlan
from protgraph.inference import embed, predict
from protgraph.labels import prepare
from protgraph.model import ModelSpec, build_model
from protgraph.registry.component import component
from protgraph.structure import clean, load_structure
from protgraph.task import InputMasking, Task, binary_cross_entropy
from protgraph.task import metrics as m
from protgraph.task.contact_prediction import CONTACT, beta_carbons, contact_labels
from protgraph.task.language_modeling import MASKED_LM
from protgraph.train import FitConfig, fit

CHAINS = {"train": ("1crn_A", "2erl_A", "1fas_A", "1hf9_A"), "val": ("1a8o_A",), "test": ("5pti_A",)}
EPOCH = FitConfig(epochs=1, batch_residues=128, device="cpu")


class Derived(Dataset):
    """Six chains; every task derives its labels."""

    def __init__(self, folder):
        held = [(name, split) for split, names in CHAINS.items() for name in names]
        self._examples = [Example(name, folder / f"{name[:4]}.bcif", (name[5:],), split) for name, split in held]
        counts = {split: {"proteins": len(names), "residues": 0} for split, names in CHAINS.items()}
        rest = {"labels": "", "examples": "", "splits": counts}
        node_of_20 = {**rest, "level": "node", "kind": "classification", "size": 20}
        contact = {**rest, "level": "pair", "kind": "multilabel", "size": 1, "separation": 6}
        texts = dict.fromkeys(("version", "license", "citation", "description"), "")
        tasks = {"masked_lm": node_of_20, "next_residue": node_of_20, "contact": contact}
        self.card = parse_card({"name": "derived", **texts, "splits": {"rule": "", **counts}, "tasks": tasks})

    def examples(self, task, split=None):
        return [e for e in self._examples if split in (None, e.split)]

    def labels(self, task, example):
        return None


@pytest.fixture(scope="module")
def derived(structures_dir):
    return Derived(structures_dir)


@pytest.fixture(scope="module")
def window():
    layers = [component("embed", reads=["aatype"], dim=8), component("window", size=3), component("mlp", dim=16)]
    return ModelSpec("window", layers=layers)


@pytest.fixture(scope="module")
def contacts(derived, window):
    return fit(window, derived, "contact", config=EPOCH)


def store_of(dataset, task, split="train"):
    return prepare(dataset, task, FeaturePlan([])).splits[split]


@pytest.mark.slow
def test_masks_in_evaluation_do_not_depend_on_the_batch(derived):
    store = store_of(derived, MASKED_LM)
    together, alone = (
        collate_evaluation(store, range(len(store)), MASKED_LM),
        [collate_evaluation(store, [i], MASKED_LM) for i in (2, 0)],
    )
    starts = together.ptr.tolist()
    for i, one in zip((2, 0), alone, strict=True):
        rows = slice(starts[i], starts[i + 1])
        assert torch.equal(together.y[rows], one.y)
        assert torch.equal(together.aatype[rows], one.aatype)
        assert torch.equal(together.masked[rows], one.masked)
    assert (together.aatype[together.y >= 0] == 20).all()
    assert (together.aatype[together.y < 0] < 20).all()


@pytest.mark.slow
def test_types_of_masked_residues_do_not_change_predictions(derived, window):
    result = fit(window, derived, "masked_lm", config=EPOCH)
    store = store_of(derived, MASKED_LM)
    batch = collate_evaluation(store, range(len(store)), MASKED_LM)
    other = batch.clone()
    other.y = torch.where(batch.y >= 0, (batch.y + 7) % 20, batch.y)
    a, b = (result.model(x)["logits"] for x in (batch, other))
    assert torch.equal(a, b)
    kept = set(batch.keys()) - {"y", "ptr", "batch", "pos", "backbone", "backbone_mask"}
    assert {"aatype", "masked", "seq_pos"} <= kept
    assert not [k for k in kept if torch.is_tensor(batch[k]) and batch[k].shape == batch.y.shape
                and torch.equal(batch[k].long(), store_types(store))]  # fmt: skip
    assert result.test["perplexity"] < 30


def store_types(store):
    return torch.cat([graph.y for graph in store])


def test_masked_training_and_evaluation_are_reproducible(derived, window):
    a, b = (fit(window, derived, "masked_lm", config=replace(EPOCH, epochs=2)) for _ in range(2))
    assert a.history == b.history
    assert a.metrics == b.metrics
    test = store_of(derived, MASKED_LM, "test")
    assert evaluate(a.model, test, a.task) == a.metrics["test"]


@pytest.mark.slow
def test_contact_models_get_no_coordinates(derived, tiny):
    for graph in store_of(derived, CONTACT):
        assert graph.pos.isnan().all()
        assert graph.backbone.isnan().all()
        assert not graph.backbone_mask.any()
        assert graph.y.shape == (graph.num_nodes, 1, 3)
    with pytest.raises(MissingCoordinatesError, match=r"'contact' .*features\[0\] \(dihedral\) of model 'tiny'"):
        fit(tiny, derived, "contact", config=EPOCH)
    reads = ModelSpec(
        "places", layers=[component("embed", reads=["aatype"]), component("backbone_update"), "place_backbone"]
    )
    with pytest.raises(MissingCoordinatesError, match="'contact' .*'places'"):
        fit(reads, derived, "contact", config=EPOCH)


def test_metrics_of_contacts_are_means_over_proteins(contacts, derived):
    test, values = store_of(derived, CONTACT, "test"), []
    for graph in test:
        with torch.no_grad():
            predicted = contacts.model(graph)["logits"].view(graph.num_nodes, -1)
        label = contact_labels(graph)[1].view(graph.num_nodes, -1)
        rows = [
            (-float(predicted[i, j]), float(label[i, j]))
            for i in range(len(predicted))
            for j in range(i + 6, len(predicted))
        ]
        top = sorted(r for r in rows if r[1] == r[1])[: graph.num_nodes // 5]
        values.append(sum(y for _, y in top) / len(top))
    assert contacts.test["precision_l5_6"] == pytest.approx(np.mean(values), abs=1e-6)


def test_the_loss_of_contacts_is_that_of_all_known_pairs(contacts, derived):
    store = store_of(derived, CONTACT)
    predicted = predict_split(contacts.model, store, CONTACT)
    with torch.no_grad():
        logits = torch.cat([contacts.model(graph)["logits"] for graph in store])
    y = torch.cat([contact_labels(graph)[1] for graph in store])
    assert predicted.loss == pytest.approx(float(binary_cross_entropy(logits, y)), rel=1e-5)
    assert len(predicted.y) < 0.5 * len(y)
    assert contacts.threshold is None


def test_logits_of_a_pair_are_the_mean_of_both_orders(derived):
    graph = store_of(derived, CONTACT)[0]
    n = graph.num_nodes
    logits = torch.arange(float(n * n)).view(n * n, 1)
    predicted = symmetrize_pairs(logits, graph.clone().update({"y": logits}))
    expected = [(i * n + j + j * n + i) / 2 for i in range(n) for j in range(i + 1, n)]
    assert predicted.logits[:, 0].tolist() == expected
    assert predicted.y[:, 0].tolist() == [i * n + j for i in range(n) for j in range(i + 1, n)]


def test_contacts_of_a_structure_equal_those_of_its_sequence(contacts, structures_dir, tmp_path):
    file = structures_dir / "5pti.bcif"
    residues = clean(load_structure(file))
    (tmp_path / "records.fasta").write_text(f">5pti_A\n{residues.sequence}\n")
    predicted = predict(contacts.checkpoint(), [file], device="cpu")
    names = [f"{key}_{side}" for side in (1, 2) for key in ("chain", "res_id", "ins_code", "res_name")]
    assert predicted.columns == ("file", *names, "p_contact", "predicted_contact")
    n = len(residues)
    assert len(predicted.rows) == sum(1 for i in range(n) for j in range(i + 6, n))
    assert predicted.rows[0][1:9] == ("A", 1, "", "ARG", "A", 7, "", "GLU")
    with torch.no_grad():
        p = contacts.model(contacts.model.plan.precompute(residues))["logits"].sigmoid().view(n, n)
    np.testing.assert_allclose(
        [r[9] for r in predicted.rows], [p[r[2] - 1, r[6] - 1] for r in predicted.rows], atol=1e-6
    )
    same = predict(contacts.checkpoint(), [tmp_path / "records.fasta"], device="cpu")
    assert [r[1:] for r in same.rows] == [r[1:] for r in predicted.rows]


def test_fasta_records_are_separate_proteins_and_fail_separately(contacts, tmp_path):
    (tmp_path / "records.fa").write_text(">a\nMKTAYIAKQR\n>b\n12\n>c\nGGGGGGGG\n")
    predicted = predict(contacts.checkpoint(), [tmp_path / "records.fa"], device="cpu")
    assert {row[0] for row in predicted.rows} == {f"{tmp_path / 'records.fa'}#a", f"{tmp_path / 'records.fa'}#c"}
    assert [f.source for f in predicted.failures] == [f"{tmp_path / 'records.fa'}#b"]
    vectors = embed(contacts.checkpoint(), [tmp_path / "records.fa"], device="cpu")
    assert vectors.names == ("a", "c")
    assert vectors.node.shape == (18, 16)


def test_sequences_are_failures_for_a_model_of_structures(trained, tmp_path):
    (tmp_path / "records.fa").write_text(">first\nMKTAYIAKQR\n")
    predicted = predict(trained.checkpoint(), [tmp_path / "records.fa"], device="cpu")
    assert predicted.rows == []
    assert predicted.failures[0].error_type == "MissingCoordinatesError" and "'first'" in predicted.failures[0].message


@pytest.mark.slow
def test_labels_of_fasta_records_train_a_model(window, tmp_path):
    rng = np.random.default_rng(0)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    names, rows = [f"p{i}" for i in range(12)], ["file,size,split"]
    with open(tmp_path / "records.fasta", "w") as file:
        for i, name in enumerate(names):
            file.write(f">{name}\n{''.join(rng.choice(letters, 20 + i))}\n")
            rows.append(f"{name},{20 + i},{'val' if i % 4 == 0 else 'train'}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    data = FolderDataset(tmp_path, tmp_path / "labels.csv", task="size")
    assert [len(data.read(e)) for e in data.examples("size")] == list(range(20, 32))
    result = fit(window, data, "size", config=EPOCH)
    assert result.sizes["train"][0] == 9
    assert result.failures == ()


@pytest.mark.slow
def test_labels_of_edges_are_trained_and_predicted(derived, structures_dir):
    """A task may store positions of nodes and derive labels of edges from them."""

    def near(graph, generator):
        source, target = graph.edge_index
        far = (graph.y[source, 0] - graph.y[target, 0]).norm(dim=-1, keepdim=True)
        return graph, (far < 8).float()

    target = Target("near", "edge", "multilabel", 1)
    task = Task("contact", target, binary_cross_entropy, (m.auroc,), "auroc", derive=beta_carbons,
                inputs=InputMasking(corrupt=near), stored_target=CONTACT.stored_target)  # fmt: skip
    embed_layer = component("embed", reads=["aatype", "dihedral"], dim=8)
    model = ModelSpec("edges", features=["dihedral", component("knn", k=6), "edge_distance"], layers=[embed_layer])
    model = replace(model, readout={"edge_attr": "edge_dist"})
    result = fit(model, derived, task, config=replace(EPOCH, epochs=8, lr=0.02))
    assert result.test["auroc"] > 0.8
    files = [structures_dir / "5pti.bcif", structures_dir / "1crn.bcif"]
    found = predict(result.checkpoint(), files, device="cpu")
    assert found.columns == ("file", "chain_1", "res_id_1", "ins_code_1", "res_name_1", "chain_2", "res_id_2",
                             "ins_code_2", "res_name_2", "p_near", "predicted_near")  # fmt: skip
    trained, expected = result.checkpoint().model.eval(), []
    for file in files:
        r = clean(load_structure(file))
        graph = trained.plan.precompute(r)
        probability = trained(graph)["logits"].sigmoid()[:, 0].tolist()
        for (source, end), p in zip(graph.edge_index.T.tolist(), probability, strict=True):
            keys = [(r.chain[i], r.res_id[i], r.ins_code[i], r.res_name[i]) for i in (source, end)]
            expected.append((str(file), *keys[0], *keys[1], p))
    assert [row[:9] for row in found.rows] == [row[:9] for row in expected]
    assert [row[9] for row in found.rows] == pytest.approx([row[9] for row in expected], abs=1e-6)


def test_unknown_types_are_masked_for_models_of_visible_types(window, tmp_path):
    (tmp_path / "records.fa").write_text(">a\nMKXAYX\n")
    plan, failures = build_model(window, MASKED_LM.target).plan, []
    for visible_types in (True, False):
        step = ModelInputs(visible_types=visible_types)
        [protein] = successes(iter_graphs(tmp_path / "records.fa", plan, step=step), failures)
        assert protein.graph.masked.tolist() == [visible_types and letter == "X" for letter in "MKXAYX"]
        assert protein.residues.sequence == "MKXAYX"
    assert failures == []


def test_a_checkpoint_gives_types_to_the_model_but_not_to_featurizers(derived, window, structures_dir, tmp_path):
    result = fit(window, derived, "masked_lm", config=EPOCH)
    path = result.save(tmp_path / "m.safetensors")
    residues = clean(load_structure(structures_dir / "5pti.bcif"))
    graph = collate([build_model(window, MASKED_LM.target).plan.precompute(residues)])
    with torch.no_grad():
        p = result.model(graph)["logits"].softmax(1)
    rows = predict(path, [structures_dir / "5pti.bcif"], device="cpu").rows
    np.testing.assert_allclose([row[6:] for row in rows], p.numpy(), atol=1e-6)
