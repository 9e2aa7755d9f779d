"""Specification of one component of a model: registry name, options and wiring to fields, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from protgraph.errors import WiringError, suggest

__all__ = ["ComponentSpec", "as_component", "as_components", "component"]

_EMPTY: Mapping[str, str] = MappingProxyType({})
_TYPES = {
    "name": str,
    "options": dict[str, Any],
    "reads": dict[str, str],
    "inputs": Sequence[str],
    "writes": dict[str, str],
}


@dataclass(frozen=True)
class ComponentSpec:
    """Registry name with options and wiring, as plain data.

    Parameters
    ----------
    name : str
        Registry name of a featurizer or a layer.
    options : mapping
        Keyword options: numbers, strings, booleans, None, and lists or dicts of these.
    reads : mapping of str to str
        Local name to field of the model; local names that are omitted read the field of the same name.
    inputs : tuple of str
        Fields that a variadic component (``embed``, ``concat``) reads in addition, in this order.
    writes : mapping of str to str
        Local name to field of the model; local names that are omitted write the field of the same name.

    Raises
    ------
    WiringError
        If the options are not plain data, or a value has the wrong type; with the path of the key.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_types()
        try:
            options = json.loads(json.dumps(dict(self.options)))
        except (TypeError, ValueError) as e:
            raise WiringError(
                f"component {self.name!r}: options must be plain data (numbers, strings, lists, dicts): {e}"
            ) from e
        object.__setattr__(self, "options", MappingProxyType(options))
        object.__setattr__(self, "reads", MappingProxyType(dict(self.reads)))
        object.__setattr__(self, "writes", MappingProxyType(dict(self.writes)))
        object.__setattr__(self, "inputs", tuple(self.inputs))

    def _check_types(self) -> None:
        from protgraph.validation import check_value  # pydantic takes 50 ms to import

        label = f"component {self.name!r}" if isinstance(self.name, str) else "component"
        for key, annotation in _TYPES.items():
            value = getattr(self, key)
            value = dict(value) if isinstance(value, Mapping) else value
            check_value(value, annotation, path=f"{label}.{key}", error=WiringError)

    def __repr__(self) -> str:
        parts = [f"{key}={value!r}" for key, value in self.options.items()]
        if self.inputs:
            parts.append(f"{'inputs' if self.reads else 'reads'}={list(self.inputs)!r}")
        parts += [f"{key}={dict(value)!r}" for key in ("reads", "writes") if (value := getattr(self, key))]
        return f"component({', '.join([repr(self.name), *parts])})"

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __deepcopy__(self, memo: dict[int, Any]) -> ComponentSpec:
        return self  # immutable

    def __reduce__(self) -> tuple[object, ...]:
        return ComponentSpec, (self.name, dict(self.options), dict(self.reads), self.inputs, dict(self.writes))

    def input_field(self, local: str) -> str:
        """Return the field of the model that is read under a local name."""
        return self.reads.get(local, local)

    def output_field(self, local: str) -> str:
        """Return the field of the model that is written under a local name."""
        return self.writes.get(local, local)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; empty entries are omitted."""
        data = {
            "name": self.name,
            "options": dict(self.options),
            "reads": dict(self.reads),
            "inputs": list(self.inputs),
            "writes": dict(self.writes),
        }
        return {k: v for k, v in data.items() if k == "name" or v}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ComponentSpec:
        """Create a component from the data of :meth:`to_dict`.

        Raises
        ------
        WiringError
            If a key is unknown or missing, or a value has the wrong type; with the path of the key.
        """
        name = data.get("name")
        label = f"component {name!r}" if isinstance(name, str) else "component"
        for key in data:
            if key not in _TYPES:
                hint = suggest(key, _TYPES) if isinstance(key, str) else ""
                raise WiringError(f"{label}: unknown key {key!r}.{hint} Allowed: {', '.join(_TYPES)}.")
        if name is None:
            raise WiringError(f"{label}: key 'name' is missing in {dict(data)!r}.")
        return cls(**data)


def component(
    name: str,
    /,
    *,
    reads: Mapping[str, str] | Sequence[str] = _EMPTY,
    writes: Mapping[str, str] = _EMPTY,
    **options: Any,
) -> ComponentSpec:
    """Create a component: ``component("gat", heads=4, reads={"edge_attr": "edge_rbf"}, writes={"h": "message"})``.

    Parameters
    ----------
    name : str
        Registry name.
    reads : mapping or sequence of str
        Local name to field; for variadic components, the list of fields to read.
    writes : mapping of str to str
        Local name to field.
    **options
        Options of the component, checked against its signature when the model is built.

    Examples
    --------
    >>> component("gat", heads=4, reads={"edge_attr": "edge_rbf"}).to_dict()
    {'name': 'gat', 'options': {'heads': 4}, 'reads': {'edge_attr': 'edge_rbf'}}
    """
    if isinstance(reads, Mapping):
        return ComponentSpec(name, options, reads, (), writes)
    if isinstance(reads, str) or not isinstance(reads, Sequence):
        raise WiringError(f"component {name!r}: reads={reads!r}. Allowed: a dict or a list of fields.")
    return ComponentSpec(name, options, _EMPTY, tuple(reads), writes)


def as_component(item: ComponentSpec | str | Mapping[str, Any]) -> ComponentSpec:
    """Convert a name, a dict or a component to a component."""
    if isinstance(item, ComponentSpec):
        return item
    if isinstance(item, str):
        return ComponentSpec(item)
    if isinstance(item, Mapping):
        return ComponentSpec.from_dict(item)
    raise WiringError(f"component {item!r}. Allowed: a name, a dict or component(...).")


def as_components(items: Sequence[ComponentSpec | str | Mapping[str, Any]], key: str) -> tuple[ComponentSpec, ...]:
    """Convert a list of names, dicts and components.

    Raises
    ------
    WiringError
        If a single component is given instead of a list; ``key`` names the argument.
    """
    if isinstance(items, str | Mapping | ComponentSpec):
        raise WiringError(f"{key} must be a list. Write {key}=[{items!r}].")
    if not isinstance(items, Sequence):
        raise WiringError(f"{key} = {items!r}. Allowed: a list of names, dicts and components.")
    for item in items:
        if not isinstance(item, ComponentSpec | str | Mapping):
            raise WiringError(f"{key}: component {item!r}. Allowed: a name, a dict or component(...).")
    return tuple(as_component(item) for item in items)
