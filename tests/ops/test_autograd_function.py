"""Operations with a gradient of their own run with or without a record for the backward pass."""

from __future__ import annotations

import inspect
from typing import ClassVar

import pytest
import torch

from protgraph.ops.kernels.autograd_function import AutogradFunction


class Cube(AutogradFunction):
    calls: ClassVar[list[str]] = []

    @staticmethod
    def forward(x, scale=2.0):
        Cube.calls.append("forward")
        return scale * x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        Cube.calls.append("setup")
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.scale * ctx.saved_tensors[0] ** 2 * grad, None


@pytest.fixture(autouse=True)
def _no_calls():
    Cube.calls.clear()


def test_gradients_are_those_of_the_backward_method_to_second_order():
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Cube.run, (x,)) and torch.autograd.gradgradcheck(Cube.run, (x,))
    assert torch.equal(torch.func.grad(lambda v: Cube.run(v).sum())(x.detach()), 6 * x.detach() ** 2)


def test_nothing_is_recorded_where_no_gradient_is_needed():
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not Cube.run(x).requires_grad
    assert not Cube.run(x.detach()).requires_grad
    assert Cube.calls == ["forward", "forward"]
    assert Cube.run(x).requires_grad and Cube.calls[2:] == ["forward", "setup"]


def test_the_signature_is_read_once(monkeypatch):
    x = torch.ones(3, requires_grad=True)
    monkeypatch.setattr(inspect, "_signature_from_function", lambda *_, **__: pytest.fail("read again"))
    assert torch.equal(torch.autograd.grad(Cube.run(x).sum(), x)[0], torch.full((3,), 6.0))
