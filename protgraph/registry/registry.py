"""The registry of one kind of component."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar, overload

from protgraph.errors import DuplicateNameError, OptionError, PluginLoadError, ProtgraphError, UnknownNameError, suggest
from protgraph.registry.discovery import PluginProblem, Provider, RegistryEntry, installed_providers, installed_renames
from protgraph.registry.family import Family
from protgraph.registry.options import check_options, refuse_open_signature

__all__ = ["Registry"]

T = TypeVar("T")
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


class Registry:
    """Names → components of one kind.

    Installed distributions offer components through an entry-point group, a session with :meth:`register`.
    Neither ever overwrites the other: two objects under one name are an error for whoever asks for that name.

    Parameters
    ----------
    kind : str
        "layer", for messages.
    group : str
        RegistryEntry-point group: "protgraph.layers".

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
        self._renamed: dict[str, str] = {}
        self._warned: set[str] = set()
        self._installed: tuple[tuple[str, ...], dict[str, list[Provider]]] = ((), {})

    # --- adding -----------------------------------------------------------------------------------------------

    @overload
    def register(self, name: str) -> Callable[[T], T]: ...
    @overload
    def register(self, name: str, obj: T) -> T: ...
    def register(self, name: str, obj: object = None) -> object:
        """Offer a component in this process, as a decorator or directly; returns the component.

        The same object again is a no-op.

        Raises
        ------
        DuplicateNameError
            Where the name belongs to another object; names both places.
        OptionError
            Where the component's signature has ``**kwargs``.
        """
        caller = sys._getframe(1)
        line = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        if obj is None:
            return lambda decorated: self._add(name, decorated, line)
        return self._add(name, obj, line)

    def _add(self, name: str, obj: object, line: str) -> object:
        new = Provider.of_session(name, self.kind, obj, line)
        if callable(obj):
            refuse_open_signature(obj, f"{self.kind} {name!r}")
        renamed = self._renames().get(name)
        if renamed:
            raise DuplicateNameError(f"{self.kind} {name!r} is the old name of {renamed!r}; choose another")
        for old in self._claims(name):
            if not _agree(old, new):
                raise DuplicateNameError(_conflict(self.kind, name, [old, new]))
        self._session[name] = new
        return obj

    def rename(self, old: str, new: str) -> None:
        """Keep ``old`` alive as another spelling of ``new``: one DeprecationWarning a process, hidden from lists.

        A distribution renames with the entry-point group ``<group>.renamed``: ``old = "new"``.
        """
        if self._claims(old):
            raise DuplicateNameError(f"{self.kind} {old!r} is taken by {self._claims(old)[0].place}; it is no old name")
        known = self._renames().get(old, new)
        if old == new or known != new:
            raise DuplicateNameError(f"{self.kind} {old!r} cannot become {new!r}: it is called {known!r}")
        self._renamed[old] = new

    # --- asking -----------------------------------------------------------------------------------------------

    def get(self, name: str) -> object:
        """The component of this name, imported on first use; a family's name gives its first variant.

        Raises
        ------
        UnknownNameError
            With the nearest known names and all of them.
        PluginLoadError
            Where its import fails.
        DuplicateNameError
            Where two distributions claim the name for different objects.
        """
        name, variant = self._split(self._current(name))
        obj = self._load(name)
        if isinstance(obj, Family):
            if variant and variant not in obj.variants:
                raise UnknownNameError(
                    f"{self.kind} {name!r} has no variant {variant!r}: it has {', '.join(obj.variants)}"
                )
            return obj.variants[variant or obj.default]
        if variant:
            raise UnknownNameError(f"no {self.kind} {name}.{variant}: {name!r} has no variants")
        return obj

    def family(self, name: str) -> Family | None:
        """The family of this name, or None where the component has no variants."""
        obj = self._load(self._split(self._current(name))[0])
        return obj if isinstance(obj, Family) else None

    def create(self, name: str, *args: object, path: str = "", options: Mapping[str, object] = NO_OPTIONS) -> object:
        """Call the component with checked options; an instance (a model graph, a task) comes as it is.

        Parameters
        ----------
        name : str
        *args
            Positional arguments of this kind (fields; target).
        path : str
            Where the name stands, for errors: "layers[2]" or "layers[2] (gat)".
        options : mapping
            Keyword-only arguments of the component.

        Raises
        ------
        OptionError
            Unknown, missing or mistyped option, with path, name and what the component takes.
        """
        component = self.get(name)
        label = path if path.endswith(f"({name})") else f"{path} ({name})" if path else f"{self.kind} {name!r}"
        if callable(component):
            check_options(component, args, options, label, name)
            return component(*args, **options)
        if options:
            raise OptionError(f"{label}: got {next(iter(options))!r}; {name} takes no options")
        return component

    def names(self, *, hidden: bool = False) -> list[str]:
        """All names, sorted; with ``hidden`` also the old ones. Imports nothing."""
        known = {*self._entry_points(), *self._session}
        return sorted(known | self._renames().keys() if hidden else known)

    def entry(self, name: str) -> RegistryEntry:
        """What is known about a name without importing it (the first claim, where there are several)."""
        current = self._current(name, warn=False)
        claims = self._claims(self._split(current)[0])
        if not claims:
            raise self._unknown(current)
        return claims[0].entry()

    def where(self, name: str) -> str:
        """``file:line`` of the component, which is loaded for it."""
        base, _ = self._split(self._current(name))
        component = self.get(name)
        claim = self._claims(base)[0]
        if component is not claim.load() and inspect.isclass(component):  # a variant that is a class
            claim = Provider(base, self.kind, claim.source, claim.ref, obj=component)
        return claim.where()

    def problems(self, *, load: bool = False) -> list[PluginProblem]:
        """Conflicting claims; with ``load`` also what cannot be imported or has an open signature.

        Each name is tried by itself, so that one failure hides no other.
        """
        found = []
        for name in self.names():
            claims = self._claims(name)
            try:
                if load:
                    obj = self._load(name)
                    for part in obj.variants.values() if isinstance(obj, Family) else [obj]:
                        if callable(part):
                            refuse_open_signature(part, f"{self.kind} {name!r}")
                elif _differ(claims):
                    raise DuplicateNameError(_conflict(self.kind, name, claims))
            except ProtgraphError as e:
                source = ", ".join(dict.fromkeys(claim.source for claim in claims))
                found.append(PluginProblem(self.kind, name, source, str(e)))
        return found

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        base, variant = self._split(self._current(name, warn=False))
        if not self._claims(base):
            return False
        family = self.family(base) if variant else None
        return not variant or (family is not None and variant in family.variants)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} {self.kind} names: {', '.join(self.names())}>"

    # --- inside -----------------------------------------------------------------------------------------------

    def _entry_points(self) -> dict[str, list[Provider]]:
        path = tuple(sys.path)
        if self._installed[0] != path:
            self._installed = (path, installed_providers(self.kind, self.group))
        return self._installed[1]

    def _renames(self) -> dict[str, str]:
        return {**installed_renames(self.group), **self._renamed}

    def _claims(self, name: str) -> list[Provider]:
        claims = list(self._entry_points().get(name, ()))
        if name in self._session:
            claims.append(self._session[name])
        return claims

    def _split(self, name: str) -> tuple[str, str]:
        """(family, variant); a name that is claimed as it stands has no variant."""
        base, _, variant = name.partition(".")
        return (name, "") if self._claims(name) else (base, variant)

    def _current(self, name: str, *, warn: bool = True) -> str:
        """The name that an old name has become, warned about once."""
        renames, seen = self._renames(), [name]
        while seen[-1] in renames and not self._claims(seen[-1]):
            new = renames[seen[-1]]
            if new in seen:
                raise DuplicateNameError(f"{self.kind} {name!r} is renamed in a circle: {' → '.join([*seen, new])}")
            seen.append(new)
        if warn and len(seen) > 1 and name not in self._warned:
            self._warned.add(name)
            message = f"{self.kind} {name!r} is now called {seen[-1]!r}"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
        return seen[-1]

    def _load(self, name: str) -> object:
        claims = self._claims(name)
        if not claims:
            raise self._unknown(name)
        if name in self._renames():
            raise DuplicateNameError(
                f"{self.kind} {name!r} is claimed by {claims[0].place}, and it is the old name of "
                f"{self._renames()[name]!r}.\nAsk for the new name; the claimant has to choose another."
            )
        if len(claims) > 1 and not all(_agree(claims[0], other) for other in claims[1:]):
            raise DuplicateNameError(_conflict(self.kind, name, claims))
        return claims[0].load()

    def _unknown(self, name: str) -> UnknownNameError:
        known = self.names()
        return UnknownNameError(
            f"no {self.kind} {name!r}.{suggest(name, known)} Known: {', '.join(known) or 'none'}.\n"
            f'A package offers one through the entry-point group {self.group!r} (name = "module:attribute"), '
            f"a session with protgraph.{self.kind}s.register({name!r})."
        )


def _agree(old: Provider, new: Provider) -> bool:
    """Whether two claims mean one object; an entry point is imported only where that decides it."""
    if old.ref == new.ref and (not old.loaded or not new.loaded):
        return True
    module = sys.modules.get(old.ref.partition(":")[0])
    if not old.loaded and getattr(getattr(module, "__spec__", None), "_initializing", False):
        return True  # a module that registers its own entry point while it is imported: compared when asked for
    if _rerun(old, new):
        return True
    try:
        return old.load() is new.load()
    except PluginLoadError:
        return False


def _differ(claims: list[Provider]) -> bool:
    """Whether claims mean different objects as far as can be told without importing anything."""
    objects = {id(claim.load()) if claim.loaded else claim.ref for claim in claims}
    return len({claim.ref for claim in claims}) > 1 and len(objects) > 1


def _rerun(old: Provider, new: Provider) -> bool:
    """Whether a notebook cell or prompt defines its own component again: the one case where the newer object wins."""
    interactive = hasattr(sys, "ps1")
    return interactive and old.ref == new.ref and old.ref.startswith("__main__:") and old.source == new.source


def _conflict(kind: str, name: str, claims: list[Provider]) -> str:
    places = " and by ".join(dict.fromkeys(claim.place for claim in claims))
    return f"{kind} {name!r} is claimed by {places}.\nRename one of them or uninstall its distribution."
