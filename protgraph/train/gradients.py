"""Gradient norms of a run: values that are not finite, exploding norms, unused and dead parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from protgraph.errors import list_first
from protgraph.wording import count_noun

__all__ = ["GradientWatch"]

_EXPLODING = 1000.0  # times the usual norm
_DECAY = 0.95  # of the usual norm, per step
_FIRST_STEPS = 20  # without a usual norm
_FEWEST_STEPS = 3  # while a last layer is still zero, all gradients before it are 0 in the first step


class GradientWatch:
    """Norms of the gradients of all parameters, before they are clipped.

    Call :meth:`update` with each step and :meth:`describe_unused` at the end of each epoch. ``notes``: messages for
    the user, each kind once.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._names: list[str] = []  # of the parameters with gradients
        self._largest: Tensor | None = None  # (P,) norms of these since the start
        self._usual, self._steps, self._updates = 0.0, 0, 0
        self._has_exploded = False
        self._has_described = False

    def update(self, parameters: Iterable[tuple[str, nn.Parameter]]) -> Tensor:
        """Add a step; return the norm of the whole gradient, a scalar on the device of the parameters."""
        with_gradient = [(name, x.grad) for name, x in parameters if x.grad is not None]
        if not with_gradient:
            return torch.zeros(())
        names = [name for name, _ in with_gradient]
        norms = torch.stack(torch._foreach_norm([gradient for _, gradient in with_gradient]))  # (P,)
        if self._largest is not None and names == self._names:
            self._largest = torch.maximum(self._largest, norms)
        else:
            self._names, self._largest = names, norms
        self._updates += 1
        return torch.linalg.vector_norm(norms)

    def check_size(self, norm: float, step: int) -> None:
        """Add a note if a norm is far above the usual one."""
        self._steps += 1
        if self._steps > _FIRST_STEPS and norm > _EXPLODING * self._usual > 0 and not self._has_exploded:
            self._has_exploded = True
            self.notes.append(
                f"the norm of the gradient was {norm:.3g} in step {step}, usually {self._usual:.3g}. If the loss "
                "increases, use a smaller lr"
            )
        # A mean of logarithms: one large norm does not change what is usual.
        logarithm = math.log(max(norm, 1e-30))
        before = math.log(self._usual) if self._usual else logarithm
        self._usual = math.exp(_DECAY * before + (1 - _DECAY) * logarithm)

    def describe_unused(self, parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        """Add notes about parameters without gradients and with gradients of 0, once, after three steps or more."""
        if self._largest is None or self._has_described or self._updates < _FEWEST_STEPS:
            return
        self._has_described = True
        trained = [name for name, parameter in parameters if parameter.requires_grad]
        unused = sorted(set(trained) - set(self._names))
        if unused:
            counted = count_noun(len(unused), "parameter")
            self.notes.append(f"the loss does not depend on {counted}: {list_first(unused, 3)}")
        zero = (self._largest == 0).tolist()
        dead = [name for name, is_zero in zip(self._names, zero, strict=True) if is_zero]
        if dead:
            counted = count_noun(len(dead), "parameter")
            self.notes.append(
                f"the gradient of {counted} was 0 in all of the first {self._updates} steps: {list_first(dead, 3)}"
            )
