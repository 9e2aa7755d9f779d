"""Parts of a model by path, which options select."""

from __future__ import annotations

from typing import NamedTuple

from protgraph.errors import OptionError, list_first
from protgraph.model.build import ProteinModel
from protgraph.model.frozen_parts import matches_part

__all__ = ["ModelPart", "check_pattern", "freezable_parts"]


class ModelPart(NamedTuple):
    """A layer with parameters, or the head of a model."""

    path: str  # "layers.2", "head"
    component: str
    parameters: int


def freezable_parts(model: ProteinModel) -> list[ModelPart]:
    """Return the layers with parameters and the head of a model, which can be frozen by their paths."""
    components = {f"layers.{number}": wiring.component.name for number, (wiring, _) in enumerate(model.first_uses)}
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
    paths = [part.path for part in freezable_parts(model)]
    raise OptionError(
        f"{option}: {pattern!r} matches no parameter of model {model.spec.name!r}. Its parts: {list_first(paths, 20)}. "
        "Give one of them, or a pattern as in a shell, e.g. 'layers.*'."
    )
