"""Each component against an independent reference, the model by its name, and the conformity checks of protgraph."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.task import SplitPredictions


@pytest.fixture(scope="module")
def residues() -> pg.Residues:
    """Return a protein of the dataset pdb_core."""
    example = pg.datasets.create("pdb_core").examples("secondary_structure")[0]
    return pg.clean(pg.load_structure(example.path), chains=example.chains)


def test_crowding_equals_brute_force(residues: pg.Residues) -> None:
    crowding = pg.featurizers.create("template_crowding", options={"radius": 8.0})
    distance = np.linalg.norm(residues.pos[:, None].astype(float) - residues.pos[None].astype(float), axis=-1)
    expected = np.log1p((distance <= 8.0).sum(1) - 1)
    np.testing.assert_allclose(crowding(residues)["template_crowding"][:, 0], expected, rtol=1e-6)


def test_mean_equals_dense_matrices() -> None:
    torch.manual_seed(0)
    specs = {"h": pg.FieldSpec("h", "node", "5x0e"), "edges": pg.field("edges")}
    layer = pg.layers.create("template_mean", specs, options={"dim": 3})
    index = torch.tensor([[1, 2, 0, 2], [0, 0, 1, 1]])  # residue 2 has no neighbors
    h = torch.randn(3, 5)
    mean = torch.stack([(h[1] + h[2]) / 2, (h[0] + h[2]) / 2, torch.zeros(5)])
    expected = h @ layer.root.weight.T + layer.root.bias + mean @ layer.neighbors.weight.T
    out = layer({"h": h, "edges": pg.Edges(index, num_nodes=3)})["h"]
    torch.testing.assert_close(out, expected)


def test_long_range_edges_equal_brute_force(residues: pg.Residues) -> None:
    edges = pg.featurizers.create("template_long_range", options={"radius": 9.0, "separation": 5})(residues)
    distance = np.linalg.norm(residues.pos[:, None].astype(float) - residues.pos[None].astype(float), axis=-1)
    far = np.abs(residues.seq_pos[:, None] - residues.seq_pos) >= 5
    assert set(zip(edges.target.tolist(), edges.source.tolist(), strict=True)) == {
        (int(i), int(j)) for i, j in np.argwhere((distance <= 9.0) & far)
    }


def test_bends_of_three_atoms_are_known() -> None:
    task = pg.tasks.get("template_bend")
    protein = pg.testing.make_protein((5,))
    labels = task.labels(protein)
    a, b = protein.pos[1] - protein.pos[2], protein.pos[3] - protein.pos[2]
    angle = np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert labels[0] == labels[-1] == -1 and labels[2] == int(angle < 105)


def test_focal_loss_of_a_uniform_prediction() -> None:
    loss = pg.tasks.get("template_bend").loss(torch.zeros(3, 2), torch.tensor([0, 1, -1]))
    torch.testing.assert_close(loss, torch.tensor(0.25 * np.log(2), dtype=torch.float32))


def test_bonded_residues_are_cysteines() -> None:
    dataset = pg.datasets.create("template_disulfides")
    for example in dataset.examples("disulfide"):
        labels, protein = dataset.labels("disulfide", example), dataset.read(example)
        assert set(protein.res_name[labels.values[:, 0] == 1].tolist()) == {"CYS"}


def test_a_file_has_its_atoms(tmp_path) -> None:
    path = tmp_path / "two.template"
    path.write_text("#template\nA 5 GLY 1.0 2.0 3.0\nA 6 TRP 4.8 2.0 3.0\n")
    residues = pg.clean(pg.load_structure(path))
    assert (residues.sequence, residues.res_id.tolist()) == ("GW", [5, 6])
    np.testing.assert_allclose(residues.pos, [[1, 2, 3], [4.8, 2, 3]], rtol=1e-6)


def test_recall_is_the_mean_of_the_classes() -> None:
    logits = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    predictions = SplitPredictions(logits, torch.tensor([0, 0, 1, 1]))
    assert pg.metrics.get("template_recall")(predictions) == 0.75


def test_the_command_prints_a_row_per_residue(tmp_path) -> None:
    path = tmp_path / "two.template"
    path.write_text("#template\nA 5 GLY 1.0 2.0 3.0\nA 6 TRP 4.8 2.0 3.0\n")
    command = [sys.executable, "-m", "protgraph", "template", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split()[4:] == ["A", "5", "GLY", "1", "A", "6", "TRP", "1"]


def test_the_model_fits_one_protein(residues: pg.Residues) -> None:
    target = pg.Target("residue_type", "node", "classification", 21, head="template_classifier")
    model = pg.build_model("template", target, seed=0)
    graph = model.plan.precompute(residues)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(model(graph)["logits"], graph.aatype)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


COMPONENTS = [
    "template",
    "template_bend",
    "template_classifier",
    "template_crowding",
    "template_disulfides",
    "template_long_range",
    "template_mean",
    "template_recall",
]


@pg.testing.parametrize_with_checks(COMPONENTS)
def test_conformity(component, check) -> None:
    """Run the checks of every component: symmetry, batching, gradients, degenerate proteins and more."""
    check(component)
