"""Registry of one kind of component."""

# Not catalogue: a name of two providers is resolved silently, options are not checked (2.0.10, 2026-11-22).

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, MappingProxyType
from typing import Generic, TypeVar, cast, overload

from protgraph.errors import (
    DuplicateNameError,
    OptionError,
    ProtgraphError,
    UnknownNameError,
    list_first,
    suggest,
)
from protgraph.registry.component import ComponentType, Family
from protgraph.registry.discovery import BUILT_IN, PLUGINS_VARIABLE, allowed_plugins, installed_providers
from protgraph.registry.options import check_options, reject_var_keyword
from protgraph.registry.provider import (
    PluginProblem,
    Provider,
    RegistryEntry,
    check_claims,
    check_component_name,
    conflict_error,
    displaced,
    import_listed,
    is_redefinition,
    is_same,
    locations,
    normalized_distribution,
    split_distribution,
)

__all__ = ["Registry"]

T = TypeVar("T")
ComponentT = TypeVar("ComponentT")  # what has a name: a class, or an instance such as a model spec
InstanceT = TypeVar("InstanceT")  # what create returns
_MISSING: object = object()
_LISTED = 12  # names in an error that suggests one
_SHOWN_NAMES = 60  # in the text of a registry
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


class Registry(Generic[ComponentT, InstanceT]):
    """Mapping of names to components of one kind.

    Installed distributions provide components through an entry-point group, the running process through
    :meth:`register`. A built-in component keeps its name if other distributions claim it; a name of two other
    distributions with different objects raises. ``DISTRIBUTION/NAME`` is the component of one distribution.

    ``kind``: kind of component for messages, e.g. "layer". ``group``: entry-point group, e.g. "protgraph.layers".
    ``type_``: type of the components; anything by default. ``session``: False if only installed distributions provide
    components.

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

    def __init__(self, *, kind: str, group: str, type_: ComponentType | None = None, session: bool = True) -> None:
        self.kind, self.group, self.type, self.session = kind, group, type_, session
        self.revision = 0  # number of changes by this process
        self._session: dict[str, Provider] = {}
        #: What was searched, the path and the allowed distributions, and what was found.
        self._installed: tuple[object, dict[str, list[Provider]]] = (None, {})

    @overload
    def register(self, name: str, *, replace: bool = False) -> Callable[[T], T]: ...
    @overload
    def register(self, name: str, obj: T, *, replace: bool = False) -> T: ...
    def register(self, name: str, obj: object = _MISSING, *, replace: bool = False) -> object:
        """Register a component for this process, directly or as a decorator; return the component.

        Registering the same or an equal object again has no effect. A class that is defined again by the same module
        or notebook cell, executed again, replaces the earlier one.

        ``name``: letters, digits, ``_`` and ``-``. ``obj``: the component; without it, a decorator is returned.
        ``replace``: replace another component that this process registered under the name. Raises
        :class:`InvalidNameError` if a component cannot have this name. Raises :class:`ComponentTypeError` if the object
        is not a component of this kind. Raises :class:`DuplicateNameError` if another object has the name; the message
        locates both. Names of installed distributions cannot be replaced. Raises :class:`OptionError` if the signature
        of the component has ``**kwargs``, or only installed distributions provide this kind.
        """
        check_component_name(name, self.kind)
        if not self.session:
            raise OptionError(
                f"{self.kind} {name!r}: only installed distributions provide one. Declare it in the entry-point group "
                f"{self.group!r}."
            )
        caller = sys._getframe(1)
        if obj is _MISSING:
            return lambda decorated: self._add(name, decorated, caller, replace)
        return self._add(name, obj, caller, replace)

    def unregister(self, name: str) -> object:
        """Remove a component that this process registered, and return it.

        Raises :class:`UnknownNameError` if this process did not register the name, e.g. because an installed
        distribution provides it.
        """
        self._import_listed()
        if name in self._session:
            self.revision += 1
            return self._session.pop(name).load()
        provider = self._find(name)
        raise UnknownNameError(
            f"{self.kind} {name!r} is not registered by this session, but by {provider.source}. Uninstall the "
            f"distribution to remove it: pip uninstall {provider.distribution}."
        )

    def _add(self, name: str, obj: object, caller: FrameType, replace: bool) -> object:
        label = f"{self.kind} {name!r}"
        if self.type is not None:
            self.type.check(obj, label)
        if callable(obj):
            reject_var_keyword(obj, label)
        new = Provider.from_session(name, self.kind, obj, caller)
        installed, old = self._entry_points().get(name, []), self._session.get(name)
        if installed and not any(is_same(provider, new) for provider in installed):
            raise DuplicateNameError(f"{locations(label, [*installed, new])} Choose another name.")
        if old is not None and not (replace or is_same(old, new) or is_redefinition(old, new)):
            raise DuplicateNameError(
                f"{locations(label, [old, new])} Choose another name, or replace the first one: "
                f"register({name!r}, …, replace=True)."
            )
        self._session[name] = new
        self.revision += 1
        return obj

    def get(self, name: str) -> ComponentT:
        """Return a component, importing it on first use; the name of a family gives its default variant.

        Raises :class:`UnknownNameError` if there is no such name; with similar names and all names. Raises
        :class:`PluginLoadError` if the import fails. Raises :class:`DuplicateNameError` if two distributions provide
        different objects under this name.
        """
        if not isinstance(name, str):
            raise OptionError(f"{self.kind} {name!r} is not a name. Allowed: a string, 'protgraph list {self.kind}s'.")
        name, variant = self._split(name)
        obj = self._load(name)
        if isinstance(obj, Family):
            if variant and variant not in obj.variants:
                hint = suggest(variant, obj.variants)
                raise UnknownNameError(
                    f"{self.kind} {name!r} has no variant {variant!r}.{hint} Variants: {', '.join(obj.variants)}."
                )
            return obj.variants[variant or obj.default]
        if variant:
            raise UnknownNameError(f"no {self.kind} {name}.{variant}: {name!r} has no variants.")
        return obj

    def family(self, name: str) -> Family[ComponentT] | None:
        """Return the family of a name, or None if the component has no variants."""
        obj = self._load(self._split(name)[0])
        return obj if isinstance(obj, Family) else None

    def create(self, name: str, *args: object, path: str = "", options: Mapping[str, object] = NO_OPTIONS) -> InstanceT:
        """Call a component with checked options; return components that are instances (model specs, tasks) as they are.

        ``*args``: positional arguments of this kind of component (fields; target). ``path``: path in the model spec for
        errors, e.g. "layers[2]" or "layers[2] (gat)". ``options``: keyword-only arguments of the component. Raises
        :class:`OptionError` if an option is unknown, missing or of the wrong type; with path, name and the options of
        the component.
        """
        component = self.get(name)
        label = path if path.endswith(f"({name})") else f"{path} ({name})" if path else f"{self.kind} {name!r}"
        if callable(component):
            check_options(component, args, options, label, name)
            return cast(InstanceT, component(*args, **options))
        if options:
            raise OptionError(f"{label}: got {next(iter(options))!r}; {name} takes no options")
        return cast(InstanceT, component)

    def names(self) -> list[str]:
        """Return all names, sorted, without importing components.

        A component whose name belongs to another distribution, or to several, is listed as "distribution/name".
        """
        self._import_listed()
        claims = [p.qualified_name for name, all_ in self._entry_points().items() for p in displaced(all_)]
        return sorted({*self._entry_points(), *self._session, *claims})

    def entry(self, name: str) -> RegistryEntry:
        """Return the metadata of a name without importing it; of the first provider if there are several."""
        provider = self._find(self._split(name)[0])
        is_displaced = provider in displaced(self._entry_points().get(provider.name, []))
        own = provider.qualified_name if is_displaced and split_distribution(name)[0] else provider.name
        source, loaded = provider.source, provider.is_loaded
        return RegistryEntry(own, self.kind, source, provider.ref, loaded, provider.distribution, provider.imported)

    def where(self, name: str) -> str:
        """Return ``file:line`` of a component, importing it."""
        base, _ = self._split(name)
        component = self.get(name)
        provider = self._find(base)
        if component is not provider.load() and inspect.isclass(component):  # a variant that is a class
            provider = Provider(base, self.kind, provider.ref, obj=component)
        return provider.where()

    def problems(self, *, load: bool = False) -> list[PluginProblem]:
        """Return conflicting names; with ``load`` also components that fail to import or have an open signature.

        Each name is checked separately, so one failure does not hide another.
        """
        problems = []
        for name in self.names():
            try:
                bare = self._entry_points().get(split_distribution(name)[1], [])
                self._check_reserved(name)
                check_claims(self.kind, name, self._providers(name), bare)
                if load:
                    self._load(name)
                    self.check_provider(self._find(name))
            except ProtgraphError as e:
                source = ", ".join(dict.fromkeys(provider.source for provider in self._providers(name)))
                problems.append(PluginProblem(self.kind, name, source, str(e)))
        return problems

    def providers_of(self, distribution: str) -> list[Provider]:
        """Return the providers of the components that a distribution installs, also of names that are not valid."""
        own = normalized_distribution(distribution)
        all_ = (provider for providers in self._entry_points().values() for provider in providers)
        return [provider for provider in all_ if normalized_distribution(provider.distribution) == own]

    def check_provider(self, provider: Provider) -> object:
        """Import a component and check its type and signature; return it.

        Raises :class:`PluginLoadError` if the import fails. Raises :class:`ComponentTypeError` if it is not a component
        of this kind. Raises :class:`OptionError` if its signature has ``**kwargs``.
        """
        obj = provider.load()
        if self.type is not None:
            self.type.check(obj, f"{self.kind} {provider.name!r} of {provider.description}")
        for part in obj.variants.values() if isinstance(obj, Family) else [obj]:
            if callable(part):
                reject_var_keyword(part, f"{self.kind} {provider.name!r}")
        return obj

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
        return f"<Registry of {len(self)} {self.kind} names: {list_first(self.names(), _SHOWN_NAMES)}>"

    def _import_listed(self) -> None:
        if self.session:
            import_listed()

    def _entry_points(self) -> dict[str, list[Provider]]:
        searched = (tuple(sys.path), allowed_plugins())
        if self._installed[0] != searched:
            self._installed = (searched, installed_providers(self.kind, self.group))
        return self._installed[1]

    def _providers(self, name: str) -> list[Provider]:
        """Return the providers that a name refers to; several only if they conflict or have the same object."""
        self._import_listed()
        distribution, bare = split_distribution(name)
        installed = self._entry_points()
        if distribution:
            own = normalized_distribution(distribution)
            return [p for p in installed.get(bare, ()) if normalized_distribution(p.distribution) == own]
        providers = list(installed.get(name, ()))
        if providers and providers[0].distribution == BUILT_IN:
            return providers[:1]
        if name in self._session:
            providers.append(self._session[name])
        return providers

    def _find(self, name: str) -> Provider:
        providers = self._providers(name)
        if not providers:
            raise self._unknown(name)
        return providers[0]

    def _split(self, name: str) -> tuple[str, str]:
        distribution, bare = split_distribution(name)
        base, _, variant = bare.partition(".")
        if bare in self._entry_points():  # a subcommand, or installed under an invalid name with a dot
            return name, ""
        return (f"{distribution}/{base}" if distribution else base), variant

    def is_reserved(self, name: str) -> bool:
        """Return True for a name of protgraph itself that no component of this kind may have."""
        return self.type is not None and self.type.is_reserved(split_distribution(name)[1])

    def _check_reserved(self, name: str) -> None:
        if not self.is_reserved(name):
            return
        bare = split_distribution(name)[1]
        raise DuplicateNameError(
            f"{self.kind} {bare!r} of {self._find(name).description}: protgraph.{bare} is a name of protgraph itself, "
            f"which a {self.kind} cannot replace. Rename it in the entry-point group {self.group!r}."
        )

    def _load(self, name: str) -> ComponentT | Family[ComponentT]:
        self._check_reserved(name)
        first, *others = self._providers(name) or [self._find(name)]
        if not all(is_same(first, other) for other in others):
            raise conflict_error(self.kind, name, [first, *others])
        obj = first.load()
        if self.type is not None:
            self.type.check(obj, f"{self.kind} {name!r} of {first.description}")
        return cast("ComponentT | Family[ComponentT]", obj)

    def _unknown(self, name: str) -> UnknownNameError:
        names = self.names()
        hint = suggest(name, names)
        listed = f"Available: {', '.join(names) or 'none'}."
        if hint and len(names) > _LISTED:
            listed = f"'protgraph list {self.kind}s' prints all."
        how = f'Packages provide one through the entry-point group {self.group!r} (name = "module:attribute")'
        if self.session:
            how += f", scripts with protgraph.{self.kind}s.register({name!r})"
        if allowed_plugins() is not None:
            how += f". {PLUGINS_VARIABLE} or --no-plugins leaves out the components of some installed packages"
        return UnknownNameError(f"no {self.kind} {name!r}.{_of_other_kinds(name, self.kind)}{hint} {listed}\n{how}.")


def _of_other_kinds(name: str, kind: str) -> str:
    """Return a sentence about the components of other kinds with this name, or "" if there are none."""
    from protgraph.registry.registries import registries

    others = [r for r in registries.values() if r.kind != kind and name in r.names()]
    found = " and ".join(f"a {r.kind} ({r.entry(name).source})" for r in others)
    return f" {name!r} is {found}." if found else ""
