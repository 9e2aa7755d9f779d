"""Several variants of one component under one name: ``egnn``, ``egnn.satorras2021``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from protgraph.errors import OptionError

__all__ = ["Family"]


class Family:
    """A registered name with variants; the first one is the default.

    Parameters
    ----------
    variants : mapping of str to object
        Variant name (author and year: ``satorras2021``) → component. Insertion order counts.
    doc : str
        What the variants share.

    Examples
    --------
    >>> family = Family({"kipf2017": "first", "plain": "second"})
    >>> family.default
    'kipf2017'
    >>> family.variants["plain"]
    'second'
    """

    def __init__(self, variants: Mapping[str, object], *, doc: str = "") -> None:
        if not variants:
            raise OptionError("a Family needs at least one variant")
        dotted = [name for name in variants if "." in name or not name]
        if dotted:
            raise OptionError(f"variant name {dotted[0]!r}: give the part after the dot only, 'satorras2021'")
        self.variants: Mapping[str, object] = MappingProxyType(dict(variants))
        self.doc = doc

    @property
    def default(self) -> str:
        """Name of the first variant."""
        return next(iter(self.variants))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Family, doc=self.doc), (dict(self.variants),)

    def __repr__(self) -> str:
        return f"Family({', '.join(self.variants)})"
