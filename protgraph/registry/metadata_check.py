"""Check the entry points of installed distributions without importing anything: syntax, groups and names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

from protgraph.errors import suggest
from protgraph.registry.component_names import is_component_name
from protgraph.registry.provider import PluginProblem
from protgraph.registry.registries import registries

__all__ = ["malformed_metadata", "metadata_problems"]

_REF = re.compile(r"\w+(\.\w+)*\s*(:\s*\w+(\.\w+)*)?\s*(\[.*\])?")


def malformed_metadata() -> list[PluginProblem]:
    """Return the distributions with a line in entry_points.txt that Python cannot parse.

    Such a line breaks more than this package: torch reads the entry points of all distributions and cannot be imported.
    """
    problems = []
    for name, source, lines in _entry_point_files():
        for number, line in lines:
            if not line.startswith("[") and "=" not in line:
                message = (
                    f"entry_points.txt, line {number}: {line!r} has no '='. Until it is corrected, or the distribution "
                    f"is uninstalled, torch cannot be imported: pip uninstall {name}."
                )
                problems.append(PluginProblem("metadata", name, source, message))
    return problems


def metadata_problems() -> list[PluginProblem]:
    """Return unknown groups, names that components cannot have, and values that are not "module:attribute"."""
    groups = {registry.group: registry.kind for registry in registries.values()}
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
                if not is_component_name(key):
                    message = f"the name {key!r} is not valid. Allowed: ASCII letters, digits, '_' and '-'."
                    problems.append(PluginProblem(groups[group], key, source, message))
                if not _REF.fullmatch(value):
                    message = f"the value {value!r} is not valid. Write it as 'module:attribute'."
                    problems.append(PluginProblem(groups[group], key, source, message))
    return problems


def _entry_point_files() -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    """Yield (name, source, numbered lines without comments) of each distribution with entry points, once."""
    seen = set()
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] or "(unnamed distribution)"
        text = distribution.read_text("entry_points.txt")
        if text and name not in seen:
            seen.add(name)
            lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
            yield name, f"{name} {distribution.version}", [pair for pair in lines if pair[1] and pair[1][0] not in "#;"]
