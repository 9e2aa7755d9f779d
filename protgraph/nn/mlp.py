"""Multi-layer perceptron, activations by name, and linear maps of gates."""

# Not torch_geometric.nn.MLP: its batch normalization mixes the proteins of a batch (PyG 2.8.1, 2026-11-22).

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import nn

from protgraph.validation import check_choice

__all__ = ["activation", "gate_linear", "mlp"]

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "none": nn.Identity,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "hardtanh": nn.Hardtanh,
    "leaky_relu": lambda: nn.LeakyReLU(0.2),  # slope of Veličković et al. 2018, sec. 3.3
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


def activation(name: str, *, inplace: bool = False) -> nn.Module:
    """Build the activation function of a name.

    ``name``: "none", "elu", "gelu", "hardtanh", "leaky_relu", "relu", "silu" or "tanh". ``inplace``: overwrite the
    input. Has an effect on relu and leaky_relu only, whose derivatives need only the output.
    """
    module = _ACTIVATIONS[check_choice("act", name, tuple(_ACTIVATIONS))]()
    if inplace and isinstance(module, nn.ReLU | nn.LeakyReLU):
        module.inplace = True
    return module


def mlp(widths: Sequence[int], *, act: str = "relu", dropout: float = 0.0) -> nn.Sequential:
    """Build ``W_n act(… act(W_1 x + b_1) …) + b_n``, with dropout after each activation.

    Examples
    --------
    >>> mlp([8, 16, 3])[-1].out_features
    3
    """
    parts: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for width_in, width_out in pairwise(widths[1:]):
        parts += [activation(act), nn.Dropout(dropout), nn.Linear(width_in, width_out)]
    return nn.Sequential(*parts)


def gate_linear(width: int, dim: int) -> nn.Linear:
    """Build the linear map of a sigmoid gate, with weights 0 and biases 1: gates start at sigmoid(1), as in AlphaFold.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, sec. 1.11.4.
    """
    linear = nn.Linear(width, dim)
    nn.init.zeros_(linear.weight)
    nn.init.ones_(linear.bias)
    return linear
