"""Find the inputs on which a layer or head can be built: bare, with its optional inputs, and with vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import torch

from protgraph.data.datasets.target import Target
from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec, Level, field, is_registered
from protgraph.errors import WiringError
from protgraph.model.build import check_logits
from protgraph.nn.module import GraphLayer, Head
from protgraph.testing.featurizer_wiring import read_names
from protgraph.testing.make_inputs import (
    default_spec,
    degenerate_inputs,
    is_pseudoscalar,
    large_inputs,
    level_of,
    make_inputs,
)
from protgraph.testing.model_wiring import TARGET_SIZE, targets_of_all_kinds
from protgraph.testing.wiring import Wiring

__all__ = ["wire_layer", "wire_small_layer"]

#: Irreps of unregistered local names, tried in this order.
_SCALARS = ("16x0e", "64x0e", "1x0e", "point")
_MIXED = ("8x0e+2x0o+4x1o+2x1e+2x2e", "8x0e+4x1o", "64x0e+16x1o")
#: With fewer kinds of irreps first, for checks whose time grows with the number of tensor products.
_FEW_KINDS = (*_MIXED[1:], _MIXED[0])
#: Fields of a variadic component that states none.
_VARIADIC = ("x", "y")

_Specs = Mapping[str, FieldSpec]


def wire_layer(component: type[GraphLayer], name: str, conformity: Conformity) -> tuple[Wiring, ...]:
    """Wire a layer or head bare, with all optional inputs, and with vectors if it accepts them."""
    search = _Search(component, name, conformity)
    return tuple(search.wiring(specs) for specs in search.choices())


def wire_small_layer(component: type[GraphLayer], name: str, conformity: Conformity) -> tuple[Wiring, ...]:
    """Wire a layer or head bare, and with all optional inputs and few kinds of irreps."""
    search = _Search(component, name, conformity)
    choices = search.choices(_FEW_KINDS)
    return tuple(search.wiring(specs) for specs in choices[:1] + choices[1:][-1:])


class _Search:
    """The search for input fields with which a layer can be built."""

    def __init__(self, component: type[GraphLayer], name: str, conformity: Conformity) -> None:
        self.component = component
        self.name = name
        self.conformity = conformity
        self.target = _target_of(component, name) if issubclass(component, Head) else None

    def wiring(self, specs: _Specs) -> Wiring:
        label = ", ".join(f"{n}={s.irreps}" for n, s in specs.items() if not is_registered(n))
        nonnegative = self.conformity.nonnegative
        return Wiring(
            label=label,
            create=partial(self._create_with_outputs, specs),
            make_inputs=lambda: make_inputs(specs, nonnegative=nonnegative),
            make_degenerate=lambda: degenerate_inputs(specs, nonnegative=nonnegative),
            find_reads=read_names,
            make_regular=lambda: make_inputs(specs, is_regular=True, nonnegative=nonnegative),
            make_large=partial(large_inputs, specs, nonnegative),
            make_even=partial(self._even_wiring, specs),
        )

    def _even_wiring(self, specs: _Specs) -> Wiring | None:
        even = dict(specs)
        for name, spec in specs.items():
            if is_pseudoscalar(spec):
                even[name] = spec.as_(spec.name, irreps=spec.irreps.replace("o", "e"), chiral=False)
        return None if even == dict(specs) else self.wiring(even)

    def choices(self, kinds: Sequence[str] = _MIXED) -> list[dict[str, FieldSpec]]:
        """Return every set of input fields to test, at least one; ``kinds`` are mixed irreps in order of preference."""
        scalars = self._required(_SCALARS)
        mixed = self._required(kinds)
        if isinstance(scalars, Exception) and isinstance(mixed, Exception):
            reads = ", ".join(self.component.reads) or "nothing"
            hint = "\nState them: conformity = protgraph.Conformity(inputs={...})."
            if "is an attribute of every layer" in str(scalars):  # a name of the component's own, not one of its inputs
                hint = ""
            raise WiringError(
                f"{self.name} cannot be built on the fields that it reads ({reads}): {scalars}{hint}"
            ) from scalars
        # bare, then with optional inputs, as scalars and as vectors; each once
        with_optional = []
        if isinstance(scalars, dict):
            with_optional.append(self._with_optional(scalars, _SCALARS))
        if isinstance(mixed, dict):
            with_optional.append(self._with_optional(mixed, kinds))
        bare = scalars if isinstance(scalars, dict) else mixed
        assert isinstance(bare, dict)  # contract: one of them is no error
        choices: list[dict[str, FieldSpec]] = []
        for specs in (bare, *with_optional, *self._hidden(kinds)):
            if specs not in choices:
                choices.append(specs)
        return choices

    def _hidden(self, kinds: Sequence[str]) -> list[dict[str, FieldSpec]]:
        """Return specs with vectors for the inputs that are stated as scalars, if it accepts them."""
        inputs = {}
        hidden = set()
        for name, spec in self.conformity.inputs.items():
            if self._is_stated_scalar(name) and not is_registered(name):
                hidden.add(name)
            else:
                inputs[name] = spec
        if not hidden:
            return []
        search = _Search(self.component, self.name, replace(self.conformity, inputs=inputs))
        specs = search._required(kinds)
        if isinstance(specs, Exception):
            return []
        are_scalars = all(specs[name].is_scalar for name in hidden & specs.keys())
        return [] if are_scalars else [specs]

    def _is_stated_scalar(self, name: str) -> bool:
        spec = self._spec(name)
        return spec is not None and spec.is_scalar and spec.dtype.startswith("float")

    def _required(self, irreps: Sequence[str]) -> dict[str, FieldSpec] | Exception:
        """Return specs with which it can be built, or the error if there are none."""
        names = self.component.reads
        if self.component.variadic:
            stated = tuple(n for n in self.conformity.inputs if n not in names)
            names = (*names, *(stated or _VARIADIC))
        return self._try({}, names, irreps)

    def _with_optional(self, specs: _Specs, irreps: Sequence[str]) -> dict[str, FieldSpec]:
        """Add all optional inputs if they go together; else as many as do, one after another, then in pairs."""
        optional = self.component.optional
        specs = dict(specs)
        for names in (optional, *combinations(optional, 1), *combinations(optional, 2)):
            missing = [name for name in names if name not in specs]
            if not missing:
                continue
            added = self._try(specs, missing, irreps)
            if not isinstance(added, Exception):
                specs = added
        return specs

    def _try(self, specs: _Specs, names: Sequence[str], irreps: Sequence[str]) -> dict[str, FieldSpec] | Exception:
        """Add these names, trying each of the irreps (for edges scalars too) where no spec is stated or registered."""
        fixed: dict[str, FieldSpec] = {}
        choices: dict[Level, Sequence[str]] = {}  # irreps to try for the other fields of each level
        for name in names:
            spec = self._spec(name)
            if spec is not None:
                fixed[name] = spec
            elif level_of(name) == "node":
                choices["node"] = irreps
            else:
                choices[level_of(name)] = tuple(dict.fromkeys((*irreps, *_SCALARS)))
        errors: list[Exception] = []
        for chosen in product(*choices.values()):
            irreps_of_level = dict(zip(choices, chosen, strict=True))
            added = {}
            for name in names:
                if name in fixed:
                    added[name] = fixed[name]
                else:
                    level = level_of(name)
                    added[name] = FieldSpec(name, level, irreps_of_level[level])
            try:
                with torch.random.fork_rng(devices=[]):
                    self._create({**specs, **added})
            except Exception as e:  # noqa: BLE001 -- a component may refuse an input with any error
                errors.append(e.with_traceback(None))  # its frames hold the layer
            else:
                return {**specs, **added}
        return errors[0]

    def _spec(self, name: str) -> FieldSpec | None:
        stated = self.conformity.inputs.get(name)
        if isinstance(stated, FieldSpec):
            return stated
        if stated is not None:
            level = field(name).level if is_registered(name) else level_of(name)
            return FieldSpec(name, level, stated)
        return default_spec(name) if is_registered(name) else None

    def _create(self, specs: _Specs, chosen: Mapping[str, object] | None = None) -> GraphLayer:
        options = {**self.conformity.options, **self.conformity.offline, **(chosen or {})}
        if self.target is not None:
            assert issubclass(self.component, Head)
            return self.component(dict(specs), self.target, **options)
        return self.component(dict(specs), **options)

    def _create_with_outputs(self, specs: _Specs, chosen: Mapping[str, object]) -> GraphLayer:
        """Create it; the rows of a head's outputs are of the target's level."""
        module = self._create(specs, chosen)
        if self.target is not None:
            assert isinstance(module, Head)
            check_logits(module, self.name, self.target)
            module.outputs = {name: s.as_(s.name, level=self.target.level) for name, s in module.out.items()}
        return module


def _target_of(component: type[Head], name: str) -> Target:
    """Return the target whose default head has this name; else one with this head, of its level or that of its name."""
    targets = (t for t in targets_of_all_kinds() if t.head_name == name)
    level = component.level or level_of(name)
    return next(targets, Target("conformity", level, "classification", TARGET_SIZE, head=name))
