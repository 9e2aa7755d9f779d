"""``egnn`` equals the authors' code (reference vectors) and its formula on every edge."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.egnn import EGNN

from benchmarks.plain_geometric import PlainEGCL
from protgraph import layers
from protgraph.data.graph.fields import field
from protgraph.errors import OptionError, WiringError
from protgraph.ops import Edges
from protgraph.testing.symmetry import relative_error
from tests.reference.egnn import load_egcl


def given(specs, *names):
    return {n: field("pos") if n == "pos" else specs[n] for n in ("h", "pos", "edges", *names)}


PLAIN = {"residual": True, "normalize": False, "tanh": False, "reduce": "mean"}


def lively(layer):
    """The same layer with larger motions."""
    layer.coord_mlp[2].weight.data *= 300
    return layer


def ramp(x, start, end):
    return (x.flatten() * torch.linspace(start, end, x.numel(), dtype=x.dtype)).sum()


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("case", ["plain", "attn", "plain_edge"])
def test_reference_state_gives_reference_numbers(shared_reference, case, dtype, tol):
    z = {k: torch.from_numpy(v) for k, v in np.load(shared_reference / "egnn" / f"egcl_{case}.npz").items()}
    z = {k: v.to(dtype) if v.is_floating_point() else v for k, v in z.items()}
    layer = load_egcl({k[2:]: v for k, v in z.items() if k.startswith("w/")}, **PLAIN)

    # The reference's rows are center and neighbor: ours swapped, and ours are sorted by center.
    center, neighbor = z["in/row_col"]
    order = center.argsort(stable=True)
    h, x = z["in/h"].requires_grad_(), z["in/x"].requires_grad_()
    f = {"h": h, "pos": x, "edges": Edges(torch.stack([neighbor, center])[:, order], len(h))}
    if "in/edge_attr" in z:
        f["edge_attr"] = z["in/edge_attr"][order]
    out = layer(f)
    loss = ramp(out["h"], -1, 1) + ramp(out["pos"], 1, -1)
    loss.backward()

    assert relative_error(out["h"], z["out/h"]) <= tol
    assert relative_error(out["pos"], z["out/x"]) <= tol
    assert relative_error(loss[None], z["out/L"][None]) <= tol
    assert relative_error(h.grad, z["grad/h"]) <= tol
    assert relative_error(x.grad, z["grad/x"]) <= tol
    for name, parameter in layer.named_parameters():
        assert relative_error(parameter.grad, z[f"grad/w/{name}"]) <= tol
    if dtype == torch.float64:  # a motion is a small difference of positions
        assert relative_error(out["motion"], z["out/x"] - z["in/x"]) <= tol


OPTIONS = {
    "default": {},
    "attention": {"attention": True},
    "bounded": {"normalize": True, "tanh": True},
    "summed": {"reduce": "sum", "scale": 5.0},
    "no_skip": {"residual": False, "dim": 9, "hidden": 7},
}


@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("with_edge", [True, False])
def test_layer_equals_the_formula_on_every_edge(scene, specs, agree, float64, degree, options, with_edge):
    s = scene(degree=degree)
    fields = given(specs, *(["edge_attr"] if with_edge else []))
    layer = lively(EGNN(fields, **{"dim": 12, **OPTIONS[options]}))
    h, e = (s.f[n].requires_grad_() for n in ("h", "edge_attr"))
    pos = (5 * torch.randn(s.num_nodes, 3)).requires_grad_()
    s.f["pos"] = pos
    plain = PlainEGCL(layer)
    f = s.inputs(fields)
    wrt = [h, pos, *([e] if with_edge else []), layer.edge_mlp[0].weight, layer.edge_mlp[0].bias]

    def ours():
        out = layer(f)
        return torch.cat([out["h"], out["pos"]], 1)

    agree(ours, lambda: torch.cat(plain(h, pos, s.index, e if with_edge else None), 1), wrt, tol=1e-12)


def test_motions_are_exact_in_float32_far_from_the_origin(scene, specs, float64):
    s = scene(degree=4)
    layer = EGNN(given(specs), dim=12)  # moves nodes by some mÅ at first
    pos = (5 * torch.randn(s.num_nodes, 3)).float() + 100
    exact = layer(s.inputs(layer.fields, pos=pos.double()))["motion"]
    f = {n: x.float() if isinstance(x, torch.Tensor) else x for n, x in s.inputs(layer.fields, pos=pos).items()}
    out = layer.float()(f)
    assert relative_error(out["motion"].double(), exact) < 1e-5 < relative_error((out["pos"] - pos).double(), exact)


def test_written_positions_are_points_in_the_field_table(specs):
    layer = EGNN(given(specs), dim=12)
    assert layer.out["pos"] == field("pos")
    assert layer.out["h"].irreps == "12x0e"
    assert layer.out["motion"].irreps == "1x1o"


def test_invalid_wiring_and_options_are_errors(specs):
    with pytest.raises(WiringError, match="dim=12"):
        EGNN(given(specs), dim=16)
    with pytest.raises(OptionError, match="reduce='max'"):
        layers.create("egnn", given(specs), options={"dim": 12, "reduce": "max"})
