"""Providers of registry names: entry points of installed distributions, and registrations of the running process.

Discovery reads distribution metadata only and imports no plugin.

Not importlib.metadata.entry_points(): one distribution with a malformed entry_points.txt makes the whole call fail
(TypeError, Python 3.11, 2026-11-22).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from protgraph.errors import PluginLoadError

__all__ = ["PluginProblem", "Provider", "RegistryEntry", "installed_providers", "unreadable_distributions"]

GROUP_PREFIX = "protgraph."
SESSION = "session"


@dataclass(frozen=True)
class RegistryEntry:
    """Metadata of a registry name, available without importing the component.

    Parameters
    ----------
    name, kind : str
        E.g. "gat", "layer".
    source : str
        "distribution version", or "session" if it was registered in this process.
    object : str
        "module:attribute".
    is_loaded : bool
        True if the object has been imported.
    """

    name: str
    kind: str
    source: str
    object: str
    is_loaded: bool


@dataclass(frozen=True)
class PluginProblem:
    """Problem that makes a name unusable: a conflict, a failed import, or a signature that cannot be checked."""

    kind: str
    name: str
    source: str
    message: str


class Provider:
    """Object offered under a registry name, imported on first use.

    Parameters
    ----------
    name, kind : str
        E.g. "gat", "layer".
    source : str
        "distribution version" or "session".
    ref : str
        "module:attribute".
    obj : object, optional
        The object, if it is already imported.
    line : str
        "file:line" of the registration, if registered in this process.
    """

    def __init__(self, name: str, kind: str, source: str, ref: str, *, obj: object = None, line: str = "") -> None:
        self.name, self.kind, self.source, self.ref, self.line = name, kind, source, ref, line
        self._obj = obj

    @classmethod
    def from_session(cls, name: str, kind: str, obj: object, line: str) -> Provider:
        """Create the provider for ``registry.register(name, obj)``."""
        owner = obj if hasattr(obj, "__qualname__") else type(obj)
        return cls(name, kind, SESSION, f"{owner.__module__}:{owner.__qualname__}", obj=obj, line=line)

    @property
    def is_loaded(self) -> bool:
        """True if the object has been imported."""
        return self._obj is not None

    @property
    def description(self) -> str:
        """Object and source, for error messages."""
        return f"{self.ref} (this session, {self.line})" if self.source == SESSION else f"{self.ref} ({self.source})"

    def entry(self) -> RegistryEntry:
        """Return the metadata of this provider."""
        return RegistryEntry(self.name, self.kind, self.source, self.ref, self.is_loaded)

    def load(self) -> object:
        """Return the object, importing it on first use.

        Raises
        ------
        PluginLoadError
            If the import fails for any reason; names the component, the distribution, the object and the cause.
        """
        if self._obj is None:
            module, _, attribute = self.ref.partition(":")
            try:
                obj: object = importlib.import_module(module)
                for part in filter(None, attribute.split(".")):
                    obj = getattr(obj, part)
            except (Exception, SystemExit) as e:
                raise PluginLoadError(
                    f"{self.kind} {self.name!r} of {self.source} could not be loaded from {self.ref}: "
                    f"{type(e).__name__}: {_first_line(e)}\nOther components are not affected. `protgraph doctor` "
                    "checks all of them."
                ) from e
            self._obj = obj
        return self._obj

    def where(self) -> str:
        """Return ``file:line`` of the object's source; for an instance, that of its assignment or registration."""
        obj = self.load()
        if inspect.isclass(obj) or inspect.isroutine(obj):
            try:
                return f"{inspect.getsourcefile(obj)}:{inspect.getsourcelines(obj)[1]}"
            except (OSError, TypeError):
                return self.line or self.ref
        return self.line or _assignment(self.ref)


def _first_line(e: BaseException) -> str:
    return (str(e).strip() or "no message").splitlines()[0]


def _assignment(ref: str) -> str:
    """Return ``file:line`` of the top-level statement that assigns an instance; follow re-exports."""
    import ast

    module, _, attribute = ref.partition(":")
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None or not Path(path).is_file():
        return ref
    for statement in ast.parse(Path(path).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 0:
            for alias in statement.names:
                if attribute == (alias.asname or alias.name):
                    return _assignment(f"{statement.module}:{alias.name}")
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == attribute for t in targets):
            return f"{path}:{statement.lineno}"
    return path


@dataclass(frozen=True)
class _Scan:
    """Entry points of the groups ``protgraph.*`` as (name, source, value) by group, and unreadable distributions."""

    points: dict[str, list[tuple[str, str, str]]]
    unreadable: list[PluginProblem]


@functools.lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> _Scan:
    """Read the metadata of all distributions on ``sys.path``, which is the cache key."""
    scan = _Scan({}, [])
    for name, distribution in _distributions().items():
        source = f"{name} {distribution.version}"
        try:
            points = list(distribution.entry_points)
        except (AttributeError, TypeError, ValueError) as e:  # malformed: skip this distribution only
            scan.unreadable.append(PluginProblem("distribution", name, source, f"entry_points.txt: {_first_line(e)}"))
            continue
        for point in points:
            if point.group.startswith(GROUP_PREFIX):
                scan.points.setdefault(point.group, []).append((point.name, source, point.value))
    return scan


def _distributions() -> dict[str, metadata.Distribution]:
    """Return the distributions with protgraph entry points, by name.

    The first copy on ``sys.path`` shadows the others, except that an ``egg-info`` folder, which builds leave in source
    trees and which may be outdated, does not shadow an installed copy.
    """
    by_key: dict[str, tuple[str, metadata.Distribution]] = {}
    for distribution in metadata.distributions():
        text = distribution.read_text("entry_points.txt")
        if not text or GROUP_PREFIX not in text:
            continue
        name = distribution.metadata["Name"] or "(unnamed distribution)"
        key = name.lower().replace("_", "-")
        if key not in by_key or (_is_egg_info(by_key[key][1]) and not _is_egg_info(distribution)):
            by_key[key] = name, distribution
    return dict(by_key.values())


def _is_egg_info(distribution: metadata.Distribution) -> bool:
    return distribution.read_text("METADATA") is None  # egg-info has PKG-INFO instead


def installed_providers(kind: str, group: str) -> dict[str, list[Provider]]:
    """Return the providers of all installed distributions in an entry-point group, by name, without importing them."""
    providers: dict[str, list[Provider]] = {}
    for name, source, value in _scan(tuple(sys.path)).points.get(group, ()):
        ref = value.partition("[")[0].replace(" ", "")
        same = providers.setdefault(name, [])
        if all(provider.ref != ref for provider in same):
            same.append(Provider(name, kind, source, ref))
    return providers


def unreadable_distributions() -> list[PluginProblem]:
    """Return the distributions whose protgraph entry points cannot be parsed."""
    return list(_scan(tuple(sys.path)).unreadable)
