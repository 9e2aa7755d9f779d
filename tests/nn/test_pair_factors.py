"""Factors of pair features give what their dense products give, without a tensor of pairs."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.ipa.attention import IPA
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.nn.layers.attention import Attention
from protgraph.ops import Proteins
from protgraph.testing.symmetry import random_rotations

pytestmark = pytest.mark.usefixtures("float64")
WIDTH, RANK = 6, 3


def batch_of(sizes: tuple[int, ...]) -> Proteins:
    return Proteins(torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)), sizes)


def some_inputs(sizes: tuple[int, ...]) -> dict[str, object]:
    n = sum(sizes)
    f = {name: torch.randn(n, RANK, requires_grad=True) for name in ("pair_left", "pair_right")}
    f |= {"h": torch.randn(n, WIDTH, requires_grad=True), "pos": 8 * torch.randn(n, 3, requires_grad=True)}
    return f | {"frame": random_rotations(n), "proteins": batch_of(sizes), "seq_pos": torch.arange(n)}


def specs_of(f: dict[str, object]) -> dict[str, FieldSpec]:
    known = {"h": FieldSpec("h", "node", f"{WIDTH}x0e"), "pair": FieldSpec("pair", "pair", f"{RANK}x0e")}
    known |= {name: FieldSpec(name, "node", f"{RANK}x0e") for name in ("pair_left", "pair_right")}
    return {name: known.get(name) or field(name) for name in f}


def dense(f: dict[str, object], sizes: tuple[int, ...]) -> dict[str, object]:
    """Replace factors by their products, (i, j) row-major in each protein."""
    parts = zip(f["pair_left"].split(sizes), f["pair_right"].split(sizes), strict=True)
    pair = torch.cat([(a[:, None] * b[None]).flatten(0, 1) for a, b in parts])
    return {name: x for name, x in f.items() if not name.startswith("pair_")} | {"pair": pair}


@pytest.mark.parametrize("sizes", [(5, 3, 7), (6,), (4, 4)], ids=str)
@pytest.mark.parametrize("kind", ["attention", "rotary", "causal", "ipa"])
def test_factors_equal_their_dense_products(kind, sizes):
    f = some_inputs(sizes)
    names = {"pos", "frame"} if kind == "ipa" else {"seq_pos"} if kind == "rotary" else set()
    f = {name: x for name, x in f.items() if name in names | {"h", "proteins", "pair_left", "pair_right"}}
    other = dense(f, sizes)
    make = IPA if kind == "ipa" else Attention
    options = {"causal": True} if kind == "causal" else {}
    ours, theirs = (make(specs_of(x), dim=8, heads=2, **options) for x in (f, other))
    renamed = {k.replace("attention.pair_factors.", "attention.pair."): v for k, v in ours.state_dict().items()}
    theirs.load_state_dict(renamed)
    wrt = [x for x in f.values() if isinstance(x, Tensor) and x.requires_grad]
    cotangent = torch.randn(sum(sizes), 8)
    results = []
    for layer, inputs in ((ours, f), (theirs, other)):
        y = layer(inputs)["h"]
        weights = [p for _, p in sorted(layer.named_parameters(), key=lambda p: p[0].replace("_factors", ""))]
        results.append([y, *torch.autograd.grad(y, [*wrt, *weights], cotangent)])
    for a, b in zip(*results, strict=True):
        assert (a - b).abs().max() <= 1e-12 * b.abs().max() + 1e-15


class _Largest(TorchDispatchMode):
    """Record the largest number of elements of a result."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else (out,):
            if isinstance(x, Tensor):
                self.elements = max(self.elements, x.numel())
        return out


@pytest.mark.parametrize("factors", [True, False])
@pytest.mark.parametrize("make", [Attention, IPA])
def test_no_tensor_has_a_number_per_pair(make, factors):
    n = 1000
    f = some_inputs((n,))
    f = {k: x for k, x in f.items() if k != "seq_pos" and (make is IPA or k not in ("pos", "frame"))}
    f = f if factors else {k: x for k, x in f.items() if not k.startswith("pair_")}
    layer = make(specs_of(f), dim=8, heads=2)
    with _Largest() as largest:
        layer(f)["h"].sum().backward()
    assert 0 < largest.elements < n * n


@pytest.mark.parametrize("make", [Attention, IPA])
@pytest.mark.parametrize("change", [{"pair_right": None}, {"pair_right": FieldSpec("x", "node", "4x0e")}], ids=str)
def test_factors_must_be_two_of_equal_width(make, change):
    specs = specs_of(dict.fromkeys(("h", "proteins", "pair_left", "pair_right"), 0)) | change
    with pytest.raises(WiringError, match="pair_right"):
        make({name: spec for name, spec in specs.items() if spec is not None}, dim=8, heads=2)


def test_ipa_reads_pair_features_from_one_place():
    with pytest.raises(WiringError, match="'pair'"):
        IPA(specs_of(dict.fromkeys(("h", "proteins", "pair", "pair_left", "pair_right"), 0)))
