"""The structure module: frames from the origin, a peptide from the sequence, and overfitting one protein."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.ipa.attention import IPA
from protgraph_plugins.ipa.frames import BackboneUpdate, PlaceBackbone
from protgraph_plugins.structure_module.task import STRUCTURE_PREDICTION, fape, lddt_ca, rmsd_superposed

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.model import ProteinModel
from protgraph.ops import Proteins
from protgraph.task.predictions import SplitPredictions
from protgraph.testing import make_protein

F64 = torch.float64
H = FieldSpec("h", "node", "6x0e")


def built(seed: int = 0) -> ProteinModel:
    return pg.build_model("structure_module", STRUCTURE_PREDICTION.target, seed=seed)


def test_without_frames_residues_start_at_the_origin():
    g = torch.Generator().manual_seed(0)
    h = torch.randn(5, 6, generator=g, dtype=F64)
    proteins = Proteins(torch.tensor([0, 0, 0, 1, 1]), (3, 2))
    at_origin = {"frame": torch.eye(3, dtype=F64).expand(5, 3, 3), "pos": torch.zeros(5, 3, dtype=F64)}
    spaces = {"frame": field("frame").as_("frame", irreps="3x1o"), "pos": field("pos")}
    given = {"h": H, "proteins": field("proteins")}
    torch.manual_seed(0)
    ipa, update = IPA(given).double(), BackboneUpdate({"h": H}).double()
    other, moved = IPA(given | spaces).double(), BackboneUpdate({"h": H} | spaces).double()
    other.load_state_dict(ipa.state_dict())
    moved.load_state_dict(update.state_dict())
    f = {"h": h, "proteins": proteins}
    torch.testing.assert_close(ipa(f)["h"], other(f | at_origin)["h"], rtol=1e-12, atol=1e-12)
    expected = moved({"h": h} | at_origin)
    for name, value in update({"h": h}).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-12, atol=1e-12)


def test_models_that_start_at_the_origin_are_not_equivariant_and_declare_it():
    update = BackboneUpdate({"h": H})
    assert [update.out[name].irreps for name in ("frame", "pos", "motion")] == ["9x0e", "3x0e", "3x0e"]
    again = BackboneUpdate({"h": H, "frame": update.out["frame"], "pos": update.out["pos"]})
    assert again.out["pos"].irreps == "3x0e"
    assert PlaceBackbone({"h": H, "frame": update.out["frame"], "pos": update.out["pos"]}).out["backbone"].is_scalar
    with pytest.raises(WiringError, match="backbone_update"):
        BackboneUpdate({"h": H, "frame": update.out["frame"], "pos": field("pos")})
    with pytest.raises(WiringError, match="pos"):
        BackboneUpdate({"h": H, "pos": field("pos")})


def test_the_prediction_is_a_peptide_from_the_sequence():
    model = built().double().eval()
    residues = make_protein((12, 7), seed=5)
    fasta = residues.hide({"coordinates", "sidechain", "b_factor"})
    assert not fasta.has_coordinates
    predicted = model(model.plan.precompute(residues))["logits"]
    assert torch.equal(predicted, model(model.plan.precompute(fasta))["logits"])
    lengths = (predicted[:, [1, 2, 3]] - predicted[:, [0, 1, 2]]).norm(dim=-1)  # N–CA, CA–C, C–O
    expected = torch.tensor([1.46, 1.53, 1.23], dtype=F64).expand_as(lengths)
    torch.testing.assert_close(lengths, expected, rtol=0, atol=0.01)


@pytest.mark.slow
def test_training_fits_the_backbone_of_one_protein():
    torch.manual_seed(0)
    residues = make_protein((20,), seed=2)
    model, y = built(), torch.from_numpy(STRUCTURE_PREDICTION.labels(residues))
    graph = model.plan.precompute(STRUCTURE_PREDICTION.inputs.visible(residues, residues.name))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(250):
        optimizer.zero_grad()
        fape(model(graph)["logits"], y).backward()
        optimizer.step()
    with torch.no_grad():
        predicted = SplitPredictions(model.eval()(graph)["logits"], y)
    assert lddt_ca(predicted) > 0.9
    assert rmsd_superposed(predicted) < 1.5
