"""What preparation keeps between runs: where it lies, the code that it depends on, and the residues of each file."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np

from protgraph.file_io import atomic_write
from protgraph.structure import clean, load_structure
from protgraph.structure.io.fetch import cache_dir
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues

__all__ = ["cache_dir", "cached_residues", "code_digest", "component_digest", "digest", "stamps"]

_LIGANDS = "ligands."  # what their arrays are called, beside those of residues


def digest(*parts: object) -> str:
    """24 hexadecimal digits of the SHA-256 of plain data and bytes."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=str).encode())
        whole.update(b"\0")
    return whole.hexdigest()[:24]


@functools.cache
def code_digest(*packages: str) -> str:
    """Digest of the source of whole packages: what an older or an edited version has kept is not taken for ours."""
    sources = []
    for name in packages:
        (folder,) = map(Path, list(importlib.import_module(name).__path__)[:1])
        sources += [f"{name}/{p.relative_to(folder)}\0{p.read_text('utf-8')}" for p in sorted(folder.rglob("*.py"))]
    return digest(sources)


def component_digest(component: object) -> str | None:
    """Digest of the code that a component or function comes with: its top-level package, or the module or class alone.

    None where that does not say what it does: there is no source to read (a class typed at a prompt), or it is a
    function of the running script or one with variables of another around it. What it makes cannot be kept.
    """
    own = component if inspect.isfunction(component) else type(component)
    if inspect.isfunction(own) and (own.__closure__ or own.__module__ == "__main__"):
        return None
    top = own.__module__.partition(".")[0]
    try:
        if top != "__main__" and hasattr(sys.modules[top], "__path__"):
            return code_digest(top)
        return digest(inspect.getsource(own if top == "__main__" else sys.modules[top]))
    except (OSError, TypeError, KeyError):
        return None


def cached_residues(path: Path, cache: Path, *, ligands: bool = False) -> Residues:
    """The residues of all protein chains of a file, read once as long as its bytes and the reader stay the same.

    Parameters
    ----------
    path : Path
        Structure file.
    cache : Path
        Folder of prepared data.
    ligands : bool
        Whether ligands and nucleotides are kept.
    """
    what = {"ligands": ligands, "nucleic": ligands}
    try:
        key = digest(path.read_bytes(), path.name, code_digest("protgraph.structure"), *["ligands"] * ligands)
    except OSError:
        return clean(load_structure(path), **what)  # which says what is wrong with the file
    kept = cache / "residues" / key[:2] / f"{key}.npz"
    if kept.is_file():
        try:
            return _read(kept)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # a damaged entry is made again
    residues = clean(load_structure(path), **what)
    _write(kept, residues)
    return residues


def _write(path: Path, residues: Residues) -> None:
    """Keep residues in one file, which appears whole or not at all."""
    arrays = {f.name: value for f in fields(residues) if (value := getattr(residues, f.name)) is not None}
    if (ligands := arrays.pop("ligands", None)) is not None:
        arrays |= {f"{_LIGANDS}{f.name}": getattr(ligands, f.name) for f in fields(ligands)}
    arrays["report"] = np.array(json.dumps(residues.report.to_dict()))
    arrays["name"] = np.array(residues.name)
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _read(path: Path) -> Residues:
    with np.load(path, allow_pickle=False) as file:
        arrays: dict[str, object] = {f.name: file[f.name] for f in fields(Residues) if f.name in file}
        if f"{_LIGANDS}chain" in file:
            arrays["ligands"] = Ligands(**{f.name: file[_LIGANDS + f.name] for f in fields(Ligands)})
    arrays["predicted"] = bool(arrays["predicted"])
    arrays["report"] = LossReport.from_dict(json.loads(str(arrays["report"])))
    return Residues(**{**arrays, "name": str(arrays["name"])})


def stamps(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Name, size and time of change of each file; of a file that is missing, only its name."""
    found = []
    for path in paths:
        try:
            stat = path.stat()
            found.append((str(path), stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append((str(path), -1, -1))
    return found
