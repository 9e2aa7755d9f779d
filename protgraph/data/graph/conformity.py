"""Statements of a component about its conformity tests; all have defaults, and most components state nothing."""

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
    """Test inputs, tolerance and expected failures of a component, for :mod:`protgraph.testing`.

    A layer, head or featurizer has it as the class attribute ``conformity``. If it depends on options, it sets
    ``self.conformity``, which applies to models that use it with these options.

    Parameters
    ----------
    inputs : mapping of str to str or FieldSpec
        Local name → irreps or spec, if the default inputs do not fit. By default, registered fields have their
        registered spec; ``h`` and other local names are 16 scalars, and also scalars, pseudoscalars and vectors if the
        component accepts them. For a variadic component, these are the fields that it reads.
    options : mapping
        Options other than the defaults, for all checks.
    offline : mapping
        Options that replace downloads (e.g. of published weights), for all checks of the component and of models with
        it.
    nonnegative : tuple of str
        Names of inputs that are never below 0, e.g. weights of edges.
    tolerance : float
        Largest relative error of float32 against float64, also 100 to 300 Å off center. Float64 is held to 1e-10. The
        default is the error of the least exact published reference implementations.
    proteins : {"short", "packed"}
        Test proteins of structure and edge featurizers: short chains with side chains up to CG, or chains with whole
        side chains that overlap, so that residues interact in every way.
    expected_failures : mapping of str to str
        Name of a check → reason why the component cannot pass it. Strict: it is an error if the check passes.

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
            raise OptionError(f"proteins={self.proteins!r} is not supported. Use 'short' or 'packed'.")
        without_reason = [check for check, reason in self.expected_failures.items() if not reason.strip()]
        if without_reason:
            raise OptionError(f"expected_failures[{without_reason[0]!r}] has no reason. State why it cannot pass.")

    def __reduce__(self) -> tuple[object, ...]:
        inputs = dict(self.inputs), dict(self.options), dict(self.offline), self.nonnegative
        return Conformity, (*inputs, self.tolerance, self.proteins, dict(self.expected_failures))
