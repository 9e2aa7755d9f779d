"""Who claims a name: the entry points of installed distributions, and the session itself.

Finding claims reads distribution metadata only; it imports nothing.
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

__all__ = ["Provider", "RegistryEntry", "PluginProblem", "installed_providers", "installed_renames", "unreadable_distributions"]

GROUP_PREFIX = "protgraph."
SESSION = "session"


@dataclass(frozen=True)
class RegistryEntry:
    """What is known about a name without importing anything.

    Parameters
    ----------
    name, kind : str
        "gat", "layer".
    source : str
        "distribution version", or "session" for what was registered in this process.
    object : str
        "module:attribute".
    loaded : bool
        Whether the object has been imported.
    """

    name: str
    kind: str
    source: str
    object: str
    loaded: bool


@dataclass(frozen=True)
class PluginProblem:
    """Why a name is unusable: a conflict, a failed import, or a signature that cannot be checked."""

    kind: str
    name: str
    source: str
    message: str


class Provider:
    """One object's claim to one name.

    Parameters
    ----------
    name, kind : str
        "gat", "layer".
    source : str
        "distribution version" or "session".
    ref : str
        "module:attribute".
    obj : object, optional
        The object itself where it is known already; otherwise :meth:`load` imports it.
    line : str
        "file:line" of the registration, for a session's claim.
    """

    def __init__(self, name: str, kind: str, source: str, ref: str, *, obj: object = None, line: str = "") -> None:
        self.name, self.kind, self.source, self.ref, self.line = name, kind, source, ref, line
        self._obj = obj

    @classmethod
    def of_session(cls, name: str, kind: str, obj: object, line: str) -> Provider:
        """The claim that ``registry.register(name, obj)`` makes."""
        owner = obj if hasattr(obj, "__qualname__") else type(obj)
        return cls(name, kind, SESSION, f"{owner.__module__}:{owner.__qualname__}", obj=obj, line=line)

    @property
    def loaded(self) -> bool:
        """Whether the object is at hand."""
        return self._obj is not None

    @property
    def place(self) -> str:
        """Where the claim was made, for error messages."""
        return f"{self.ref} (this session, {self.line})" if self.source == SESSION else f"{self.ref} ({self.source})"

    def entry(self) -> RegistryEntry:
        """The public record of this claim."""
        return RegistryEntry(self.name, self.kind, self.source, self.ref, self.loaded)

    def load(self) -> object:
        """The object, imported on first use.

        Raises
        ------
        PluginLoadError
            Whatever the import raised, with the component, the distribution, the object and the cause.
        """
        if self._obj is None:
            module, _, attribute = self.ref.partition(":")
            try:
                found: object = importlib.import_module(module)
                for part in filter(None, attribute.split(".")):
                    found = getattr(found, part)
            except (Exception, SystemExit) as e:
                raise PluginLoadError(
                    f"{self.kind} {self.name!r} of {self.source} could not be loaded from {self.ref}: "
                    f"{type(e).__name__}: {_first_line(e)}\nOnly this component is unusable; `protgraph doctor` checks "
                    "all of them."
                ) from e
            self._obj = found
        return self._obj

    def where(self) -> str:
        """``file:line`` of the loaded object; of the registration for an instance without a source of its own."""
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
    """``file:line`` of the top-level statement that binds an instance's name, followed through re-exports."""
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
    """All entry points of the groups ``protgraph.*``, as (name, source, value) by group, and who could not be read."""

    points: dict[str, list[tuple[str, str, str]]]
    unreadable: list[PluginProblem]


@functools.lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> _Scan:
    """Read the metadata of every distribution on ``sys.path``, which is the cache key."""
    scan = _Scan({}, [])
    for name, distribution in _distributions().items():
        source = f"{name} {distribution.version}"
        try:
            points = list(distribution.entry_points)
        except (AttributeError, TypeError, ValueError) as e:  # malformed: this distribution is left out, others stay
            scan.unreadable.append(PluginProblem("distribution", name, source, f"entry_points.txt: {_first_line(e)}"))
            continue
        for point in points:
            if point.group.startswith(GROUP_PREFIX):
                scan.points.setdefault(point.group, []).append((point.name, source, point.value))
    return scan


def _distributions() -> dict[str, metadata.Distribution]:
    """Distributions with entry points of ours, by name. The first copy on ``sys.path`` shadows the others, but the
    ``egg-info`` that a build leaves among the sources, possibly long ago, shadows no installed copy.
    """
    found: dict[str, tuple[str, metadata.Distribution]] = {}
    for distribution in metadata.distributions():
        text = distribution.read_text("entry_points.txt")
        if not text or GROUP_PREFIX not in text:
            continue
        name = distribution.metadata["Name"] or "(unnamed distribution)"
        key = name.lower().replace("_", "-")
        if key not in found or (_is_egg_info(found[key][1]) and not _is_egg_info(distribution)):
            found[key] = name, distribution
    return dict(found.values())


def _is_egg_info(distribution: metadata.Distribution) -> bool:
    return distribution.read_text("METADATA") is None  # it has PKG-INFO


def installed_providers(kind: str, group: str) -> dict[str, list[Provider]]:
    """The claims of all installed distributions in one entry-point group, by name; imports none of them."""
    claims: dict[str, list[Provider]] = {}
    for name, source, value in _scan(tuple(sys.path)).points.get(group, ()):
        ref = value.partition("[")[0].replace(" ", "")
        same = claims.setdefault(name, [])
        if all(claim.ref != ref for claim in same):
            same.append(Provider(name, kind, source, ref))
    return claims


def installed_renames(group: str) -> dict[str, str]:
    """Old name → new name, from the entry-point group ``<group>.renamed`` (``old = "new"``)."""
    return {name: value for name, _, value in _scan(tuple(sys.path)).points.get(f"{group}.renamed", ())}


def unreadable_distributions() -> list[PluginProblem]:
    """Distributions whose protgraph entry points cannot be parsed."""
    return list(_scan(tuple(sys.path)).unreadable)
