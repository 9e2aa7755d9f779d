"""Multi-layer perceptron, activations by name, and checks of options that layers share.

Not ``torch_geometric.nn.MLP``: it adds batch normalization by default, which makes a protein's output depend on the
other proteins of its batch, and has other parameter names (PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import nn

from protgraph.errors import OptionError, suggest

__all__ = ["activation", "mlp", "check_choice", "split_heads"]

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


def check_choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is allowed.

    Raises
    ------
    OptionError
        If it is not; the message lists the allowed values.
    """
    if value not in allowed:
        raise OptionError(
            f"{option}={value!r} is not one of {', '.join(map(repr, allowed))}.{suggest(str(value), allowed)}"
        )
    return value


def activation(name: str, *, inplace: bool = False) -> nn.Module:
    """Build the activation function of a name.

    Parameters
    ----------
    name : {"none", "elu", "gelu", "hardtanh", "leaky_relu", "relu", "silu", "tanh"}
    inplace : bool
        Overwrite the input. Has an effect on relu and leaky_relu only, whose derivatives need only the output.
    """
    module = _ACTIVATIONS[check_choice("act", name, tuple(_ACTIVATIONS))]()
    if inplace and isinstance(module, nn.ReLU | nn.LeakyReLU):
        module.inplace = True
    return module


def split_heads(dim: int, heads: int) -> int:
    """Return the channels per head, ``dim / heads``.

    Raises
    ------
    OptionError
        If ``dim`` is not a multiple of ``heads``.
    """
    if heads < 1 or dim % heads:
        raise OptionError(f"dim={dim} is not a multiple of heads={heads}: each head takes dim / heads channels.")
    return dim // heads


def mlp(widths: Sequence[int], *, act: str = "relu", dropout: float = 0.0) -> nn.Sequential:
    """Build ``W_n act(… act(W_1 x + b_1) …) + b_n``, with dropout after each activation.

    Parameters
    ----------
    widths : sequence of int
        Input, hidden and output widths; two widths make one linear map.
    act : str
        Activation function, see :func:`activation`.
    dropout : float
        Dropout probability.

    Examples
    --------
    >>> mlp([8, 16, 3])[-1].out_features
    3
    """
    parts: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for wide, narrow in pairwise(widths[1:]):
        parts += [activation(act), nn.Dropout(dropout), nn.Linear(wide, narrow)]
    return nn.Sequential(*parts)
