"""Every layer and model trains in bfloat16, whether its inputs are float32 or, after other layers, bfloat16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import protgraph as pg
from protgraph.data.graph.fields import is_registered
from protgraph.testing.component import Component, find_components

CLOSE = 0.15  # relative; a number has 8 bits, and a motion of egnn is a difference of others


def default_variants() -> list[str]:
    """Return the default of every model family; other variants have the same layers."""
    families = {name: pg.models.family(name) for name in pg.models}
    return [f"{name}.{family.default}" if family else name for name, family in families.items()]


def components(what: Any, kind: str | None = None) -> list[Any]:
    return [pytest.param(one, id=one.name) for one in find_components(what, kind=kind)]


def tensors(argument: Any) -> dict[str, Tensor]:
    return {name: x for name, x in argument.items() if torch.is_tensor(x)}


def train_step(wiring: Any, *, autocast: bool, after_layers: bool = False) -> dict[str, Tensor]:
    """Return the outputs and gradients of one step, float32."""
    module = wiring.build(dtype=torch.float32).train()
    argument = wiring.inputs.argument(dtype=torch.float32)
    for name, x in tensors(argument).items():
        if x.is_floating_point() and after_layers and not is_registered(name):
            argument[name] = x.bfloat16()
    with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        torch.manual_seed(0)
        out = {name: x for name, x in tensors(module(argument)).items() if x.is_floating_point()}
    loss = sum(x.float().square().mean() for x in out.values())
    if torch.is_tensor(loss) and loss.requires_grad:
        loss.backward()
    grads = {f"gradient of {name}": p.grad for name, p in module.named_parameters() if p.grad is not None}
    return {name: x.detach().float() for name, x in (out | grads).items()}


def check(component: Component, *, after_layers: bool = False) -> None:
    for wiring in component.wirings:
        exact = train_step(wiring, autocast=False)
        rounded = train_step(wiring, autocast=True, after_layers=after_layers)
        assert exact.keys() == rounded.keys()
        for name, value in rounded.items():
            assert value.isfinite().all(), f"{name}{wiring.suffix}"
            error = (value - exact[name]).norm() / exact[name].norm().clamp(min=1e-3)
            assert name.startswith("gradient") or error < CLOSE, f"{name}{wiring.suffix}"


@pytest.mark.parametrize("component", components(pg.layers))
@pytest.mark.parametrize("after_layers", [False, True], ids=["float32", "bfloat16"])
def test_layer(component, after_layers):
    check(component, after_layers=after_layers)


@pytest.mark.parametrize("component", components(pg.heads))
@pytest.mark.parametrize("after_layers", [False, True], ids=["float32", "bfloat16"])
def test_head(component, after_layers):
    check(component, after_layers=after_layers)


@pytest.mark.parametrize("component", components(default_variants(), "model"))
def test_model(component):
    check(component)
