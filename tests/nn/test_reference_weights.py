"""Loaders of published weights ask for options that change values and that the weights do not contain."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.egnn import EGNN
from protgraph_plugins.esm.weights import encoder_from_esm
from protgraph_plugins.gearnet.reference import layers_from_torchdrug
from protgraph_plugins.ipa.attention import IPA
from protgraph_plugins.ipa.frames import BackboneUpdate
from protgraph_plugins.tfn import TFN

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import CheckpointError, OptionError
from tests.reference.egnn import load_egcl
from tests.reference.mace import load_product_basis
from tests.reference.openfold import (
    load_backbone_update,
    load_global_attention,
    load_ipa,
    load_outer_product_mean,
    load_triangle_attention,
    load_triangle_multiplication,
)
from tests.reference.schnet import load_interaction_block
from tests.reference.tfn import load_tensor_product_conv

H = {"h": FieldSpec("h", "node", "8x0e"), "edges": field("edges"), "pos": field("pos"), "proteins": field("proteins")}
H |= {"edge_vec": field("edge_vec"), "frame": field("frame")}
PAIR = {"pair": FieldSpec("pair", "pair", "8x0e"), "proteins": field("proteins")}
#: Loader, a state, and required options.
CASES = {
    "egnn": (
        load_egcl,
        lambda: EGNN({k: H[k] for k in ("h", "pos", "edges")}).state_dict(),
        {"residual": True, "normalize": False, "tanh": False, "reduce": "mean"},
    ),
    "tfn": (
        lambda state, **options: load_tensor_product_conv(state, irreps_in="8x0e", irreps="8x0e", **options),
        lambda: TFN({k: H[k] for k in ("h", "edge_vec", "edges")}, irreps="8x0e", mode="full").state_dict(),
        {"lmax": 1, "gate": True, "reduce": "sum", "cutoff": 5.0},
    ),
    "ipa": (
        load_ipa,
        lambda: (
            IPA({k: H[k] for k in ("h", "pos", "frame", "proteins")} | PAIR).state_dict()
            | {"linear_b.bias": torch.zeros(4)}
        ),
        {"query_points": 4, "unit": 10.0},
    ),
    "backbone_update": (
        load_backbone_update,
        lambda: BackboneUpdate({"h": H["h"]}).state_dict(),
        {"unit": 10.0},
    ),
    "gearnet": (
        layers_from_torchdrug,
        lambda: {f"layers.0.{k}": v for k, v in _convolution().items()},
        {"shortcut": False},
    ),
    "gearnet convolution": (layers_from_torchdrug, lambda: _convolution(), {"reduce": "sum"}),
}


def _convolution():
    return {
        "self_loop.weight": torch.ones(4, 3),
        "self_loop.bias": torch.ones(4),
        "linear.weight": torch.ones(4, 6),
        "linear.bias": torch.ones(4),
    }


@pytest.mark.parametrize("case", CASES)
def test_each_option_that_the_weights_do_not_contain_is_required(case):
    load, state, options = CASES[case]
    assert load(state(), **options)
    for name in options:
        with pytest.raises(OptionError, match=name):
            load(state(), **{k: v for k, v in options.items() if k != name})


@pytest.mark.parametrize("case", ["egnn", "gearnet", "gearnet convolution"])
def test_unknown_choices_are_refused(case):
    load, state, options = CASES[case]
    for name in options:
        with pytest.raises(OptionError, match=name):
            load(state(), **options | {name: "other"})


@pytest.mark.parametrize("case", CASES)
def test_unknown_and_missing_parameters_are_refused(case):
    load, state, options = CASES[case]
    with pytest.raises(CheckpointError):
        load(state() | {"other.weight": torch.ones(1)}, **options)
    for name in [k for k in state() if k.endswith("weight")][:1]:
        with pytest.raises(CheckpointError):
            load({k: v for k, v in state().items() if k != name}, **options)


LOADERS = {
    "schnet": lambda state: load_interaction_block(state, cutoff=10.0),
    "encoder": lambda state: encoder_from_esm(state, heads=4),
    "global_attention": load_global_attention,
    "outer_product_mean": load_outer_product_mean,
    "triangle_multiplication": lambda state: load_triangle_multiplication(state, edges="outgoing"),
    "triangle_attention": lambda state: load_triangle_attention(state, node="starting"),
    "product_basis": lambda state: load_product_basis(state, irreps_in="3x0e", irreps="3x0e"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_states_of_other_modules_are_refused(name):
    with pytest.raises(CheckpointError):
        LOADERS[name]({"other.weight": torch.ones(2, 2)})
