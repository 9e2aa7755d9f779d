"""Options of a component: its keyword-only arguments, read from the signature and checked before the call."""

# Not pydantic.validate_call: strict mode rejects NumPy numbers, lax mode accepts "3" for 3 (pydantic 2, 2026-11-22).

from __future__ import annotations

import inspect
import numbers
import operator
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

from annotated_types import Ge, Le

from protgraph.errors import OptionError, suggest

__all__ = ["Option", "check_options", "component_options", "reject_var_keyword"]

# Component → its function and signature; reading a signature takes 30 µs.
_SIGNATURES: WeakKeyDictionary[Callable[..., object], tuple[ref[types.FunctionType], inspect.Signature]] = (
    WeakKeyDictionary()
)
_SIMPLE = {int: numbers.Integral, float: numbers.Real, bool: bool, str: str, type(None): type(None), None: type(None)}
_UNIONS = (typing.Union, types.UnionType)
# Attribute of a limit of annotated_types (Ge(1).ge is 1) → its comparison and sign.
_LIMITS = {"ge": (operator.ge, "≥"), "gt": (operator.gt, ">"), "le": (operator.le, "≤"), "lt": (operator.lt, "<")}

# Limits of options that mean the same in every component, if their annotation has none.
_SIZES = ("dim", "heads")
_SIZE = typing.Annotated[int, Ge(1)]
_DROPOUT = typing.Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class Option:
    """Keyword-only argument of a component.

    ``annotation``: the resolved annotation, its text if it cannot be resolved, or :data:`inspect.Parameter.empty`.
    ``default``: :data:`inspect.Parameter.empty` if the option is required.
    """

    name: str
    annotation: object
    default: object

    @property
    def is_required(self) -> bool:
        """True if the option has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def type_name(self) -> str:
        """The annotation as text, e.g. "int ≥ 1"; "" without annotation."""
        return "" if self.annotation is inspect.Parameter.empty else _type_name(self.annotation)

    def __str__(self) -> str:
        return f"{self.name} (required)" if self.is_required else f"{self.name}={self.default!r}"


def component_options(component: Callable[..., object]) -> dict[str, Option]:
    """Return the keyword-only arguments of a class or function, by name.

    An int ``dim`` or ``heads`` is 1 or more, and a float ``dropout`` is 0 to 1, unless the annotation has other limits.

    Examples
    --------
    >>> def component(fields, *, dim: int = 64, heads: int = 4): ...
    >>> [str(option) for option in component_options(component).values()]
    ['dim=64', 'heads=4']
    """
    scope = getattr(inspect.unwrap(_function(component)), "__globals__", {})
    options = {}
    for p in _parameters(component).values():
        if p.kind is p.KEYWORD_ONLY:
            annotation = _with_limits(p.name, _resolve(p.annotation, scope))
            options[p.name] = Option(p.name, annotation, p.default)
    return options


def _with_limits(name: str, annotation: object) -> object:
    """Return the annotation of an option, with the limits that follow from its name."""
    if annotation is int and name in _SIZES:
        return _SIZE
    if annotation is float and name == "dropout":
        return _DROPOUT
    return annotation


def reject_var_keyword(component: Callable[..., object], label: str) -> None:
    """Raise :class:`OptionError` if the signature has ``**kwargs``, which would accept misspelled options."""
    for p in _parameters(component).values():
        if p.kind is p.VAR_KEYWORD:
            raise OptionError(f"{label}: the signature has **{p.name}. List each option as a keyword-only argument.")


def check_options(
    component: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object], label: str, name: str
) -> None:
    """Check that ``component(*args, **options)`` is a valid call."""
    reject_var_keyword(component, label)
    allowed = component_options(component)
    usage = f"{name} takes {', '.join(map(str, allowed.values())) or 'no options'}"
    for key in options:
        if key not in allowed:
            raise OptionError(f"{label}: got {key!r}; {usage}{_hint(key, component, allowed)}")
    for option in allowed.values():
        if option.is_required and option.name not in options:
            raise OptionError(f"{label}: {option.name!r} is missing; {usage}")
        if option.name in options and not _fits(options[option.name], option.annotation):
            value = options[option.name]
            hint = suggest(str(value), _literals(option.annotation))
            text = f"{label}: {option.name}={value!r} is not {option.type_name}; {usage}"
            raise OptionError(f"{text}.{hint}" if hint else text)
    try:
        _signature(component).bind(*args, **options)
    except TypeError as e:
        raise OptionError(f"{label}: called with {len(args)} positional argument(s): {e}") from e


def _literals(annotation: object) -> list[str]:
    """Return the strings that a ``Literal``, also in a union, allows."""
    if typing.get_origin(annotation) is typing.Literal:
        return [value for value in typing.get_args(annotation) if isinstance(value, str)]
    return [value for member in typing.get_args(annotation) for value in _literals(member)]


def _hint(key: str, component: Callable[..., object], allowed: Mapping[str, Option]) -> str:
    if key in _parameters(component):
        return f". {key!r} is a positional parameter; declare options after a bare * in the signature"
    hint = suggest(key, allowed)
    return f".{hint}" if hint else ""


def _parameters(component: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return _signature(component).parameters
    except ValueError as e:  # some builtins have no signature
        raise OptionError(f"{component!r} has no signature to check options against. Wrap it in a function.") from e


def _signature(component: Callable[..., object]) -> inspect.Signature:
    """Return the signature, cached as long as the component has the same function."""
    function = _function(component)
    if not inspect.isfunction(function):
        return inspect.signature(component)
    cached = _SIGNATURES.get(component)
    if cached is None or cached[0]() is not function:
        cached = _SIGNATURES[component] = (ref(function), inspect.signature(component))
    return cached[1]


def _function(component: Callable[..., object]) -> Callable[..., object]:
    return component.__init__ if inspect.isclass(component) else component


def _resolve(annotation: object, scope: dict[str, object]) -> object:
    """Evaluate an annotation; return its text if a name in it is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)
    except (AttributeError, NameError, SyntaxError, TypeError):
        return annotation


def _type_name(annotation: object) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(map(repr, arguments))
    if origin is typing.Annotated:
        limits = [f"{sign} {limit:g}" for _, sign, limit in _limits(arguments[1:])]
        return f"{_type_name(arguments[0])} {', '.join(limits)}".rstrip()
    if origin in _UNIONS and any(typing.get_origin(part) is typing.Annotated for part in arguments):
        return " | ".join(map(_type_name, arguments)).replace("NoneType", "None")
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation)


def _limits(metadata: tuple[object, ...]) -> list[tuple[Callable[[typing.Any, typing.Any], bool], str, float]]:
    """Return comparison, sign and value of each limit of a number in ``Annotated``; other metadata has none."""
    limits = []
    for limit in metadata:
        for name, (compare, sign) in _LIMITS.items():
            if hasattr(limit, name):
                limits.append((compare, sign, getattr(limit, name)))
    return limits


def _fits(value: object, annotation: object) -> bool:
    """Check a value against int, float, bool, str, None, Literal, limits of numbers or a union of these.

    Other annotations accept all.
    """
    if typing.get_origin(annotation) is typing.Literal:
        return value in typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *metadata = typing.get_args(annotation)
        return _fits(value, kind) and all(compare(value, limit) for compare, _, limit in _limits(tuple(metadata)))
    if typing.get_origin(annotation) in _UNIONS:
        return any(_fits(value, part) for part in typing.get_args(annotation))
    allowed = _SIMPLE.get(annotation) if annotation is None or isinstance(annotation, type) else None
    if allowed is None:
        return True
    return isinstance(value, allowed) and (annotation is bool or not isinstance(value, bool))
