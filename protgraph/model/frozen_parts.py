"""Patterns of names of parts of a model, and parts that are frozen: no gradients, evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

from torch import nn

__all__ = ["FrozenParts", "freeze_parts", "last_match", "matches_part"]

Value = TypeVar("Value")


class FrozenParts(NamedTuple):
    """Modules and parameters that :func:`freeze_parts` changed."""

    modules: tuple[nn.Module, ...] = ()
    parameters: tuple[nn.Parameter, ...] = ()


def matches_part(name: str, pattern: str) -> bool:
    """Return True if a pattern matches the name of a parameter or module, or of a module around it.

    ``*``, ``?`` and ``[…]`` are those of a shell, and also match dots.

    Examples
    --------
    >>> matches_part("layers.2.linear.weight", "layers.2"), matches_part("layers.20.linear.weight", "layers.2")
    (True, False)
    >>> matches_part("layers.2.linear.weight", "layers.*")
    True
    """
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def last_match(values: Mapping[str, Value], name: str) -> Value | None:
    """Return the value of the last pattern that matches a name; None if none does."""
    matching = [value for pattern, value in values.items() if matches_part(name, pattern)]
    return matching[-1] if matching else None


def freeze_parts(model: nn.Module, is_frozen: Callable[[str], bool]) -> FrozenParts:
    """Turn off gradients of the parameters with frozen names, and return them with the modules that are frozen.

    A module is frozen if its name is, or if it has parameters and all of them are frozen.
    """
    parameters = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and is_frozen(name):
            parameter.requires_grad_(False)
            parameters.append(parameter)
    modules = []
    for path, module in model.named_modules():
        names = [f"{path}.{name}" for name, _ in module.named_parameters()]
        has_frozen_parameters = bool(names) and all(map(is_frozen, names))
        if path and (is_frozen(path) or has_frozen_parameters):
            modules.append(module)
    return FrozenParts(tuple(modules), tuple(parameters))
