"""Parts of a model by name: patterns, and parts that are frozen, without gradients and in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from torch import nn

from protgraph.errors import OptionError, list_first

if TYPE_CHECKING:
    from protgraph.model.build import ProteinModel

__all__ = ["FrozenParts", "ModelPart", "check_pattern", "freeze_parts", "matches_part", "model_parts"]


class ModelPart(NamedTuple):
    """A layer with parameters, or the head of a model."""

    path: str  # "layers.2", "head"
    component: str
    parameters: int


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


def model_parts(model: ProteinModel) -> list[ModelPart]:
    """Return the layers with parameters and the head of a model, which can be frozen by their paths."""
    components = {f"layers.{i}": component.name for i, component in enumerate(model.spec.layers)}
    components["head"] = model.target.head_name
    with_parameters = []
    for path, component in components.items():
        count = sum(parameter.numel() for parameter in model.get_submodule(path).parameters())
        if count:
            with_parameters.append(ModelPart(path, component, count))
    return with_parameters


def check_pattern(model: ProteinModel, pattern: str, option: str) -> None:
    """Raise :class:`OptionError` if a pattern matches no parameter; ``option`` is named in the message."""
    if any(matches_part(name, pattern) for name, _ in model.named_parameters()):
        return
    paths = [part.path for part in model_parts(model)]
    raise OptionError(
        f"{option}: {pattern!r} matches no parameter of model {model.spec.name!r}. Its parts: {list_first(paths, 20)}. "
        "Give one of them, or a pattern as in a shell, e.g. 'layers.*'."
    )


def freeze_parts(model: ProteinModel, is_frozen: Callable[[str], bool]) -> FrozenParts:
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
