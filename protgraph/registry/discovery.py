"""Entry points of installed distributions, read from their metadata without importing plugins.

Not importlib.metadata.entry_points(): one distribution with a malformed entry_points.txt makes the whole call fail
(TypeError, Python 3.11, 2026-11-22).
"""

from __future__ import annotations

import functools
import sys
from importlib import metadata

from protgraph.registry.provider import BUILT_IN, Provider, normalized_distribution

__all__ = ["BUILT_IN", "distributions_with_components", "installed_providers"]

GROUP_PREFIX = "protgraph."


@functools.lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return (name, distribution, version, value) of the entry points of each group ``protgraph.*``.

    Reads the metadata of all distributions on ``sys.path``, which is the cache key. A distribution whose entry points
    cannot be parsed is left out; :func:`protgraph.registry.metadata_check.malformed_metadata` reports it.
    """
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for name, distribution in _distributions().items():
        try:
            points = list(distribution.entry_points)
        except (AttributeError, TypeError, ValueError):
            continue
        version = distribution.version  # read from the file at each access
        for point in points:
            if point.group.startswith(GROUP_PREFIX):
                found.setdefault(point.group, []).append((point.name, name, version, point.value))
    return found


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
    for name, distribution, version, value in _scan(tuple(sys.path)).get(group, ()):
        ref = value.partition("[")[0].replace(" ", "")
        same = providers.setdefault(name, [])
        if all(provider.ref != ref for provider in same):
            same.append(Provider(name, kind, ref, distribution=distribution, version=version))
    return providers


def distributions_with_components() -> dict[str, str]:
    """Return the versions of the distributions that provide components, by name; the built-in one first."""
    return {name: version for points in _scan(tuple(sys.path)).values() for _, name, version, _ in points}
