"""``protgraph new-plugin``: a distribution of one's own that adds a layer, a featurizer, a head and a model."""

from __future__ import annotations

import keyword
import re
import sys
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from protgraph.errors import OptionError
from protgraph.registry import registries

__all__ = ["new_plugin_command", "render"]

SUFFIX = ".tmpl"
PLACE = "PACKAGE"  # stands for the package in file names
PREFIX = "protgraph_"


def new_plugin_command(
    name: Annotated[str, typer.Argument(help="Import name of the plugin, say protgraph_lens.")],
    parent: Annotated[Path, typer.Option("--in", help="Folder in which its folder is made.")] = Path(),
) -> None:
    """Write a plugin package that works as it is: a layer, a featurizer, a head, a model, and tests of them.

    \b
    Example:
      protgraph new-plugin protgraph_lens
      pip install -e protgraph_lens
      pytest protgraph_lens
      protgraph train lens --data pdb_core --task secondary_structure --epochs 2
    """
    package = _package_name(name)
    folder = parent / package
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"{folder} is there already and not empty; choose another name or another --in")
    for path, text in render(package).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    typer.echo(f"wrote {folder}; next: pip install -e {folder} && protgraph info {_short_name(package)}")


def render(package: str) -> dict[str, str]:
    """Text of every file of the plugin ``package``, by its path inside the plugin's folder.

    Examples
    --------
    >>> sorted(render("protgraph_lens"))[:2]
    ['README.md', 'pyproject.toml']
    """
    short = _short_name(package)
    words = {
        "package": package,
        "distribution": package.replace("_", "-"),
        "short": short,
        "Short": "".join(word.capitalize() for word in short.split("_")),
    }
    files = _walk(resources.files("protgraph.cli") / "template", "")
    return {
        path.replace(PLACE, package): Template(source.read_text(encoding="utf-8")).substitute(words)
        for path, source in files
    }


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    """(path without the suffix, file) of every template file, in order of path."""
    found: list[tuple[str, Traversable]] = []
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            found += _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(SUFFIX):
            found.append((prefix + item.name.removesuffix(SUFFIX), item))
    return found


def _package_name(name: str) -> str:
    package = name.lower().replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", package) or package in ("protgraph", "protgraph_pyg"):
        raise OptionError(f"{name!r} is no name for a plugin package: letters, digits and _ as in protgraph_lens")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise OptionError(f"{name!r} is a word or a module of Python itself; protgraph_{package} is none")
    found = find_spec(package)
    if found is not None and found.origin is not None:  # a mere folder has none
        raise OptionError(f"{name!r} is the name of a package that is here already ({found.origin}); choose another")
    for kind, component in _claims(package):
        if component in registries[kind]:
            entry = registries[kind].entry(component)
            raise OptionError(
                f"{name!r} would bring another {registries[kind].kind} {component!r} beside {entry.source}'s"
            )
    return package


def _claims(package: str) -> list[tuple[str, str]]:
    """(kind, name) of every component that the plugin would bring."""
    points = tomllib.loads(render(package)["pyproject.toml"])["project"]["entry-points"]
    return [(group.removeprefix("protgraph."), name) for group, found in points.items() for name in found]


def _short_name(package: str) -> str:
    return package.removeprefix(PREFIX)
