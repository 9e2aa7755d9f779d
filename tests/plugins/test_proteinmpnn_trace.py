"""CA-only weights against reference vectors, including the defects of their features, and corrected features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import Decoding, teacher_forced_log_probs, unconditional_log_probs
from protgraph_plugins.proteinmpnn.family import VARIANTS
from protgraph_plugins.proteinmpnn.trace import QUATERNION_TOLERANCE
from protgraph_plugins.proteinmpnn.weights import convert_proteinmpnn_state, load_proteinmpnn, read_proteinmpnn_state

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import collate
from protgraph.model import build_model
from protgraph.structure import ALPHABET, LossReport, Residues
from protgraph.testing.symmetry import random_rotations

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


def residues_of(z) -> Residues:
    """Return the CA trace of the vectors."""
    pos, types = z["in/X_ca"][0], z["in/S_ca"][0].astype(np.int64)
    n = len(types)
    backbone = np.full((n, 4, 3), np.nan, pos.dtype)
    backbone[:, 1] = pos
    return Residues(
        name="trace",
        chain=z["in/chain_encoding_ca"][0].astype(str),
        res_id=np.arange(n),
        ins_code=np.full(n, ""),
        res_name=np.array(list(ALPHABET))[types],
        aatype=types,
        pos=pos,
        backbone=backbone,
        b_factor=np.zeros(n),
        seq_pos=z["in/residue_idx_ca"][0].astype(np.int64),
        atom_pos=np.zeros((0, 3)),
        atom_name=np.zeros(0, "U4"),
        atom_element=np.zeros(0, "U2"),
        atom_residue=np.zeros(0, np.int64),
        report=LossReport(),
    )


@pytest.fixture(scope="module")
def state(proteinmpnn_weights):
    return read_proteinmpnn_state(proteinmpnn_weights("ca_v_48_020"))


@torch.no_grad()
def decoding(state, residues, variant="ca_v_48_020", dtype=torch.float64) -> Decoding:
    model = build_model(f"proteinmpnn.{variant}", TARGET, seed=0).to(dtype).eval()
    model.load_state_dict(convert_proteinmpnn_state({k: v.to(dtype) for k, v in state.items()}))
    return Decoding.of(model, collate([model.plan.precompute(residues)]))


@pytest.mark.parametrize("dtype, limit", [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("entry", ["5L33", "6MRR"])
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.startswith("ca_v")])
@torch.no_grad()
def test_log_probabilities_equal_the_reference(shared_reference, proteinmpnn_weights, variant, entry, dtype, limit):
    with np.load(shared_reference / "proteinmpnn" / f"pub_{entry}.npz") as z:
        found = decoding(read_proteinmpnn_state(proteinmpnn_weights(variant)), residues_of(z), variant, dtype)
        rank = torch.from_numpy(z["in/decoding_order_ca"][0].astype(np.int64)).argsort()
        for ours, key in (
            (teacher_forced_log_probs(found, rank), "log_probs_f64"),
            (unconditional_log_probs(found), "uncond_log_probs_f64"),
        ):
            assert ours.dtype == dtype
            assert np.abs(ours.double().numpy() - z[f"out/{variant}/{key}"]).max() <= limit
        if dtype == torch.float32:
            assert (
                np.abs(teacher_forced_log_probs(found, rank).numpy() - z[f"out/{variant}/log_probs_f32"]).max() <= limit
            )


@pytest.mark.slow
@torch.no_grad()
def test_published_features_are_not_invariant_and_corrected_ones_are(state, structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    names = ("pos", "backbone")
    center = residues.pos.astype("f8").mean(0)  # centered: the origin replaces missing neighbors
    residues = replace(residues, **{n: getattr(residues, n).astype("f8") - center for n in names})
    turn, shift = random_rotations(4)[3].double().numpy(), np.array([30.0, -20.0, 50.0])
    for moved, least in (({"q": turn, "shift": 0.0}, 1e-2), ({"q": np.eye(3), "shift": shift}, 1e-3)):
        other = replace(residues, **{n: getattr(residues, n) @ moved["q"].T + moved["shift"] for n in names})
        change = {}
        for variant in ("ca_v_48_020", "ca_corrected_v_48_020"):
            here, there = (unconditional_log_probs(decoding(state, r, variant)) for r in (residues, other))
            change[variant] = here - there
        assert change["ca_v_48_020"].abs().max() > least
        assert change["ca_corrected_v_48_020"].abs().max() < 1e-9


def test_loading_weights_of_features_that_are_not_invariant_warns(proteinmpnn_folder):
    with pytest.warns(UserWarning, match="ca_corrected_v_48_020"):
        load_proteinmpnn("proteinmpnn.ca_v_48_020")


@pytest.mark.slow
def test_corrected_features_pass_the_conformity_suite():
    for name in ("ca_pair_rbf", "ca_orientation"):

        class Corrected(pg.featurizers.get(name)):
            conformity = pg.data.Conformity(tolerance=QUATERNION_TOLERANCE)

            def __init__(self) -> None:
                super().__init__(corrected=True)

        component = pg.testing.Component(name, "featurizer", Corrected)
        assert not [r for r in pg.testing.check_component(component) if r.status == "failed"]
