"""Checks of loaders of published weights: required options, known parameters, typed errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from protgraph.errors import CheckpointError, OptionError

__all__ = ["check_parameter_names", "load_reference_state", "reference_errors", "require_options"]


def require_options(
    module: str, options: Mapping[str, Any], choices: Mapping[str, Sequence[Any] | str]
) -> Mapping[str, Any]:
    """Return the options of a published module; raise if one is None or is not an allowed value.

    ``module``: name of the module whose state is loaded. ``options``: options that change values and that the state
    does not contain. ``choices``: allowed values of each option, or a description of them. The first value is the
    default of that code. Raises :class:`OptionError`.
    """

    def is_wrong(name: str) -> bool:
        value, allowed = options[name], choices[name]
        return value is None or not (isinstance(allowed, str) or any(value is c or value == c for c in allowed))

    wrong = [name for name in choices if is_wrong(name)]
    if wrong:
        differing = ", ".join(f"{name}={options[name]!r}" for name in wrong)
        allowed = "; ".join(
            f"{name}: {choices[name] if isinstance(choices[name], str) else ' or '.join(map(repr, choices[name]))}"
            for name in wrong
        )
        raise OptionError(
            f"weights of {module}: {differing}, which the weights do not contain. Allowed: {allowed}. "
            "Give the options with which the module was built."
        )
    return options


def check_parameter_names(state: Mapping[str, Tensor], known: Sequence[str], module: str) -> None:
    """Raise a ``CheckpointError`` if a parameter matches none of the regular expressions ``known``."""
    pattern = re.compile("|".join(known))
    unknown = sorted(name for name in state if not pattern.fullmatch(name))
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise CheckpointError(
            f"weights of {module}: unknown parameter {unknown[0]!r}{more}. The module is another one."
        )


@contextmanager
def reference_errors(module: str) -> Iterator[None]:
    """Raise a ``CheckpointError`` with the module's name if parameters are missing or do not fit."""
    try:
        yield
    except (KeyError, IndexError, RuntimeError, StopIteration) as e:
        message = " ".join(str(e).split())
        raise CheckpointError(f"not the state of {module} ({type(e).__name__}: {message}).") from e


def load_reference_state(layer: nn.Module, state: Mapping[str, Tensor], module: str) -> None:
    """Load a state into a layer in the dtype of the state; each parameter must be present and known."""
    dtype = next((value.dtype for value in state.values() if value.is_floating_point()), None)
    with reference_errors(module):
        layer.to(dtype).load_state_dict(state)
