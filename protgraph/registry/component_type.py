"""Types that the components of a registry can have, compared without importing torch; variants of a component."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from protgraph.errors import ComponentTypeError, OptionError

__all__ = ["ComponentType", "Family"]

T = TypeVar("T")


class Family(Generic[T]):
    """Variants of a component under one registry name; the first one is the default.

    Parameters
    ----------
    variants : mapping of str to object
        Variant name (author and year, e.g. ``satorras2021``) to component. The order is kept.
    doc : str
        Description of what the variants have in common.

    Raises
    ------
    OptionError
        If there is no variant, or a variant name is empty or contains a dot.

    Examples
    --------
    >>> family = Family({"kipf2017": "first", "plain": "second"})
    >>> family.default
    'kipf2017'
    >>> family.variants["plain"]
    'second'
    """

    def __init__(self, variants: Mapping[str, T], *, doc: str = "") -> None:
        if not isinstance(variants, Mapping) or not variants:
            raise OptionError(f"Family: variants = {variants!r}. Allowed: a mapping of one variant name or more.")
        for name in variants:
            if "." in name or not name:
                raise OptionError(f"variant name {name!r}. Give the part after the dot only, e.g. 'satorras2021'.")
        self.variants: Mapping[str, T] = MappingProxyType(dict(variants))
        self.doc = doc

    @property
    def default(self) -> str:
        """Name of the first variant."""
        return next(iter(self.variants))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Family, doc=self.doc), (dict(self.variants),)

    def __repr__(self) -> str:
        return f"Family({', '.join(self.variants)})"


@dataclass(frozen=True)
class ComponentType:
    """Type of the components of one registry.

    Parameters
    ----------
    text : str
        Description for messages, e.g. "a subclass of protgraph.Head".
    base : str
        Base class as "module:class", or several separated by a space. It is not imported: if its module is not loaded,
        no object has this type.
    methods : tuple of str
        Methods of a class that needs no base class.
    classes, instances : bool
        True if subclasses, or instances, of the base class are allowed.
    without : str
        Subclass of the base class that has a registry of its own, as "module:class".
    """

    text: str
    base: str = ""
    classes: bool = False
    instances: bool = False
    without: str = ""
    methods: tuple[str, ...] = ()

    def check(self, obj: object, label: str) -> None:
        """Raise :class:`ComponentTypeError` if an object, or a variant of a family, is not of this type."""
        for name, part in _parts(obj):
            if not self._accepts(part):
                raise ComponentTypeError(f"{label}{name} is {_description(part)}. Allowed: {self.text}, or a Family.")
            missing = sorted(getattr(part, "__abstractmethods__", ())) if issubclass(type(part), type) else []
            if missing:
                raise ComponentTypeError(
                    f"{label}{name} is {_description(part)}, which does not define {', '.join(missing)}. Define each "
                    "method of the base class."
                )

    def _accepts(self, obj: object) -> bool:
        # type(obj), not obj.__class__, which a proxy may report as that of another object
        is_class = issubclass(type(obj), type)
        if not (self.classes if is_class else self.instances):
            return False
        cls: Any = obj if is_class else type(obj)
        if self.methods:
            return all(callable(getattr(cls, name, None)) for name in self.methods)
        is_component = any(issubclass(cls, base) for base in _loaded(self.base))
        return is_component and not any(issubclass(cls, base) for base in _loaded(self.without))


def _parts(obj: Any) -> Iterator[tuple[str, object]]:
    """Yield the variants of a family with their suffixes, or the object itself."""
    if issubclass(type(obj), Family):
        yield from ((f".{name}", part) for name, part in obj.variants.items())
    else:
        yield "", obj


def _loaded(refs: str) -> list[type]:
    """Return the classes of "module:class" whose modules are loaded."""
    pairs = [ref.partition(":") for ref in refs.split()]
    return [getattr(sys.modules[module], name) for module, _, name in pairs if hasattr(sys.modules.get(module), name)]


def _description(obj: Any) -> str:
    """Return the kind of an object without using its own methods, which may raise."""
    own = type(obj)
    if issubclass(own, type):
        return f"the class {obj.__module__}.{obj.__qualname__}"
    return f"an object of type {own.__module__}.{own.__qualname__}"
