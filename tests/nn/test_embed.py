"""``embed`` is one linear map of all fields that it reads; ``constant`` reads none."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import one_hot

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.nn.layers.embed import Constant, Embed


def test_is_one_matrix_over_one_hots_reals_and_masks(float64):
    fields = {n: field(n) for n in ("aatype", "dihedral", "dihedral_mask")}
    layer = Embed(fields, dim=8)
    f = {
        "aatype": torch.randint(0, 21, (10,)),
        "dihedral": torch.randn(10, 6),
        "dihedral_mask": torch.rand(10, 3) > 0.5,
    }
    matrix = torch.cat([layer.tables["aatype"].weight.t(), layer.linear.weight], 1)  # (8, 21 + 6 + 3)
    x = torch.cat([one_hot(f["aatype"], 21).double(), f["dihedral"], f["dihedral_mask"].double()], 1)
    torch.testing.assert_close(layer(f)["h"], x @ matrix.t() + layer.linear.bias, rtol=1e-13, atol=1e-14)


def test_edge_fields_make_edge_features():
    layer = Embed({n: field(n) for n in ("edge_rbf", "edge_offset")}, dim=8)
    assert layer.out["h"].level == "edge" and layer.out["h"].irreps == "8x0e"
    assert layer({"edge_rbf": torch.randn(4, 16), "edge_offset": torch.randn(4, 66)})["h"].shape == (4, 8)


def test_pseudoscalars_make_chiral_features():
    assert Embed({"dihedral": field("dihedral")}).out["h"].chiral
    assert not Embed({"aatype": field("aatype")}).out["h"].chiral


@pytest.mark.parametrize(
    "names, match",
    [
        (["orientation"], "'invariants'"),
        (["pos"], "'pos'.*point"),
        (["seq_pos"], "'seq_pos'"),
        (["edges"], "'edges'.*object"),
        (["aatype", "edge_rbf"], "'edge_rbf': 'edge'"),
        ([], "embed"),
    ],
)
def test_fields_that_cannot_be_embedded_are_errors(names, match):
    with pytest.raises(WiringError, match=match):
        Embed({n: field(n) for n in names})


@pytest.mark.parametrize("learned", [False, True])
def test_constant_is_one_on_every_node(scene, learned):
    s = scene((3, 4))
    layer = Constant({"proteins": field("proteins")}, dim=5, learned=learned)
    assert torch.equal(layer(s.inputs(["proteins"]))["h"], torch.ones(7, 5))
    assert len(list(layer.parameters())) == learned
    assert layer.double()(s.inputs(["proteins"]))["h"].dtype == torch.float64


def test_a_mask_of_one_column_counts_as_0_and_1():
    spec = FieldSpec("flag", "node", "0e", "bool", shape=())
    layer = Embed({"flag": spec}, dim=4)
    out = layer({"flag": torch.tensor([True, False])})["h"]
    torch.testing.assert_close(out[0] - out[1], layer.linear.weight[:, 0])
