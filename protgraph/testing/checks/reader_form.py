"""Checks of readers: formats and containers that they declare, on their own example and on files of others."""

from __future__ import annotations

import io
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io import pdb, pdbx

from protgraph.errors import SelectionError
from protgraph.structure import LossReport, clean
from protgraph.structure.io.atom_array import to_atom_array
from protgraph.structure.io.load import resolve_atoms
from protgraph.structure.io.readers import read_with
from protgraph.structure.io.registered_readers import Reader
from protgraph.testing.protein_fixtures import make_protein
from protgraph.testing.runner import ConformityError, NotApplicable, Runner

__all__ = ["reader_builds", "reader_entries", "reader_reads", "reader_refuses"]

_CALLS = 200
_LONGEST = 1e-3  # seconds of one call of matches, which is made for every file of a folder


def reader_builds(runner: Runner) -> None:
    """Check that it is a reader without arguments that defines a format, a container, or both."""
    cls = runner.component.loaded
    if not (isinstance(cls, type) and issubclass(cls, Reader)):
        raise ConformityError(f"{runner.component} is not a subclass of protgraph.Reader")
    with runner.errors_as_failures("making an instance"):
        cls()
    for suffix in cls.suffixes:
        if not suffix.startswith(".") or suffix != suffix.lower():
            raise runner.failure(f"suffix {suffix!r}. Write it with a dot and in lower case.")
    _require_all(runner, cls, "format", ("recognizes", "parse"))
    _require_all(runner, cls, "container", ("matches", "entries", "read"))
    if bool(cls.sequence_suffixes) != _defines(cls, "read_sequence"):
        raise runner.failure("a format of sequences defines sequence_suffixes and read_sequence")
    if not any(_defines(cls, method) for method in ("parse", "read", "read_sequence")):
        raise runner.failure("it defines neither a format nor a container")


def reader_refuses(runner: Runner) -> None:
    """Check that it refuses files of other formats, folders and absent paths, in a millisecond each."""
    reader = _reader(runner)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in _files_of_others().items():
            file = Path(folder, name)
            file.write_bytes(content)
            if reader.recognizes(content):
                raise runner.failure(f"it recognizes {name}, a file of another format")
            if reader.matches(str(file)):
                raise runner.failure(f"it matches {name}, which is not a container")
        for place in (folder, str(Path(folder, "absent")), "pdb:1ubq", ""):
            if reader.matches(place):
                raise runner.failure(f"it matches {place!r}, which is not a container")
        if (seconds := _time_of_matches(reader, str(Path(folder, "a.pdb")))) > _LONGEST:
            raise runner.failure(
                f"matches takes {1e3 * seconds:.3g} ms, and is called for every file of a folder. "
                "Look at the name, and for files beside it."
            )


def reader_reads(runner: Runner) -> None:
    """Check that each protein of its example has residues after cleaning, and the same atoms again."""
    reader = _reader(runner)
    with tempfile.TemporaryDirectory() as folder:
        for path, content in _contents(runner, reader, folder).items():
            if path.endswith(reader.sequence_suffixes):
                _require_sequence(runner, reader, path, content)
                continue
            if not _defines(type(reader), "parse"):
                raise NotApplicable("it reads containers of other formats")
            if not reader.recognizes(content):
                raise runner.failure(f"it does not recognize its own example {path!r}")
            with runner.errors_as_failures("parse"):
                atoms, again = (read_with(reader, runner.component.name, content, path).atoms for _ in range(2))
            if not isinstance(atoms, AtomArray):
                raise runner.failure(f"its atoms are a {type(atoms).__name__}, not an AtomArray")
            if not atoms.equal_annotations(again) or not np.array_equal(atoms.coord, again.coord, equal_nan=True):
                raise runner.failure(f"two reads of {path!r} have different atoms")
            with runner.errors_as_failures("cleaning of the atoms"):
                form, report = runner.component.name, LossReport()
                structure = resolve_atoms(atoms.copy(), name="example", source=path, form=form, report=report)
                residues = clean(structure)
            if not len(residues) or not np.isfinite(residues.pos).all():
                raise runner.failure(f"{path!r} has no residue with a finite position")


def _require_sequence(runner: Runner, reader: Reader, path: str, content: bytes) -> None:
    with runner.errors_as_failures("read_sequence"):
        residues, again = (reader.read_sequence(content, path) for _ in range(2))
    if not len(residues) or residues.has_coordinates:
        raise runner.failure(f"{path!r} has no residues, or residues with coordinates")
    if residues.sequence != again.sequence:
        raise runner.failure(f"two reads of {path!r} have different sequences")


def reader_entries(runner: Runner) -> None:
    """Check that the entries of its example are unique, in the same order again, and can be read by name."""
    reader = _reader(runner)
    if not _defines(type(reader), "entries"):
        raise NotApplicable("it reads no container")
    with tempfile.TemporaryDirectory() as folder:
        for path in _containers(runner, reader, folder):
            with runner.errors_as_failures("entries"):
                names, again = list(reader.entries(path)), list(reader.entries(path))
            if not names or names != again:
                raise runner.failure(f"the entries are {names}, and then {again}")
            if len(set(names)) < len(names):
                raise runner.failure(f"two entries have one name: {names}")
            with runner.errors_as_failures("read"):
                contents = [(reader.read(path, name), reader.read(path, name)) for name in names]
            if any(one != two or not isinstance(one, bytes) for one, two in contents):
                raise runner.failure("read returns other bytes for the same name")
            if path not in reader.files(path):
                raise runner.failure(f"{path!r} is not among its files {reader.files(path)}")
            _require_selection_error(runner, reader, path)


def _require_selection_error(runner: Runner, reader: Reader, path: str) -> None:
    try:
        reader.read(path, "no-such-entry")
    except SelectionError:
        return
    except Exception as e:
        raise runner.failure(f"an absent entry raises {type(e).__name__}, not SelectionError") from e
    raise runner.failure("read returns a value for an absent entry")


def _reader(runner: Runner) -> Reader:
    return runner.component.loaded()


def _defines(cls: type[Reader], method: str) -> bool:
    return getattr(cls, method) is not getattr(Reader, method)


def _require_all(runner: Runner, cls: type[Reader], role: str, methods: tuple[str, ...]) -> None:
    """Raise if a reader defines some methods of a format or a container, but not all."""
    missing = [method for method in methods if not _defines(cls, method)]
    if missing and len(missing) < len(methods):
        raise runner.failure(f"a {role} defines {', '.join(methods)}. Missing: {missing[0]}.")


def _example(runner: Runner, reader: Reader, folder: str) -> list[str]:
    with runner.errors_as_failures("example"):
        paths = [str(path) for path in reader.example(Path(folder))]
    if not paths:
        raise NotApplicable("it has no example; define the method 'example'")
    return paths


def _containers(runner: Runner, reader: Reader, folder: str) -> list[str]:
    containers = [path for path in _example(runner, reader, folder) if reader.matches(path)]
    if not containers:
        raise runner.failure("it matches no path of its own example")
    return containers


def _contents(runner: Runner, reader: Reader, folder: str) -> dict[str, bytes]:
    """Return the content of each file and entry of the example."""
    contents: dict[str, bytes] = {}
    for path in _example(runner, reader, folder):
        if reader.matches(path):
            contents |= {f"{path}:{name}": reader.read(path, name) for name in reader.entries(path)}
        else:
            contents[path] = Path(path).read_bytes()
    return contents


def _time_of_matches(reader: Reader, path: str) -> float:
    """Return the shortest mean time of a call, in seconds of the processor."""
    times = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(_CALLS):
            reader.matches(path)
        times.append((time.process_time() - start) / _CALLS)
    return min(times)


@cache
def _files_of_others() -> dict[str, bytes]:
    """Return the content of files that protgraph reads itself, and of two that it does not, by name."""
    atoms = to_atom_array(make_protein([8]))
    as_pdb, as_cif, as_bcif = pdb.PDBFile(), pdbx.CIFFile(), pdbx.BinaryCIFFile()
    as_pdb.set_structure(atoms)
    pdbx.set_structure(as_cif, atoms)
    pdbx.set_structure(as_bcif, atoms)
    texts, binary = {"a.pdb": io.StringIO(), "a.cif": io.StringIO()}, io.BytesIO()
    as_pdb.write(texts["a.pdb"])
    as_cif.write(texts["a.cif"])
    as_bcif.write(binary)
    files = {name: text.getvalue().encode() for name, text in texts.items()}
    return files | {
        "a.bcif": binary.getvalue(),
        "a.fasta": b">a\nACDEFGH\n",
        "empty.txt": b"",
        "noise.bin": b"\0\1\2" * 9,
    }
