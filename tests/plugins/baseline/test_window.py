"""``window`` against a search by name, and ``invariants`` under rotation."""

from __future__ import annotations

import pytest
import torch
from e3nn import o3
from protgraph_plugins.baseline.window import Window

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError
from protgraph.nn.layers.irreps import Invariants

READS = ("h", "seq_pos", "chain", "proteins")


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("sizes", [(7, 5, 9), (1,), (1, 2)], ids=str)
def test_window_finds_residues_by_protein_chain_and_position(scene, specs, float64, size, sizes):
    s = scene(sizes)
    layer = Window({n: specs[n] for n in READS}, size=size)
    got = layer(s.inputs(READS))["h"].view(s.num_nodes, 2 * size + 1, -1)
    batch = s.proteins().batch.tolist()
    names = list(zip(batch, s.f["chain"].tolist(), s.f["seq_pos"].tolist(), strict=True))
    where = {name: i for i, name in enumerate(names)}
    for i, (b, c, p) in enumerate(names):
        for column, d in enumerate(range(-size, size + 1)):
            j = where.get((b, c, p + d))
            assert torch.equal(got[i, column], torch.zeros(12) if j is None else s.f["h"][j])


def test_a_gap_in_the_chain_gives_zeros(specs):
    layer = Window({n: specs[n] for n in READS}, size=1)
    from protgraph.ops import Proteins

    f = {
        "h": torch.ones(3, 12),
        "seq_pos": torch.tensor([0, 1, 4]),
        "chain": torch.zeros(3, dtype=torch.long),
        "proteins": Proteins(torch.zeros(3, dtype=torch.long), (3,)),
    }
    assert layer(f)["h"].view(3, 3, 12)[:, :, 0].tolist() == [[0, 1, 1], [1, 1, 0], [0, 1, 0]]


def test_window_of_no_residues_is_empty(specs):
    from protgraph.ops import Proteins

    none = torch.zeros(0, dtype=torch.long)
    layer = Window({n: specs[n] for n in READS}, size=2)
    out = layer({"h": torch.zeros(0, 12), "seq_pos": none, "chain": none, "proteins": Proteins(none, ())})["h"]
    assert out.shape == (0, 60)


def test_a_negative_size_is_an_error(specs):
    with pytest.raises(OptionError, match="size=-1"):
        pg.layers.create("window", specs, options={"size": -1})


@pytest.mark.parametrize("irreps", ["4x0e+3x1o+2x2e", "2x1o+1x0e+2x1e", "5x0e"])
def test_invariants_do_not_rotate_and_count_channels(float64, irreps):
    spec = FieldSpec("x", "node", irreps)
    layer = Invariants({"h": spec})
    x = torch.randn(6, spec.dim)
    turned = x @ spec.o3.D_from_matrix(o3.rand_matrix()).t()
    out = layer({"h": x})["h"]
    assert out.shape == (6, spec.o3.num_irreps) and layer.out["h"].dim == out.size(1)
    torch.testing.assert_close(layer({"h": turned})["h"], out, rtol=1e-12, atol=1e-13)


def test_invariants_are_norms_with_zero_gradient_at_zero():
    layer = Invariants({"h": FieldSpec("x", "node", "1x0e+1x1o")})
    x = torch.tensor([[2.0, 3.0, 0.0, 4.0], [-1.0, 0.0, 0.0, 0.0]], requires_grad=True)
    out = layer({"h": x})["h"]
    assert out.tolist() == [[2, 5], [-1, 0]]
    out.sum().backward()
    assert x.grad[1].tolist() == [1, 0, 0, 0]


def test_invariants_take_fields_with_a_vector_shape():
    layer = Invariants({"h": field("orientation")})
    out = layer({"h": torch.tensor([[[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]]])})["h"]
    assert out.tolist() == [[5, 2]]


def test_pseudoscalars_make_invariants_chiral():
    assert Invariants({"h": FieldSpec("x", "node", "2x0o+2x1o")}).out["h"].chiral
    assert not Invariants({"h": FieldSpec("x", "node", "2x0e+2x1o")}).out["h"].chiral
