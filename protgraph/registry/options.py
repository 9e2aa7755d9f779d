"""Options of a component: read from its own signature, and checked against it before it is called."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

from protgraph.errors import OptionError, suggest

__all__ = ["Option", "check_options", "options_of", "refuse_open_signature"]

# Component → its function and signature, which takes 30 µs to read.
_READ: WeakKeyDictionary[Callable[..., object], tuple[ref[types.FunctionType], inspect.Signature]] = WeakKeyDictionary()
_SIMPLE = {int: numbers.Integral, float: numbers.Real, bool: bool, str: str, type(None): type(None), None: type(None)}


@dataclass(frozen=True)
class Option:
    """One keyword-only argument of a component.

    Parameters
    ----------
    name : str
    annotation : object
        The resolved annotation, its text where it cannot be resolved, or :data:`inspect.Parameter.empty`.
    default : object
        :data:`inspect.Parameter.empty` where the option must be given.
    """

    name: str
    annotation: object
    default: object

    @property
    def required(self) -> bool:
        """Whether the component cannot be called without it."""
        return self.default is inspect.Parameter.empty

    @property
    def type_name(self) -> str:
        """The annotation as a reader would write it; "" without one."""
        if self.annotation is inspect.Parameter.empty:
            return ""
        if typing.get_origin(self.annotation) is typing.Literal:
            return " or ".join(map(repr, typing.get_args(self.annotation)))
        return self.annotation.__name__ if inspect.isclass(self.annotation) else str(self.annotation)

    def __str__(self) -> str:
        return f"{self.name} (required)" if self.required else f"{self.name}={self.default!r}"


def options_of(component: Callable[..., object]) -> dict[str, Option]:
    """The keyword-only arguments of a class or function, by name.

    Examples
    --------
    >>> def component(fields, *, dim: int = 64, heads: int = 4): ...
    >>> [str(option) for option in options_of(component).values()]
    ['dim=64', 'heads=4']
    """
    scope = getattr(inspect.unwrap(_function(component)), "__globals__", {})
    return {
        p.name: Option(p.name, _resolve(p.annotation, scope), p.default)
        for p in _parameters(component).values()
        if p.kind is p.KEYWORD_ONLY
    }


def refuse_open_signature(component: Callable[..., object], label: str) -> None:
    """Raise :class:`OptionError` where ``**kwargs`` would swallow misspelt options."""
    for p in _parameters(component).values():
        if p.kind is p.VAR_KEYWORD:
            raise OptionError(f"{label}: its signature has **{p.name}; spell its options out, keyword-only")


def check_options(
    component: Callable[..., object], args: tuple[object, ...], options: Mapping[str, object], label: str, name: str
) -> None:
    """Raise :class:`OptionError` unless ``component(*args, **options)`` fits the component's signature.

    Parameters
    ----------
    component : callable
    args : tuple
        The positional arguments that the caller supplies (fields, target).
    options : mapping
    label : str
        Where in the model graph: "layers[2] (gat)".
    name : str
        Registry name: "gat".
    """
    refuse_open_signature(component, label)
    known = options_of(component)
    takes = f"{name} takes {', '.join(map(str, known.values())) or 'no options'}"
    for key in options:
        if key not in known:
            raise OptionError(f"{label}: got {key!r}; {takes}{_hint(key, component, known)}")
    for option in known.values():
        if option.required and option.name not in options:
            raise OptionError(f"{label}: {option.name!r} is missing; {takes}")
        if option.name in options and not _fits(options[option.name], option.annotation):
            value = options[option.name]
            raise OptionError(f"{label}: {option.name}={value!r} is not {option.type_name}; {takes}")
    try:
        _signature(component).bind(*args, **options)
    except TypeError as e:
        raise OptionError(f"{label}: called with {len(args)} positional argument(s): {e}") from e


def _hint(key: str, component: Callable[..., object], known: Mapping[str, Option]) -> str:
    if key in _parameters(component):
        return f". {key!r} is positional there: a component's options stand after a bare *"
    hint = suggest(key, known)
    return f".{hint}" if hint else ""


def _parameters(component: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return _signature(component).parameters
    except ValueError as e:  # some builtins have none
        raise OptionError(f"{component!r} has no signature to check options against; wrap it in a function") from e


def _signature(component: Callable[..., object]) -> inspect.Signature:
    """Read once for each function and class, again where a class has got another ``__init__``."""
    function = _function(component)
    if not inspect.isfunction(function):
        return inspect.signature(component)
    known = _READ.get(component)
    if known is None or known[0]() is not function:
        known = _READ[component] = (ref(function), inspect.signature(component))
    return known[1]


def _function(component: Callable[..., object]) -> Callable[..., object]:
    return component.__init__ if inspect.isclass(component) else component


def _resolve(annotation: object, scope: dict[str, object]) -> object:
    """The annotation's value, or its text where a name in it is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)
    except (AttributeError, NameError, SyntaxError, TypeError):
        return annotation


def _fits(value: object, annotation: object) -> bool:
    """Whether a value can be meant by int, float, bool, str, None, Literal or a union of them; others pass."""
    if typing.get_origin(annotation) is typing.Literal:
        return value in typing.get_args(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in typing.get_args(annotation))
    allowed = _SIMPLE.get(annotation) if annotation is None or isinstance(annotation, type) else None
    if allowed is None:
        return True
    return isinstance(value, allowed) and (annotation is bool or not isinstance(value, bool))
