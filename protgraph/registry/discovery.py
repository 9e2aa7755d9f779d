"""Entry points of installed distributions, read from their metadata without importing plugins, and their problems."""

# Not importlib.metadata.entry_points(): one malformed entry_points.txt makes it fail (Python 3.11, 2026-11-22).

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata

from protgraph.errors import UnknownNameError, suggest
from protgraph.registry.provider import (
    BUILT_IN,
    PluginProblem,
    Provider,
    allowed_names,
    is_component_name,
    normalized_distribution,
)

__all__ = [
    "BUILT_IN",
    "PLUGINS_VARIABLE",
    "allowed_plugins",
    "distributions_with_components",
    "installed_providers",
    "malformed_metadata",
    "metadata_problems",
]

GROUP_PREFIX = "protgraph."
PLUGINS_VARIABLE = "PROTGRAPH_PLUGINS"
"""Environment variable with the distributions whose components are used, separated by commas; all if it is not set."""


def allowed_plugins() -> frozenset[str] | None:
    """Return the normalized names of the distributions in ``PROTGRAPH_PLUGINS``; None if all are allowed."""
    value = os.environ.get(PLUGINS_VARIABLE)
    if value is None:
        return None
    return frozenset(normalized_distribution(name.strip()) for name in value.split(",") if name.strip())


@functools.lru_cache(maxsize=8)
def _scan(path: tuple[str, ...], allowed: frozenset[str] | None) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return (name, distribution, version, value) of the entry points of each group ``protgraph.*``.

    Reads the metadata of all distributions on ``sys.path``; the path and what is allowed are the cache key. A
    distribution whose entry points cannot be parsed is left out; :func:`malformed_metadata` reports it.

    Raises :class:`UnknownNameError` if ``PROTGRAPH_PLUGINS`` has a distribution that is not installed, or has no
    components.
    """
    points_of_group: dict[str, list[tuple[str, str, str, str]]] = {}
    distributions = _distributions()
    if allowed is not None:
        distributions = _only_allowed(distributions, allowed)
    for name, distribution in distributions.items():
        try:
            points = list(distribution.entry_points)
        except (AttributeError, TypeError, ValueError):
            continue
        version = distribution.version  # read from the file at each access
        for point in points:
            if point.group.startswith(GROUP_PREFIX):
                points_of_group.setdefault(point.group, []).append((point.name, name, version, point.value))
    return points_of_group


def _only_allowed(
    distributions: dict[str, metadata.Distribution], allowed: frozenset[str]
) -> dict[str, metadata.Distribution]:
    """Return the built-in distribution and those that are allowed."""
    name_of_key = {normalized_distribution(name): name for name in distributions}
    for key in sorted(allowed):
        if key not in name_of_key:
            plugins = sorted(set(distributions) - {BUILT_IN})
            raise UnknownNameError(
                f"{PLUGINS_VARIABLE}: no installed distribution {key!r} has components.{suggest(key, plugins)} "
                f"Installed: {', '.join(plugins) or 'none'}."
            )
    return {name_of_key[key]: distributions[name_of_key[key]] for key in name_of_key if key in {BUILT_IN, *allowed}}


def _distributions() -> dict[str, metadata.Distribution]:
    """Return the distributions with protgraph entry points, by name; the built-in one first.

    The first copy on ``sys.path`` shadows the others, except that an ``egg-info`` folder, which builds leave in source
    trees and which may be outdated, does not shadow an installed copy.
    """
    by_key: dict[str, tuple[str, metadata.Distribution]] = {}
    for distribution in metadata.distributions():
        try:
            text = distribution.read_text("entry_points.txt")
            name = distribution.metadata["Name"] or "(unnamed distribution)"
        except UnicodeDecodeError:  # malformed_metadata() reports it
            continue
        if not text or GROUP_PREFIX not in text:
            continue
        key = normalized_distribution(name)
        if key not in by_key or (_is_egg_info(by_key[key][1]) and not _is_egg_info(distribution)):
            by_key[key] = name, distribution
    return dict(sorted(by_key.values(), key=lambda found: (found[0] != BUILT_IN, found[0])))


def _is_egg_info(distribution: metadata.Distribution) -> bool:
    return distribution.read_text("METADATA") is None  # egg-info has PKG-INFO instead


def installed_providers(kind: str, group: str) -> dict[str, list[Provider]]:
    """Return the providers of all installed distributions in an entry-point group, by name, without importing them.

    Distributions that offer the same object under a name count once.
    """
    providers: dict[str, list[Provider]] = {}
    for name, distribution, version, value in _scan(tuple(sys.path), allowed_plugins()).get(group, ()):
        ref = value.partition("[")[0].replace(" ", "")
        same = providers.setdefault(name, [])
        if all(provider.ref != ref for provider in same):
            same.append(Provider(name, kind, ref, distribution=distribution, version=version))
    return providers


def distributions_with_components() -> dict[str, str]:
    """Return the versions of the distributions that provide components, by name; the built-in one first."""
    points_of_group = _scan(tuple(sys.path), allowed_plugins())
    return {name: version for points in points_of_group.values() for _, name, version, _ in points}


_UNREADABLE = "\N{REPLACEMENT CHARACTER}"  # in place of bytes that are not UTF-8
_NOT_UTF8 = ", METADATA is not UTF-8"
_REF = re.compile(r"\w+(\.\w+)*\s*(:\s*\w+(\.\w+)*)?\s*(\[.*\])?")


def malformed_metadata() -> list[PluginProblem]:
    """Return the distributions with an entry_points.txt that is not UTF-8, or has a line that Python cannot parse.

    Such a file breaks more than this package: torch reads the entry points of all distributions and cannot be imported.
    """
    problems = []
    for name, source, lines in _entry_point_files():
        if source.endswith(_NOT_UTF8):
            message = f"its metadata cannot be read. Uninstall it, or correct METADATA in {source.partition(',')[0]}."
            problems.append(PluginProblem("metadata", name, source, message))
        for number, line in lines:
            if _UNREADABLE in line:
                message = (
                    f"entry_points.txt, line {number}: {line!r} is not UTF-8. Until it is corrected, or the "
                    f"distribution is uninstalled, torch cannot be imported: pip uninstall {name}."
                )
                problems.append(PluginProblem("metadata", name, source, message))
            elif not _is_parsed(line):
                message = (
                    f"entry_points.txt, line {number}: {line!r} has no '='. Until it is corrected, or the distribution "
                    f"is uninstalled, torch cannot be imported: pip uninstall {name}."
                )
                problems.append(PluginProblem("metadata", name, source, message))
    return problems


def metadata_problems() -> list[PluginProblem]:
    """Return unknown groups, names that components cannot have, and values that are not "module:attribute"."""
    from protgraph.registry.registries import hooks, registries  # they import this module

    groups = {registry.group: registry.kind for registry in (registries | hooks).values()}
    problems = []
    for _, source, lines in _entry_point_files():
        group = ""
        for _, line in lines:
            if line.startswith("["):
                group = line.strip("[] ")
                if "protgraph" in group and group not in groups:
                    message = (
                        f"there is no such group.{suggest(group, groups, cutoff=0.9)} Allowed: {', '.join(groups)}."
                    )
                    problems.append(PluginProblem("entry-point group", group, source, message))
            elif group in groups and "=" in line:
                key, _, value = (part.strip() for part in line.partition("="))
                if not is_component_name(key, groups[group]):
                    message = f"the name {key!r} is not valid. Allowed: {allowed_names(groups[group])}."
                    problems.append(PluginProblem(groups[group], key, source, message))
                if not _REF.fullmatch(value):
                    message = f"the value {value!r} is not valid. Write it as 'module:attribute'."
                    problems.append(PluginProblem(groups[group], key, source, message))
    return problems


def _entry_point_files() -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    """Yield (name, source, numbered lines without comments) of entry_points.txt, once for each distribution.

    Only of distributions with entry points of protgraph, or with a line that Python cannot parse: METADATA of all
    others need not be parsed, which takes most of the time.
    """
    seen = set()
    for distribution in metadata.distributions():
        text = _entry_points_text(distribution)
        lines = []
        for number, line in enumerate(map(str.strip, text.splitlines()), 1):
            is_comment = line.startswith(("#", ";")) and _UNREADABLE not in line
            if line and not is_comment:
                lines.append((number, line))
        is_malformed = any(_UNREADABLE in line or not _is_parsed(line) for _, line in lines)
        if not is_malformed and "protgraph" not in text:
            continue
        name, source = _name_and_source(distribution)
        if name not in seen:
            seen.add(name)
            yield name, source, lines


def _entry_points_text(distribution: metadata.Distribution) -> str:
    """Return the content of entry_points.txt; "" without it."""
    try:
        return distribution.read_text("entry_points.txt") or ""
    except UnicodeDecodeError as e:
        return e.object.decode("utf-8", "replace")


def _is_parsed(line: str) -> bool:
    """Return True for the name of a group, and for "name = value"."""
    return line.startswith("[") or "=" in line


def _name_and_source(distribution: metadata.Distribution) -> tuple[str, str]:
    """Return the name and "name version"; of the folder if METADATA is not UTF-8."""
    try:
        fields = distribution.metadata  # parsed at each access
        name = fields["Name"] or "(unnamed distribution)"
        return name, f"{name} {fields['Version']}"
    except UnicodeDecodeError:
        folder = getattr(distribution, "_path").name.removesuffix(".dist-info")  # noqa: B009 -- not public
        return folder.partition("-")[0], f"{folder}{_NOT_UTF8}"
