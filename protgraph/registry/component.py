"""One use of a registry name in a model graph: the name, its options, and which fields it is wired to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from protgraph.errors import WiringError

__all__ = ["ComponentSpec", "as_component", "as_components", "component"]

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ComponentSpec:
    """A registry name with options and wiring; pure data.

    Parameters
    ----------
    name : str
        Registry name of a featurizer or a layer.
    options : mapping
        Its keyword options: numbers, strings, booleans, None, and lists or dicts of those.
    reads : mapping of str to str
        Local name → field of the model; names left out are read under their own name.
    inputs : tuple of str
        Fields that a variadic component (``embed``, ``concat``) reads besides, in this order.
    writes : mapping of str to str
        Local name → field of the model; names left out are written under their own name.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    writes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            plain = json.loads(json.dumps(dict(self.options)))
        except (TypeError, ValueError) as e:
            raise WiringError(
                f"node {self.name!r}: options must be plain data (numbers, strings, lists, dicts): {e}"
            ) from e
        object.__setattr__(self, "options", MappingProxyType(plain))
        object.__setattr__(self, "reads", MappingProxyType(dict(self.reads)))
        object.__setattr__(self, "writes", MappingProxyType(dict(self.writes)))
        object.__setattr__(self, "inputs", tuple(self.inputs))

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __reduce__(self) -> tuple[object, ...]:
        return ComponentSpec, (self.name, dict(self.options), dict(self.reads), self.inputs, dict(self.writes))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; empty parts are left out."""
        whole = {
            "name": self.name,
            "options": dict(self.options),
            "reads": dict(self.reads),
            "inputs": list(self.inputs),
            "writes": dict(self.writes),
        }
        return {k: v for k, v in whole.items() if k == "name" or v}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ComponentSpec:
        """The inverse of :meth:`to_dict`."""
        known = {"name", "options", "reads", "inputs", "writes"}
        if "name" not in data or set(data) - known:
            raise WiringError(f"a node is a dict with 'name' and any of {sorted(known - {'name'})}; got {dict(data)!r}")
        rest = {k: v for k, v in data.items() if k in known - {"inputs"}}
        return cls(**rest, inputs=tuple(data.get("inputs", ())))


def component(
    name: str,
    /,
    *,
    reads: Mapping[str, str] | Sequence[str] = _EMPTY,
    writes: Mapping[str, str] = _EMPTY,
    **options: Any,
) -> ComponentSpec:
    """Write a node: ``node("gat", heads=4, reads={"edge_attr": "edge_rbf"}, writes={"h": "message"})``.

    Parameters
    ----------
    name : str
        Registry name.
    reads : mapping or sequence of str
        Local name → field; or, for variadic components, the list of fields to read.
    writes : mapping of str to str
        Local name → field.
    **options
        The component's own options; checked against its signature when the model is built.
    """
    if isinstance(reads, Mapping):
        return ComponentSpec(name, options, reads, (), writes)
    if isinstance(reads, str):
        raise WiringError(f"node {name!r}: reads={reads!r} must be a dict or a list of fields, not a string")
    return ComponentSpec(name, options, _EMPTY, tuple(reads), writes)


def as_component(given: ComponentSpec | str | Mapping[str, Any]) -> ComponentSpec:
    """A node from a name, a dict or a node."""
    if isinstance(given, ComponentSpec):
        return given
    if isinstance(given, str):
        return ComponentSpec(given)
    if isinstance(given, Mapping):
        return ComponentSpec.from_dict(given)
    raise WiringError(f"a node is a name, a dict or node(...); got {given!r}")


def as_components(given: Sequence[ComponentSpec | str | Mapping[str, Any]], what: str) -> tuple[ComponentSpec, ...]:
    """Nodes from a list of names, dicts and nodes.

    Raises
    ------
    WiringError
        It is one of them and no list: of a name, every letter would be taken for one.
    """
    if isinstance(given, str | Mapping | ComponentSpec):
        raise WiringError(f"{what} are a list; write {what}=[{given!r}]")
    return tuple(as_component(n) for n in given)
