"""Keys of cached data: digests of plain data, files and source code."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.registered_readers import alignment_reader

__all__ = ["alignment_stamps", "code_digest", "component_digest", "component_package", "digest", "stamps"]

_FAMILIES = ("protgraph_plugins", "protgraph_datasets")  # top-level packages of several independent families


def digest(*parts: object) -> str:
    """Return 24 hexadecimal digits of the SHA-256 of plain data and bytes."""
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=str).encode())
        checksum.update(b"\0")
    return checksum.hexdigest()[:24]


@functools.cache
def code_digest(*packages: str) -> str:
    """Return the SHA-256 of the source files of whole packages, so that edited code makes cached data stale."""
    checksum = hashlib.sha256()
    for name in packages:
        folder = Path(next(iter(importlib.import_module(name).__path__)))
        for path in sorted(folder.rglob("*.py")):
            checksum.update(f"{name}/{path.relative_to(folder).as_posix()}\0".encode())
            checksum.update(hashlib.sha256(path.read_bytes()).digest())
    return checksum.hexdigest()


def component_package(module: str) -> str:
    """Return the package that a module of a component belongs to: its top-level package, or its plugin family.

    Examples
    --------
    >>> component_package("protgraph_plugins.esm.featurizer"), component_package("my_plugin.layers")
    ('protgraph_plugins.esm', 'my_plugin')
    """
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in _FAMILIES else 1])


def component_digest(component: object, *, module: str | None = None) -> str | None:
    """Return the SHA-256 of the code of a component: its package, or its module or class alone.

    None if the code does not determine the result: there is no source (a class typed at a prompt), or it is a function
    of the running script or a closure. Results of such a component cannot be cached.
    """
    code_object = component if inspect.isfunction(component) or inspect.isclass(component) else type(component)
    if inspect.isfunction(code_object) and (code_object.__closure__ or code_object.__module__ == "__main__"):
        return None
    package = component_package(module or code_object.__module__)
    if (
        package == "__main__" != code_object.__module__
    ):  # an instance that a script or notebook makes of an imported class
        return None
    try:
        if package != "__main__" and hasattr(sys.modules[package], "__path__"):
            return code_digest(package)
        source = inspect.getsource(code_object if package == "__main__" else sys.modules[package])
        return hashlib.sha256(source.encode()).hexdigest()
    except (OSError, TypeError, KeyError):
        return None


def stamps(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return the path, size and modification time of each file; −1 for a missing file."""
    stamped = []
    for path in paths:
        try:
            stat = path.stat()
            stamped.append((str(path), stat.st_size, stat.st_mtime_ns))
        except OSError:
            stamped.append((str(path), -1, -1))
    return stamped


def alignment_stamps(read: ReadOptions) -> list[tuple[str, int, int]]:
    """Return the stamps of the alignment files that the read options name; none without an alignment."""
    if read.alignment is None:
        return []
    return stamps(map(Path, alignment_reader().alignment_files(read.alignment)))
