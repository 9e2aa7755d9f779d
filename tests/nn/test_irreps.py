"""Linear maps and normalization of any irreps."""

from __future__ import annotations

import pytest
import torch
from e3nn import o3

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.nn.layers.irreps import IrrepsLinear, IrrepsNorm
from protgraph.testing.symmetry import act, random_reflections, random_rotations, relative_error

IRREPS = "5x0e+3x1o+2x2e+1x0o"
FIELDS = {"h": FieldSpec("h", "node", IRREPS), "orientation": field("orientation")}


def test_linear_equals_e3nn_with_the_same_weights(float64):
    layer = IrrepsLinear(FIELDS, irreps="4x0e+6x1o+2x2e")
    f = {"h": torch.randn(7, 25), "orientation": torch.randn(7, 2, 3)}
    witness = o3.Linear(IRREPS + "+2x1o", "4x0e+6x1o+2x2e")
    channels = {"0e": [0], "1o": [1, 4], "2e": [2]}  # input blocks of each output irrep
    views = {(i.i_in, i.i_out): w for _, i, w in witness.weight_views(yield_instruction=True)}
    with torch.no_grad():
        for out, (linear, (_, ir)) in enumerate(zip(layer.maps, layer.irreps_out, strict=True)):
            widths = [layer.irreps_in[block].mul for block in channels[str(ir)]]
            for block, weight in zip(channels[str(ir)], linear.weight.split(widths, 1), strict=True):
                views[block, out].copy_(weight.T * sum(widths) ** 0.5)  # e3nn divides by it in every call
    want = witness(torch.cat([f["h"], f["orientation"].flatten(1)], 1))
    want[:, :4] += layer.maps[0].bias
    assert relative_error(layer(f)["h"], want, irreps="4x0e+6x1o+2x2e") < 1e-13


def test_norm_equals_layer_norm_on_scalars_and_root_mean_square_on_vectors(float64):
    layer = IrrepsNorm({"h": FieldSpec("h", "node", "5x0e+3x1o")}, eps=0.0)
    h = torch.randn(7, 14)
    got = layer({"h": h})["h"]
    assert relative_error(got[:, :5], torch.nn.functional.layer_norm(h[:, :5], (5,), eps=0.0)) < 1e-14
    v = got[:, 5:].view(7, 3, 3)
    assert relative_error(v.square().sum(2).mean(1), torch.ones(7)) < 1e-14
    assert (
        relative_error(
            torch.nn.functional.normalize(v, dim=2), torch.nn.functional.normalize(h[:, 5:].view(7, 3, 3), dim=2)
        )
        < 1e-14
    )


@pytest.mark.parametrize("element", [*random_rotations(4), *random_reflections(4)])
def test_both_are_equivariant(float64, element):
    linear, norm = IrrepsLinear(FIELDS, irreps="4x0e+6x1o+2x2e+1x0o"), IrrepsNorm({"h": FIELDS["h"]})
    f = {"h": torch.randn(7, 25), "orientation": torch.randn(7, 2, 3)}
    turned = {"h": act(element, f["h"], IRREPS), "orientation": act(element, f["orientation"], "2x1o")}
    for layer, reads in ((linear, f), (norm, {"h": f["h"]})):
        irreps = layer.out["h"].irreps
        got = layer({name: turned[name] for name in reads})["h"]
        assert relative_error(got, act(element, layer(reads)["h"], irreps), irreps=irreps) < 1e-12


def test_norm_of_zero_vectors_is_zero_with_finite_gradients():
    layer = IrrepsNorm({"h": FieldSpec("h", "node", "2x0e+3x1o")})
    h = torch.zeros(4, 11, requires_grad=True)
    out = layer({"h": h})["h"]
    out.sum().backward()
    assert torch.equal(out, torch.zeros(4, 11))
    assert h.grad.isfinite().all()


def test_invalid_wiring_is_an_error():
    with pytest.raises(WiringError, match="2e"):
        IrrepsLinear({"orientation": field("orientation")}, irreps="4x1o+1x2e")
    with pytest.raises(WiringError, match="'aatype'"):
        IrrepsLinear({"aatype": field("aatype")})
    with pytest.raises(WiringError, match="edge"):
        IrrepsLinear({"h": FIELDS["h"], "edge_vec": field("edge_vec")})
