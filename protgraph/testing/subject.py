"""A component under test: where it comes from, and the ways of wiring it that its declarations allow."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations, product
from typing import Literal, get_args

import torch

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, field, is_registered
from protgraph.errors import DatasetError, ProtgraphError, UnknownNameError, WiringError, suggest
from protgraph.featurize import Featurizer, TensorFeaturizer
from protgraph.model import ModelSpec
from protgraph.nn.module import GraphLayer, Head
from protgraph.registry import Registry
from protgraph.testing.case import Case, LayerCase, ModelCase, StructureCase
from protgraph.testing.draw import known_spec, level_of
from protgraph.testing.offline_models import offline_models

__all__ = ["Kind", "Subject", "subjects"]

Kind = Literal["featurizer", "layer", "head", "model"]

#: What local names that no table knows may hold, tried in this order.
_SCALARS = ("16x0e", "64x0e", "1x0e", "point")
_MIXED = ("8x0e+2x0o+4x1o+2x1e+2x2e", "8x0e+4x1o", "64x0e+16x1o")
#: What a variadic component reads where it does not say.
_VARIADIC = ("x", "y")
#: Classes, vectors or points to predict; a layer that writes a backbone gives four points.
_SIZE = 4


@dataclass(frozen=True, eq=False)
class Subject:
    """A component with its name and kind.

    Parameters
    ----------
    name : str
        Registry name, or the class's.
    kind : {"featurizer", "layer", "head", "model"}
    given : object, optional
        The component itself; None takes it from the registry when it is first asked for.
    """

    name: str
    kind: Kind
    given: object = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def component(self) -> object:
        """The class or model graph."""
        return self.given if self.given is not None else registry.registries[f"{self.kind}s"].get(self.name)

    @cached_property
    def conformity(self) -> Conformity:
        """What the component states; a model states what its featurizers, layers and heads do."""
        if not isinstance(self.component, ModelSpec):
            return getattr(self.component, "conformity", None) or Conformity()
        (case,) = self.cases
        stated = {type(p).__name__: p.conformity for p in case.parts() if getattr(p, "conformity", None) is not None}
        excused = {c: f"{name}: {why}" for name, s in stated.items() for c, why in s.expected_failures.items()}
        tolerance = max([Conformity.tolerance, *(s.tolerance for s in stated.values())])
        return Conformity(tolerance=tolerance, expected_failures=excused)

    @property
    def _options(self) -> dict[str, object]:
        return {**self.conformity.options, **self.conformity.offline}

    @property
    def strict(self) -> bool:
        """Whether what is expected to fail has to: a model may well get by with a part that fails alone."""
        return not isinstance(self.component, ModelSpec)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every wiring to test; at least one.

        Raises
        ------
        ProtgraphError
            Where the component cannot be built in any way.
        """
        component = self.component
        if isinstance(component, ModelSpec):
            return (self._model(offline_models(component)),)
        if not inspect.isclass(component):
            raise WiringError(f"{self} is a {type(component).__name__}, not a class or a ModelSpec")
        if issubclass(component, Featurizer) and not issubclass(component, TensorFeaturizer):
            create = partial(component, **self._options)
            return (StructureCase("", create, packed=self.conformity.proteins == "packed"),)
        if issubclass(component, TensorFeaturizer):
            specs = {name: known_spec(name) for name in component.reads}
            return (LayerCase("", partial(component, **self._options), specs),)
        return tuple(self._layers(component))

    def _model(self, graph: ModelSpec) -> Case:
        """With every head that fits: classes per residue and per protein, vectors, coordinates."""
        errors: list[ProtgraphError] = []
        fitting: list[Target] = []
        for target in _targets():
            if target.level not in ("node", "graph") or target.kind in ("multilabel", "regression"):
                continue
            try:
                ModelCase(graph, (target,)).sample()
            except ProtgraphError as e:
                errors.append(e)
            else:
                fitting.append(target)
        if not fitting:
            raise errors[0]
        return ModelCase(graph, tuple(fitting))

    def _layers(self, component: type[GraphLayer]) -> Iterator[Case]:
        """Bare; with all optional inputs; and with vectors where it takes them."""
        scalars, mixed = self._wire(component, _SCALARS), self._wire(component, _MIXED)
        if isinstance(scalars, Exception) and isinstance(mixed, Exception):
            raise WiringError(
                f"{self} cannot be built on {', '.join(component.reads) or 'nothing'}: {scalars}\n"
                "State what it reads: conformity = protgraph.Conformity(inputs={...})."
            ) from scalars
        wirings = [(w, i) for w, i in ((scalars, _SCALARS), (mixed, _MIXED)) if not isinstance(w, Exception)]
        chosen = [wirings[0][0], *(self._with_optional(component, *w) for w in wirings)]
        unique = [w for i, w in enumerate(chosen) if w not in chosen[:i]]
        for specs in unique:
            label = ", ".join(f"{n}={s.irreps}" for n, s in specs.items() if not is_registered(n))
            level = self._target(component).level if issubclass(component, Head) else None
            create = partial(self._create, component, specs)
            yield LayerCase(label, create, specs, self.conformity.nonnegative, level)

    def _wire(self, component: type[GraphLayer], irreps: Sequence[str]) -> dict[str, FieldSpec] | Exception:
        """Specs with which it can be built, or why it cannot."""
        names = component.reads
        if component.variadic:
            stated = tuple(n for n in self.conformity.inputs if n not in names)
            names = (*names, *(stated or _VARIADIC))
        return self._try(component, {}, names, irreps)

    def _with_optional(
        self, component: type[GraphLayer], specs: Mapping[str, FieldSpec], irreps: Sequence[str]
    ) -> dict[str, FieldSpec]:
        """All of them, where they go together; else as many as do, one after another, then two by two."""
        singles = ((name,) for name in component.optional)
        for names in (component.optional, *singles, *combinations(component.optional, 2)):
            if all(name in specs for name in names):
                continue
            missing = [name for name in names if name not in specs]
            more = self._try(component, specs, missing, irreps)
            specs = specs if isinstance(more, Exception) else more
        return dict(specs)

    def _try(
        self, component: type[GraphLayer], specs: Mapping[str, FieldSpec], names: Sequence[str], irreps: Sequence[str]
    ) -> dict[str, FieldSpec] | Exception:
        """Add these names; where nothing says more of one, with each of the irreps, for edges with scalars too."""
        fixed = {n: spec for n in names if (spec := self._spec(n)) is not None}
        free = [level_of(n) for n in names if n not in fixed]
        others = tuple(dict.fromkeys((*irreps, *_SCALARS)))
        choices = {level: irreps if level == "node" else others for level in dict.fromkeys(free)}
        errors: list[Exception] = []
        for chosen in product(*choices.values()):
            by_level = dict(zip(choices, chosen, strict=True))
            given = {n: fixed.get(n) or FieldSpec(n, level_of(n), by_level[level_of(n)]) for n in names}
            try:
                with torch.random.fork_rng(devices=[]):
                    self._create(component, {**specs, **given})
            except Exception as e:  # noqa: BLE001 -- a component may refuse an input in its own way
                errors.append(e)
            else:
                return {**specs, **given}
        return errors[0]

    def _spec(self, name: str) -> FieldSpec | None:
        stated = self.conformity.inputs.get(name)
        if isinstance(stated, FieldSpec):
            return stated
        if stated is not None:
            return FieldSpec(name, field(name).level if is_registered(name) else level_of(name), stated)
        return known_spec(name) if is_registered(name) else None

    def _create(self, component: type[GraphLayer], specs: Mapping[str, FieldSpec]) -> GraphLayer:
        options = self._options
        if issubclass(component, Head):
            return component(dict(specs), self._target(component), **options)
        return component(dict(specs), **options)

    def _target(self, component: type[Head]) -> Target:
        """What the head of this name predicts by itself; per residue where no target's head it is."""
        usual = (t for t in _targets() if t.head_name == self.name)
        return next(usual, Target("conformity", "node", "classification", _SIZE, head=self.name))


def _targets() -> Iterator[Target]:
    """A target of every level and kind that has a head."""
    annotations = inspect.get_annotations(Target, eval_str=True)
    for level, kind in product(get_args(annotations["level"]), get_args(annotations["kind"])):
        try:
            yield Target("conformity", level, kind, _SIZE)
        except DatasetError:
            continue


def subjects(what: Registry | str | type | ModelSpec | Sequence[object], *, kind: Kind | None = None) -> list[Subject]:
    """The components that something means.

    Parameters
    ----------
    what : Registry, str, class, ModelSpec, or a sequence of those
        A registry means all its names, families with all their variants; a name, every component that has it.
    kind : {"featurizer", "layer", "head", "model"}, optional
        Only this kind, where several share a name.

    Raises
    ------
    UnknownNameError
        Where no component has a name.
    """
    if isinstance(what, Registry):
        return [Subject(variant, what.kind) for name in what for variant in _variants(what, name)]
    if isinstance(what, str):
        return _named(what, kind)
    if isinstance(what, ModelSpec):
        return [Subject(what.name, "model", what)]
    if inspect.isclass(what):
        found = next((k for k, base in _BASES.items() if issubclass(what, base)), None)
        if found is None:
            raise WiringError(f"{what!r} is no Featurizer, GraphLayer or Head")
        return [Subject(what.__name__, found, what)]
    return [subject for one in what for subject in subjects(one, kind=kind)]


_BASES: dict[Kind, type] = {"featurizer": Featurizer, "head": Head, "layer": GraphLayer}


def _named(name: str, kind: Kind | None) -> list[Subject]:
    known = [registry.registries[f"{k}s"] for k in ([kind] if kind else get_args(Kind))]
    holders = [r for r in known if name in r]
    if not holders:
        if len(known) == 1:
            known[0].get(name)
        hint = suggest(name, {n for r in known for n in r})
        raise UnknownNameError(f"no featurizer, layer, head or model {name!r}.{hint}\n`protgraph list` shows all.")
    return [Subject(variant, r.kind) for r in holders for variant in _variants(r, name)]


def _variants(known: Registry, name: str) -> list[str]:
    """A family's name stands for all its variants; what cannot be loaded stands for itself, and fails its checks."""
    try:
        family = known.family(name) if "." not in name else None
    except ProtgraphError:
        return [name]
    return [name] if family is None else [f"{name}.{variant}" for variant in family.variants]
