"""``egnn`` equals the authors' code (reference vectors) and its formula on every edge."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.plain_geometric import PlainEGCL
from protgraph.data.graph.fields import field
from protgraph.errors import OptionError, WiringError
from protgraph.nn.layers.egnn import EGNN
from protgraph.ops import Edges
from protgraph.symmetry import random_reflections, random_rotations, relative_error
from tests.reference.egnn import egnn_of


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
    layer = egnn_of({k[2:]: v for k, v in z.items() if k.startswith("w/")}, **PLAIN)

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


@pytest.mark.parametrize("options", ["default", "attention", "bounded"])
def test_h_is_invariant_and_positions_move_with_the_protein(scene, specs, float64, options):
    s = scene(degree=4)
    layer = lively(EGNN(given(specs), **{"dim": 12, **OPTIONS[options]}))
    s.f["pos"] = 5 * torch.randn(s.num_nodes, 3)
    there = layer(s.inputs(layer.fields))
    assert (there["pos"] - s.f["pos"]).abs().max() > 0.1
    shift = torch.tensor([100.0, -50.0, 30.0])
    for q in (*random_rotations(8), *random_reflections(2)):
        moved = layer(s.inputs(layer.fields, pos=s.f["pos"] @ q.T + shift))
        assert relative_error(moved["h"], there["h"]) < 1e-10
        assert relative_error(moved["pos"] - s.f["pos"] @ q.T - shift, there["motion"] @ q.T) < 1e-10
        assert relative_error(moved["motion"], there["motion"] @ q.T) < 1e-12


def test_motions_are_exact_in_float32_far_from_the_origin(scene, specs, float64):
    s = scene(degree=4)
    layer = EGNN(given(specs), dim=12)  # moves nodes by some mÅ at first
    pos = (5 * torch.randn(s.num_nodes, 3)).float() + 100
    exact = layer(s.inputs(layer.fields, pos=pos.double()))["motion"]
    f = {n: x.float() if isinstance(x, torch.Tensor) else x for n, x in s.inputs(layer.fields, pos=pos).items()}
    out = layer.float()(f)
    assert relative_error(out["motion"].double(), exact) < 1e-5 < relative_error((out["pos"] - pos).double(), exact)


@pytest.mark.parametrize("options", ["default", "bounded"])
def test_coincident_nodes_and_lonely_ones_stay_finite(scene, specs, options):
    s = scene((1, 6), degree=0) if options == "default" else scene((5, 6), degree=3)
    layer = EGNN(given(specs), **{"dim": 12, **OPTIONS[options]})
    pos = torch.zeros(s.num_nodes, 3, requires_grad=True)
    out = layer(s.inputs(layer.fields, pos=pos))
    (out["h"].sum() + out["pos"].square().sum() + out["pos"].sum()).backward()
    assert torch.isfinite(out["h"]).all()
    assert torch.equal(out["pos"], pos)
    assert torch.isfinite(pos.grad).all() and pos.grad.abs().max() < 1e3


def test_written_positions_are_points_in_the_field_table(specs):
    layer = EGNN(given(specs), dim=12)
    assert layer.out["pos"] == field("pos")
    assert layer.out["h"].irreps == "12x0e"
    assert layer.out["motion"].irreps == "1x1o"


def test_invalid_wiring_and_options_are_errors(specs):
    with pytest.raises(WiringError, match="dim=12"):
        EGNN(given(specs), dim=16)
    with pytest.raises(OptionError, match="reduce='max'"):
        EGNN(given(specs), dim=12, reduce="max")
