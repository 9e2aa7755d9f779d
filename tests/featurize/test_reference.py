"""Features of one protein (6MRR) against the programs of two papers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import Residues
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.residues.loss_report import LossReport


def chain_of(backbone: np.ndarray) -> Residues:
    n = len(backbone)
    return Residues(
        name="6mrr",
        chain=np.full(n, "A"),
        res_id=np.arange(n),
        ins_code=np.full(n, ""),
        res_name=np.full(n, "UNK"),
        aatype=np.full(n, 20),
        pos=backbone[:, 1],
        backbone=backbone,
        b_factor=np.zeros(n, np.float32),
        seq_pos=np.arange(n),
        atom_pos=backbone.reshape(-1, 3),
        atom_name=np.tile(["N", "CA", "C", "O"], n),
        atom_element=np.tile(["N", "C", "C", "O"], n),
        atom_residue=np.repeat(np.arange(n), 4),
        report=LossReport(),
    )


@pytest.fixture(scope="module")
def gvp(shared_reference):
    with np.load(shared_reference / "gvp" / "features_6MRR.npz") as vectors:
        return {name: vectors[name] for name in vectors.files}


def test_features_equal_gvp_pytorch(gvp):
    graph = build_graph(
        chain_of(gvp["in/coords"]),
        ["dihedral", "orientation", component("knn", k=30), "edge_distance", "edge_direction", "edge_rbf"],
    )
    assert np.array_equal(graph.edge_index, gvp["out/edge_index"])
    assert np.abs(graph.edge_rbf.numpy() - gvp["out/edge_s"][:, :16]).max() < 1e-5
    assert np.abs(graph.edge_direction.numpy() - gvp["out/edge_v"][:, 0]).max() < 1e-5
    assert np.abs(graph.orientation.numpy() - gvp["out/node_v"][:, :2]).max() < 1e-5
    defined = graph.dihedral_mask.repeat(1, 2)  # they write cos 0 = 1 where an angle is undefined
    assert (graph.dihedral - torch.from_numpy(gvp["out/node_s"]))[defined].abs().max() < 1e-5


def test_virtual_cb_equals_proteinmpnn(shared_reference):
    folder = shared_reference / "proteinmpnn"
    backbone = np.load(folder / "pub_6MRR.npz")["in/X"][0]
    expected = np.load(folder / "mid_6MRR_vanilla_v_48_020.npz")["Cb"]
    assert np.abs(virtual_cb(backbone) - expected).max() < 1e-5
