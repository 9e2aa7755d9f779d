"""``protgraph new-plugin``: write a distribution with a component of every kind."""

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
from protgraph.file_io import atomic_write
from protgraph.registry import registries

__all__ = ["new_plugin_command", "render_template"]

ENTRY_POINTS = {"protgraph.commands": {"new-plugin": "new_plugin_command"}}

SUFFIX = ".tmpl"
PLACEHOLDER = "PACKAGE"  # name of the package in the paths of template files
PREFIX = "protgraph_"


def new_plugin_command(
    name: Annotated[str, typer.Argument(help="Import name of the plugin, e.g. protgraph_lens.")],
    parent: Annotated[Path, typer.Option("--in", help="Parent folder of the new folder.")] = Path(),
) -> None:
    """Write a working plugin package with a component of every kind, a file format, a command, and tests.

    \b
    Example:
      protgraph new-plugin protgraph_lens
      pip install -e protgraph_lens
      pytest protgraph_lens
      protgraph train lens --data pdb_core --task lens_bend --epochs 2
    """
    package = _package_name(name)
    folder = parent / package
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OptionError(f"{folder} exists and is not empty. Use another name or another --in.")
    with atomic_write(folder, folder=True) as temporary:
        for path, text in render_template(package).items():
            (temporary / path).parent.mkdir(parents=True, exist_ok=True)
            (temporary / path).write_text(text, encoding="utf-8")
    typer.echo(f"wrote {folder}; next: pip install -e {folder} && protgraph info {_short_name(package)}")


def render_template(package: str) -> dict[str, str]:
    """Return path and text of every file of the plugin ``package``.

    Examples
    --------
    >>> sorted(render_template("protgraph_lens"))[:2]
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
        path.replace(PLACEHOLDER, package): Template(source.read_text(encoding="utf-8")).substitute(words)
        for path, source in files
    }


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    """Return (path without the suffix, file) of every template file, sorted."""
    files: list[tuple[str, Traversable]] = []
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            files += _walk(item, f"{prefix}{item.name}/")
        elif item.name.endswith(SUFFIX):
            files.append((prefix + item.name.removesuffix(SUFFIX), item))
    return files


def _package_name(name: str) -> str:
    package = name.lower().replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", package) or package in ("protgraph", "protgraph_pyg"):
        raise OptionError(f"plugin name {name!r}. Allowed: letters, digits and _, e.g. protgraph_lens.")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise OptionError(f"plugin name {name!r}: a keyword or a module of Python. Use e.g. protgraph_{package}.")
    installed = find_spec(package)
    if installed is not None and installed.origin is not None:  # a folder without __init__.py has no origin
        raise OptionError(f"plugin name {name!r}: the package exists ({installed.origin}). Use another name.")
    for kind, component in _component_names(package):
        if component in registries[kind]:
            entry = registries[kind].entry(component)
            raise OptionError(f"plugin name {name!r}: {registries[kind].kind} {component!r} exists in {entry.source}")
    return package


def _component_names(package: str) -> list[tuple[str, str]]:
    """Return (kind, name) of every component of the plugin."""
    points = tomllib.loads(render_template(package)["pyproject.toml"])["project"]["entry-points"]
    return [(group.removeprefix("protgraph."), name) for group, names in points.items() for name in names]


def _short_name(package: str) -> str:
    return package.removeprefix(PREFIX)
