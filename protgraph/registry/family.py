"""Named variants of one component: ``egnn``, ``egnn.satorras2021``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Generic, TypeVar

from protgraph.errors import OptionError

__all__ = ["Family"]

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
