"""Registry of one kind of component.

Not catalogue: a name with two providers resolves silently to one of them, and options are not checked (2.0.10,
2026-11-22).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar, overload

from protgraph.errors import (
    DuplicateNameError,
    OptionError,
    PluginLoadError,
    ProtgraphError,
    UnknownNameError,
    suggest,
)
from protgraph.registry.discovery import PluginProblem, Provider, RegistryEntry, installed_providers
from protgraph.registry.family import Family
from protgraph.registry.options import check_options, reject_var_keyword

__all__ = ["Registry"]

T = TypeVar("T")
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


class Registry:
    """Mapping of names to components of one kind.

    Installed distributions provide components through an entry-point group, the running process through
    :meth:`register`. No provider overwrites another: if a name has two different objects, using it raises.

    Parameters
    ----------
    kind : str
        Kind of component for messages, e.g. "layer".
    group : str
        Entry-point group, e.g. "protgraph.layers".

    Examples
    --------
    >>> shapes = Registry(kind="shape", group="protgraph.shapes")
    >>> @shapes.register("box")
    ... class Box:
    ...     def __init__(self, *, side: float = 1.0):
    ...         self.side = side
    >>> shapes.names(), shapes.create("box", options={"side": 2.0}).side
    (['box'], 2.0)
    """

    def __init__(self, *, kind: str, group: str) -> None:
        self.kind, self.group = kind, group
        self._session: dict[str, Provider] = {}
        self._installed: tuple[tuple[str, ...], dict[str, list[Provider]]] = ((), {})

    @overload
    def register(self, name: str) -> Callable[[T], T]: ...
    @overload
    def register(self, name: str, obj: T) -> T: ...
    def register(self, name: str, obj: object = None) -> object:
        """Register a component for this process, directly or as a decorator; return the component.

        Registering the same object twice has no effect.

        Raises
        ------
        DuplicateNameError
            If another object has the name; the message locates both.
        OptionError
            If the signature of the component has ``**kwargs``.
        """
        caller = sys._getframe(1)
        line = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        if obj is None:
            return lambda decorated: self._add(name, decorated, line)
        return self._add(name, obj, line)

    def _add(self, name: str, obj: object, line: str) -> object:
        new = Provider.from_session(name, self.kind, obj, line)
        if callable(obj):
            reject_var_keyword(obj, f"{self.kind} {name!r}")
        for old in self._providers(name):
            if not _is_same(old, new):
                raise DuplicateNameError(_conflict(self.kind, name, [old, new]))
        self._session[name] = new
        return obj

    def get(self, name: str) -> object:
        """Return a component, importing it on first use; the name of a family gives its default variant.

        Raises
        ------
        UnknownNameError
            If there is no such name; with similar names and all names.
        PluginLoadError
            If the import fails.
        DuplicateNameError
            If two distributions provide different objects under this name.
        """
        name, variant = self._split(name)
        obj = self._load(name)
        if isinstance(obj, Family):
            if variant and variant not in obj.variants:
                raise UnknownNameError(
                    f"{self.kind} {name!r} has no variant {variant!r}. Variants: {', '.join(obj.variants)}."
                )
            return obj.variants[variant or obj.default]
        if variant:
            raise UnknownNameError(f"no {self.kind} {name}.{variant}: {name!r} has no variants.")
        return obj

    def family(self, name: str) -> Family | None:
        """Return the family of a name, or None if the component has no variants."""
        obj = self._load(self._split(name)[0])
        return obj if isinstance(obj, Family) else None

    def create(self, name: str, *args: object, path: str = "", options: Mapping[str, object] = NO_OPTIONS) -> object:
        """Call a component with checked options; return components that are instances (model specs, tasks) as they are.

        Parameters
        ----------
        name : str
        *args
            Positional arguments of this kind of component (fields; target).
        path : str
            Path in the model spec for errors, e.g. "layers[2]" or "layers[2] (gat)".
        options : mapping
            Keyword-only arguments of the component.

        Raises
        ------
        OptionError
            If an option is unknown, missing or of the wrong type; with path, name and the options of the component.
        """
        component = self.get(name)
        label = path if path.endswith(f"({name})") else f"{path} ({name})" if path else f"{self.kind} {name!r}"
        if callable(component):
            check_options(component, args, options, label, name)
            return component(*args, **options)
        if options:
            raise OptionError(f"{label}: got {next(iter(options))!r}; {name} takes no options")
        return component

    def names(self) -> list[str]:
        """Return all names, sorted, without importing components."""
        return sorted({*self._entry_points(), *self._session})

    def entry(self, name: str) -> RegistryEntry:
        """Return the metadata of a name without importing it; of the first provider if there are several."""
        providers = self._providers(self._split(name)[0])
        if not providers:
            raise self._unknown(name)
        return providers[0].entry()

    def where(self, name: str) -> str:
        """Return ``file:line`` of a component, importing it."""
        base, _ = self._split(name)
        component = self.get(name)
        provider = self._providers(base)[0]
        if component is not provider.load() and inspect.isclass(component):  # a variant that is a class
            provider = Provider(base, self.kind, provider.source, provider.ref, obj=component)
        return provider.where()

    def problems(self, *, load: bool = False) -> list[PluginProblem]:
        """Return conflicting names; with ``load`` also components that fail to import or have an open signature.

        Each name is checked separately, so one failure does not hide another.
        """
        problems = []
        for name in self.names():
            providers = self._providers(name)
            try:
                if load:
                    obj = self._load(name)
                    for part in obj.variants.values() if isinstance(obj, Family) else [obj]:
                        if callable(part):
                            reject_var_keyword(part, f"{self.kind} {name!r}")
                elif _differ(providers):
                    raise DuplicateNameError(_conflict(self.kind, name, providers))
            except ProtgraphError as e:
                source = ", ".join(dict.fromkeys(provider.source for provider in providers))
                problems.append(PluginProblem(self.kind, name, source, str(e)))
        return problems

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        base, variant = self._split(name)
        if not self._providers(base):
            return False
        family = self.family(base) if variant else None
        return not variant or (family is not None and variant in family.variants)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} {self.kind} names: {', '.join(self.names())}>"

    def _entry_points(self) -> dict[str, list[Provider]]:
        path = tuple(sys.path)
        if self._installed[0] != path:
            self._installed = (path, installed_providers(self.kind, self.group))
        return self._installed[1]

    def _providers(self, name: str) -> list[Provider]:
        providers = list(self._entry_points().get(name, ()))
        if name in self._session:
            providers.append(self._session[name])
        return providers

    def _split(self, name: str) -> tuple[str, str]:
        """Split into family and variant; a name that is registered with its dot has no variant."""
        base, _, variant = name.partition(".")
        return (name, "") if self._providers(name) else (base, variant)

    def _load(self, name: str) -> object:
        providers = self._providers(name)
        if not providers:
            raise self._unknown(name)
        if not all(_is_same(providers[0], other) for other in providers[1:]):
            raise DuplicateNameError(_conflict(self.kind, name, providers))
        return providers[0].load()

    def _unknown(self, name: str) -> UnknownNameError:
        names = self.names()
        return UnknownNameError(
            f"no {self.kind} {name!r}.{suggest(name, names)} Available: {', '.join(names) or 'none'}.\n"
            f'Packages provide one through the entry-point group {self.group!r} (name = "module:attribute"), '
            f"scripts with protgraph.{self.kind}s.register({name!r})."
        )


def _is_same(old: Provider, new: Provider) -> bool:
    """Return True if two providers have the same object; entry points are imported only if necessary."""
    if old.ref == new.ref and (not old.is_loaded or not new.is_loaded):
        return True
    module = sys.modules.get(old.ref.partition(":")[0])
    if not old.is_loaded and getattr(getattr(module, "__spec__", None), "_initializing", False):
        return True  # a module registers its own entry point during its import; compared on use
    if _is_redefinition(old, new):
        return True
    try:
        return old.load() is new.load()
    except PluginLoadError:
        return False


def _differ(providers: list[Provider]) -> bool:
    """Return True if providers have different objects, without importing them."""
    objects = {id(provider.load()) if provider.is_loaded else provider.ref for provider in providers}
    return len({provider.ref for provider in providers}) > 1 and len(objects) > 1


def _is_redefinition(old: Provider, new: Provider) -> bool:
    """Return True if an interactive session defines its component again: the new object replaces the old one."""
    interactive = hasattr(sys, "ps1")
    return interactive and old.ref == new.ref and old.ref.startswith("__main__:") and old.source == new.source


def _conflict(kind: str, name: str, providers: list[Provider]) -> str:
    descriptions = " and ".join(dict.fromkeys(provider.description for provider in providers))
    return f"{kind} {name!r} is provided by {descriptions}.\nRename one or uninstall its distribution."
