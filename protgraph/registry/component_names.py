"""Names of components: allowed characters, and ``DISTRIBUTION/NAME`` for the component of one distribution."""

from __future__ import annotations

import re

from protgraph.errors import InvalidNameError

__all__ = ["check_component_name", "is_component_name", "normalized_distribution", "split_distribution"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_COMMAND = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})?")
_RULE = "Allowed: letters, digits, '_' and '-' (ASCII), e.g. 'gated_conv'."


def is_component_name(name: object, kind: str) -> bool:
    """Check if a component can have this name: dots separate variants or subcommands, and slashes distributions."""
    pattern = _COMMAND if kind == "command" else _NAME
    return isinstance(name, str) and pattern.fullmatch(name) is not None


def check_component_name(name: object, kind: str) -> None:
    """Raise :class:`InvalidNameError` if a component cannot be registered under this name."""
    if is_component_name(name, kind):
        return
    if not isinstance(name, str):
        value = getattr(name, "__name__", None) or repr(name)
        raise InvalidNameError(
            f"{kind} name {value!s:.60} is of type {type(name).__name__}, not a text. "
            f"Register with a name: {kind}s.register('my_{kind}')."
        )
    raise InvalidNameError(f"{kind} name {name!r} is not valid. {_RULE}")


def normalized_distribution(name: str) -> str:
    """Return the name of a distribution in the form in which names are compared (PyPA name normalization).

    Examples
    --------
    >>> normalized_distribution("Acme_Gated.layers")
    'acme-gated-layers'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def split_distribution(name: str) -> tuple[str, str]:
    """Split ``DISTRIBUTION/NAME``; the distribution is "" without a slash.

    Examples
    --------
    >>> split_distribution("acme-gated/gcn.v2"), split_distribution("gcn.v2")
    (('acme-gated', 'gcn.v2'), ('', 'gcn.v2'))
    """
    distribution, _, rest = name.rpartition("/")
    return distribution, rest
