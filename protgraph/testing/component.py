"""Components under test, found by name, class or registry, with all wirings that their declarations allow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, get_args

from torch import nn

from protgraph import registry
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.graph.conformity import Conformity
from protgraph.errors import ProtgraphError, UnknownNameError, WiringError, suggest
from protgraph.featurize import Featurizer
from protgraph.model import ModelSpec
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry import Registry
from protgraph.structure import Reader
from protgraph.task.metrics import Metric
from protgraph.task.task import Task
from protgraph.testing.featurizer_wiring import wire_featurizer
from protgraph.testing.layer_wiring import wire_layer, wire_small_layer
from protgraph.testing.model_wiring import MultiHeadModel, model_parts, offline_models, wire_model
from protgraph.testing.task_inputs import TaskInputs
from protgraph.testing.wiring import Wiring

__all__ = ["Component", "ComponentKind", "find_components"]

ComponentKind = Literal["featurizer", "layer", "head", "model", "task", "dataset", "metric", "reader", "command"]


@dataclass(frozen=True, eq=False)
class Component:
    """A component of one of the :data:`ComponentKind` under test.

    ``name``: registry name, or the name of the class. ``definition``: the class, :class:`protgraph.ModelSpec`, task,
    dataset, metric or function of a command. Default: taken from the registry when first needed.
    """

    name: str
    kind: ComponentKind
    definition: Any = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def loaded(self) -> Any:
        """The class or model spec, loaded from the registry if it was not passed."""
        return self.definition if self.definition is not None else registry.registries[f"{self.kind}s"].get(self.name)

    @property
    def code(self) -> Callable[..., object]:
        """The function or method that runs, for the place of its errors."""
        loaded = self.loaded
        if inspect.isclass(loaded) and issubclass(loaded, Featurizer):
            return loaded.__call__
        if inspect.isroutine(loaded):
            return loaded
        methods = ("forward", "derive", "examples", "function", "parse", "read")
        names = (name for name in methods if callable(getattr(loaded, name, None)))
        return getattr(loaded, next(names, "__init__"))

    @property
    def is_model(self) -> bool:
        """True for a model, False for other components."""
        return isinstance(self.loaded, ModelSpec)

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset; a class is called without arguments."""
        loaded: Dataset | type[Dataset] = self.loaded
        return loaded() if isinstance(loaded, type) else loaded

    @cached_property
    def task_inputs(self) -> TaskInputs:
        """Labels and predictions of the test proteins for a task."""
        return TaskInputs(self.loaded)

    @cached_property
    def conformity(self) -> Conformity:
        """The component's own statement; for a model, the statements of its featurizers, layers and heads."""
        if not self.is_model:
            return getattr(self.loaded, "conformity", None) or Conformity()
        (wiring,) = self.wirings
        stated: dict[str, Conformity] = {}
        for component in model_parts(wiring):
            conformity = getattr(component, "conformity", None)
            if conformity is not None:
                stated[type(component).__name__] = conformity
        expected = {c: f"{name}: {why}" for name, s in stated.items() for c, why in s.expected_failures.items()}
        tolerance = max([Conformity.tolerance, *(s.tolerance for s in stated.values())])
        return Conformity(tolerance=tolerance, expected_failures=expected)

    @property
    def is_strict(self) -> bool:
        """True if an expected failure must occur. A model may pass although one of its parts fails alone."""
        return not self.is_model

    def layers(self, module: nn.Module) -> dict[str, nn.Module]:
        """Return the layers and heads of a model by their place; empty for any other component."""
        if not isinstance(module, MultiHeadModel):
            return {}
        layers: dict[str, nn.Module] = {}
        for wire, layer in module.model.steps:
            layers[f"{wire.path} ({wire.component.name})"] = layer
        for name, head in zip(module.head_names, module.heads, strict=True):
            layers[f"head ({name})"] = head
        return layers

    @cached_property
    def wirings(self) -> tuple[Wiring, ...]:
        """Every wiring to test; at least one.

        Raises :class:`ProtgraphError` if the component cannot be built.
        """
        loaded = self.loaded
        if isinstance(loaded, ModelSpec):
            return (wire_model(offline_models(loaded)),)
        if not inspect.isclass(loaded):
            raise WiringError(f"{self} is a {type(loaded).__name__}, not a class or a ModelSpec")
        if issubclass(loaded, Featurizer):
            return (wire_featurizer(loaded, self.conformity),)
        return wire_layer(self.loaded, self.name, self.conformity)

    @cached_property
    def small_wirings(self) -> tuple[Wiring, ...]:
        """Wirings of a layer or head without repetition of inputs, for checks that take seconds for each.

        Raises :class:`ProtgraphError` if the component cannot be built.
        """
        return wire_small_layer(self.loaded, self.name, self.conformity)


def find_components(
    subject: Registry | str | type | ModelSpec | Task | Dataset | Metric | Callable[..., object] | Sequence[object],
    *,
    kind: ComponentKind | None = None,
) -> list[Component]:
    """Return the components of a registry, a name, a class or a model.

    ``subject``: a registry yields all its names, with every variant of a family; a name, all components that have it.
    ``kind``: only this kind, if several share a name. Raises :class:`UnknownNameError` if no component has the name.
    """
    if isinstance(subject, Registry):
        component_kind = cast("ComponentKind", subject.kind)
        components = []
        for name in subject:
            components += [Component(variant, component_kind) for variant in _variants(subject, name)]
        return components
    if isinstance(subject, str):
        return _by_name(subject, kind)
    component = _component_of(subject)
    if component is not None:
        return [component]
    components = []
    for item in cast("Iterable[Any]", subject):
        components += find_components(item, kind=kind)
    return components


def _component_of(subject: object) -> Component | None:
    """Return a class, a model or another object as a component; None for a sequence."""
    if isinstance(subject, ModelSpec):
        return Component(subject.name, "model", subject)
    if isinstance(subject, Task):
        return Component(subject.name, "task", subject)
    if isinstance(subject, Dataset):
        return Component(type(subject).__name__, "dataset", subject)
    if isinstance(subject, Metric):
        return Component(subject.name, "metric", subject)
    if inspect.isroutine(subject):
        return Component(subject.__name__, "command", subject)
    return _component_of_class(subject) if inspect.isclass(subject) else None


_BASES: dict[ComponentKind, type] = {
    "featurizer": Featurizer,
    "head": Head,
    "layer": GraphLayer,
    "dataset": Dataset,
    "reader": Reader,
}


def _component_of_class(cls: type) -> Component:
    for kind, base in _BASES.items():
        if issubclass(cls, base):
            return Component(cls.__name__, kind, cls)
    raise WiringError(f"{cls!r} cannot be checked. Pass a subclass of Featurizer, GraphLayer, Head, Dataset or Reader.")


def _by_name(name: str, kind: ComponentKind | None) -> list[Component]:
    kinds: tuple[ComponentKind, ...] = (kind,) if kind else get_args(ComponentKind)
    searched = {searched_kind: registry.registries[f"{searched_kind}s"] for searched_kind in kinds}
    holders = {searched_kind: names for searched_kind, names in searched.items() if name in names}
    if not holders:
        if kind:
            searched[kind].get(name)
        raise _unknown_name(name, searched.values())
    components = []
    for kind_of_holder, names in holders.items():
        components += [Component(variant, kind_of_holder) for variant in _variants(names, name)]
    return components


def _unknown_name(name: str, searched: Iterable[Registry]) -> UnknownNameError:
    """Return the error for a name of no component with checks."""
    checked = get_args(ComponentKind)
    for names in registry.registries.values():
        if names.kind not in checked and name in names:
            kind = names.kind.replace("_", " ")
            return UnknownNameError(
                f"{name!r} is a {kind}, a kind without checks. Checked kinds: {', '.join(checked)}."
            )
    all_names: set[str] = set()
    for names in searched:
        all_names.update(names)
    hint = suggest(name, sorted(all_names))
    return UnknownNameError(f"no component {name!r}.{hint}\n`protgraph list` shows all.")


def _variants(names: Registry, name: str) -> list[str]:
    """Return all variants of a family, else the name itself, also if it cannot be loaded: its checks then fail."""
    try:
        family = names.family(name) if "." not in name else None
    except ProtgraphError:
        return [name]
    return [name] if family is None else [f"{name}.{variant}" for variant in family.variants]
