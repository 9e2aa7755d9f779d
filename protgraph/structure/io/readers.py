"""Read a structure file as a biotite ``AtomArray``: PDB, mmCIF, BinaryCIF, and the formats of registered readers.

Errors of a reader become :class:`~protgraph.errors.StructureFileError`; its warnings are returned, not printed.
"""

from __future__ import annotations

import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import EmptyStructureError, ProtgraphError, SelectionError, StructureFileError
from protgraph.structure.io.assembly import cif_copies, copy_chains, pdb_copies, read_remark_350
from protgraph.structure.io.atom_site import AtomSite
from protgraph.structure.io.bcif import BinaryBlock, unpack_categories
from protgraph.structure.io.cif_column import DataBlock
from protgraph.structure.io.cif_parse import parse_cif, unify_lines
from protgraph.structure.io.cif_values import DETAILS
from protgraph.structure.io.pdb import read_model
from protgraph.structure.io.pdb_lines import PDBText
from protgraph.structure.io.pdb_values import REMARK
from protgraph.structure.io.registered_readers import ParsedFile, Reader, installed_readers
from protgraph.structure.io.repair import check_last_record
from protgraph.structure.io.sniff import FileContent, decode_text, detect_format, read_file, without_padding
from protgraph.structure.residues.structure import MOLECULE

__all__ = ["read_atoms", "read_with"]

# Categories of mmCIF and BinaryCIF that are read.
_CATEGORIES = (
    *("atom_site", "cell", "chem_comp_bond", "ma_qa_metric"),
    *("pdbx_struct_assembly_gen", "pdbx_struct_oper_list", DETAILS),
)

_PREDICTED = re.compile(r"^TITLE .*ALPHAFOLD.*PREDICTION", re.MULTILINE)  # PDB files of the AlphaFold database
_OTHER_VALUES = f"{REMARK} B factors are "  # of protgraph.structure.io.write_values


def read_atoms(
    file: str | os.PathLike[str] | FileContent, *, model: int = 1, assembly: str | None = None
) -> ParsedFile:
    """Read one model of a PDB, mmCIF or BinaryCIF file, or of a registered format, gzipped or not.

    ``file``: the file, or its content. ``model``: position of the model in the file, from 1. ``assembly``: biological
    assembly to build; the copies of chain "A" are "A", "A-2", "A-3", …. Raises :class:`StructureFileError` if the file
    is missing or cannot be read. Raises :class:`SelectionError` if the file does not have this model or assembly.
    Raises :class:`EmptyStructureError` if the file has no atoms.
    """
    file = read_file(file)
    path, content = file.path, file.data
    form = detect_format(content, path)
    if form not in _READERS:
        return read_with(installed_readers()[form], form, content, path, model=model, assembly=assembly)
    reader = _READERS[form](path)
    with warnings.catch_warnings(record=True) as caught, _as_structure_error(path, reader.format):
        warnings.simplefilter("always")
        reader.open(content)
        models = reader.models()
        if not 1 <= model <= models:
            raise SelectionError(f"{path}: no model {model}. The file has models 1 to {models}.")
        atoms = _assemble(reader, model, assembly) if assembly is not None else reader.atoms(model)
    if len(atoms) == 0:
        raise EmptyStructureError(f"{path}: model {model} has no atoms")
    texts = dict.fromkeys((*reader.notes, *(str(w.message) for w in caught)))
    return ParsedFile(
        atoms, reader.format, models, tuple(texts), reader.predicted(), reader.inferred_elements, reader.block
    )


def read_with(
    reader: Reader, form: str, content: bytes, path: str, *, model: int = 1, assembly: str | None = None
) -> ParsedFile:
    """Read one model with a registered reader; annotations that it does not set get their defaults."""
    with warnings.catch_warnings(record=True) as caught, _as_structure_error(path, form):
        warnings.simplefilter("always")
        parsed = reader.parse(content, path, model)
        atoms = parsed.atoms
        if not 1 <= model <= parsed.models:
            raise SelectionError(f"{path}: no model {model}. The file has models 1 to {parsed.models}.")
        if assembly is not None:
            raise SelectionError(f"{path}: the file has no assembly {assembly!r}. It describes none.")
        defaults = {"b_factor": np.float32(0), "occupancy": np.float32(1), "altloc_id": ""}
        for name in defaults.keys() - set(atoms.get_annotation_categories()):
            atoms.set_annotation(name, np.full(len(atoms), defaults[name]))
    if len(atoms) == 0:
        raise EmptyStructureError(f"{path}: model {model} has no atoms")
    texts = dict.fromkeys((*parsed.warnings, *(str(warning.message) for warning in caught)))
    return replace(parsed, format=form, warnings=tuple(texts))


class _Reader(ABC):
    """Reader of one format; ``open`` parses the content that the other methods use."""

    format: ClassVar[str]
    block: DataBlock | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: tuple[str, ...] = ()
        self.inferred_elements = 0

    @abstractmethod
    def open(self, content: bytes) -> None: ...

    @abstractmethod
    def models(self) -> int: ...

    @abstractmethod
    def predicted(self) -> bool: ...

    @abstractmethod
    def atoms(self, model: int) -> AtomArray: ...

    @abstractmethod
    def assemblies(self) -> list[str]: ...

    @abstractmethod
    def assembly(self, name: str, model: int) -> tuple[AtomArray, np.ndarray]:
        """Return the copies of all chains, and the number of the copy that each atom is in; see :func:`copy_chains`."""


class _PDBReader(_Reader):
    format = "pdb"

    def open(self, content: bytes) -> None:
        text = without_padding(content)
        self.text = decode_text(text)
        check_last_record(self.text, self.path)
        self.records = PDBText.of(self.text)
        self._padding = _padding_note(content, text)

    def models(self) -> int:
        if (count := len(self.records.models)) == 0:
            raise EmptyStructureError(f"{self.path}: no ATOM or HETATM records in the PDB file")
        return count

    def predicted(self) -> bool:
        header = self.records.header
        return _PREDICTED.search(header) is not None and _OTHER_VALUES not in header

    def atoms(self, model: int) -> AtomArray:
        read = read_model(self.records, model, where=self.path)
        self.notes, self.inferred_elements = (*self._padding, *read.notes), read.inferred_elements
        return read.atoms

    def assemblies(self) -> list[str]:
        return list(read_remark_350(self.text, self.path))

    def assembly(self, name: str, model: int) -> tuple[AtomArray, np.ndarray]:
        atoms = self.atoms(model)
        return copy_chains(atoms, atoms.chain_id, pdb_copies(read_remark_350(self.text, self.path)[name], self.path))


class _CIFReader(_Reader):
    format = "mmcif"
    block: DataBlock

    def open(self, content: bytes) -> None:
        sites = [(block, site) for block in self._blocks(content) if (site := block.get("atom_site")) is not None]
        if not sites:
            raise EmptyStructureError(
                f"{self.path}: no atom_site category, hence no coordinates of a macromolecule.\n"
                "Small-molecule, restraint and header-only CIF files cannot be read."
            )
        self.block, site = sites[0]
        if len(sites) > 1:
            others = ", ".join(repr(block.name) for block, _ in sites[1:])
            self.notes += (f"data blocks {others} have atoms too; {self.block.name!r} was read",)
        self.site = AtomSite(site, self.block.get("cell"), self.path, component_bonds=self.block.get("chem_comp_bond"))

    def _blocks(self, content: bytes) -> Sequence[DataBlock]:
        text = without_padding(content)
        self.notes = _padding_note(content, text)
        return parse_cif(unify_lines(text), self.path, _CATEGORIES)

    def models(self) -> int:
        return self.site.models

    def predicted(self) -> bool:
        metrics = self.block.get("ma_qa_metric")
        if metrics is None or "name" not in metrics.names or self.block.get(DETAILS) is not None:
            return False
        return any("plddt" in name.lower() for name in metrics.column("name").texts())

    def atoms(self, model: int) -> AtomArray:
        atoms = self.site.atoms(model)
        self.notes, self.inferred_elements = (*self.notes, *self.site.notes), self.site.inferred_elements
        return atoms

    def assemblies(self) -> list[str]:
        generators = self.block.get("pdbx_struct_assembly_gen")
        return [] if generators is None else list(dict.fromkeys(generators.column("assembly_id").texts().tolist()))

    def assembly(self, name: str, model: int) -> tuple[AtomArray, np.ndarray]:
        generators, operations = self.block.get("pdbx_struct_assembly_gen"), self.block.get("pdbx_struct_oper_list")
        if generators is None or operations is None:
            raise StructureFileError(f"{self.path}: no category pdbx_struct_oper_list, which assemblies require.")
        atoms = self.atoms(model)
        if MOLECULE in atoms.get_annotation_categories():  # a copy is a chain of its own
            atoms.del_annotation(MOLECULE)
        copies, number = copy_chains(atoms, self.site.label_asym_id(model), cif_copies(generators, operations, name))
        order = np.argsort(number, kind="stable")  # the first copy of all chains, then the second
        return copies[order], number[order]


class _BinaryCIFReader(_CIFReader):
    format = "bcif"

    def _blocks(self, content: bytes) -> Sequence[DataBlock]:
        names = [f"_{category}" for category in _CATEGORIES]
        return [BinaryBlock(block) for block in unpack_categories(content, names)["dataBlocks"]]


_READERS: dict[str, type[_Reader]] = {reader.format: reader for reader in (_PDBReader, _CIFReader, _BinaryCIFReader)}


def _padding_note(content: bytes, text: bytes) -> tuple[str, ...]:
    """Return a note if NUL bytes behind the text of a file were left out."""
    count = 0 if text is content else content.count(b"\0")
    return (f"{count} NUL bytes at the end of the file left out",) if count else ()


@contextmanager
def _as_structure_error(path: str, name: str) -> Iterator[None]:
    """Convert every exception of a third-party reader to :class:`StructureFileError`."""
    try:
        yield
    except ProtgraphError:
        raise
    except Exception as e:
        text = str(e).splitlines()[0][:200] if str(e) else "no message"
        raise StructureFileError(f"{path}: cannot be read as {name} ({type(e).__name__}: {text})") from e


def _assemble(reader: _Reader, model: int, assembly: str) -> AtomArray:
    """Build a biological assembly with a distinct chain id for each copy of a chain."""
    available = reader.assemblies()
    if assembly not in available:
        names = f"It has {', '.join(map(repr, available))}." if available else "It describes none."
        raise SelectionError(f"{reader.path}: the file has no assembly {assembly!r}. {names}")
    atoms, number = reader.assembly(assembly, model)
    atoms.bonds = None  # copies of ligands have their bonds by distance
    suffix = np.char.add("-", (number + 1).astype(str))
    atoms.set_annotation("chain_id", np.char.add(atoms.chain_id, np.where(number > 0, suffix, "")))
    return atoms
