"""What a component states about its own conformity tests; everything has a default, most components state nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError

__all__ = ["Conformity"]


@dataclass(frozen=True)
class Conformity:
    """How :mod:`protgraph.testing` feeds a component, and how far from exact it may be.

    A layer, head or featurizer carries it as the class attribute ``conformity``; where its options decide, it sets
    ``self.conformity``, which the models that use it so are held to.

    Parameters
    ----------
    inputs : mapping of str to str or FieldSpec
        Local name → irreps, or a whole spec, where the usual inputs do not fit. Those are: fields of the table as
        the table says; ``h`` and other local names as 16 scalars, and besides as scalars, pseudoscalars and vectors
        where the component takes them. For a variadic component, these are the fields that it reads.
    options : mapping
        Options besides the defaults, with which every check but the first builds it.
    offline : mapping
        Options in place of what would have to be downloaded (published weights, say): every check builds it with them,
        and a model that it is part of too.
    nonnegative : tuple of str
        Inputs that are never below 0, such as weights of edges.
    tolerance : float
        Largest relative error in float32, 100 to 300 Å off center too, against float64. Float64 is held to 1e-10. The
        default is what the least exact of the published reference implementations reach.
    proteins : {"short", "packed"}
        What structure and edge featurizers are tried on: short chains with the beginnings of side chains, or chains
        with whole side chains that run through each other, so that residues interact in every way.
    expected_failures : mapping of str to str
        Name of a check → why the component cannot pass it. Strict: a check that passes all the same is an error.

    Examples
    --------
    >>> conformity = Conformity(inputs={"h": "8x0e+4x1o"}, tolerance=1e-5)
    >>> conformity.inputs["h"]
    '8x0e+4x1o'
    """

    inputs: Mapping[str, str | FieldSpec] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    offline: Mapping[str, object] = field(default_factory=dict)
    nonnegative: tuple[str, ...] = ()
    tolerance: float = 3e-5
    proteins: Literal["short", "packed"] = "short"
    expected_failures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("inputs", "options", "offline", "expected_failures"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "nonnegative", tuple(self.nonnegative))
        if self.proteins not in ("short", "packed"):
            raise OptionError(f"proteins {self.proteins!r} is none of 'short', 'packed'")
        silent = [check for check, reason in self.expected_failures.items() if not reason.strip()]
        if silent:
            raise OptionError(f"the expected failure of {silent[0]!r} has no reason; say why it cannot pass")

    def __reduce__(self) -> tuple[object, ...]:
        fed = dict(self.inputs), dict(self.options), dict(self.offline), self.nonnegative
        return Conformity, (*fed, self.tolerance, self.proteins, dict(self.expected_failures))
