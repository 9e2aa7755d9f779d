"""Build a biological assembly from the atoms of a model and the operations of an mmCIF or PDB file."""

# Not biotite: no "BIOMOLECULE: 1, 2", REMARK 350 only after an empty line, atoms parsed again (1.6.0, 2026-11-26).

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from biotite.structure import AtomArray, concatenate, repeat

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_column import CategoryTable, ColumnValues

__all__ = ["ChainCopies", "cif_copies", "copy_chains", "pdb_copies", "read_remark_350"]


class ChainCopies(NamedTuple):
    """Chains, and the operations that make their copies.

    ``operations``: for each copy the steps to apply one after the other, ``(3, 4)`` float64 each: three rows, each with
    three elements of the rotation and one of the shift, Å.
    """

    chains: list[str]
    operations: Sequence[Sequence[np.ndarray]]


def copy_chains(
    atoms: AtomArray, ids: np.ndarray, copies_of_chains: Sequence[ChainCopies]
) -> tuple[AtomArray, np.ndarray]:
    """Apply operations to the chains that they are for, part by part and copy by copy.

    ``ids``: ``(A,)`` str, chain of each atom. Returns ``number``: ``(M,)`` int64 from 0, copy of its chain that each
    atom belongs to.
    """
    copies, numbers = [], []
    counts: Counter[str] = Counter()
    for chains, operations in copies_of_chains:
        rows = np.flatnonzero(np.isin(ids, chains))
        coord = np.empty((len(operations), len(rows), 3))
        for moved, steps in zip(coord, operations, strict=True):
            moved[:] = atoms.coord[rows]
            for step in steps:
                moved[:] = moved @ step[:, :3].T + step[:, 3]
        copies.append(repeat(atoms[rows], coord))
        earlier = np.array([counts[chain] for chain in ids[rows].tolist()], np.int64)  # copies of other parts
        numbers.append((np.arange(len(operations))[:, None] + earlier).ravel())
        counts.update(dict.fromkeys(chains, len(operations)))
    return concatenate(copies), np.concatenate(numbers)


def cif_copies(generators: CategoryTable, operations: CategoryTable, name: str) -> list[ChainCopies]:
    """Return the chains (``label_asym_id``) and operations of an assembly of ``pdbx_struct_assembly_gen``."""
    steps = dict(zip(_texts(operations, "id"), _matrices(operations), strict=True))
    chain_copies = []
    rows = zip(*(_texts(generators, item) for item in ("assembly_id", "asym_id_list", "oper_expression")), strict=True)
    for assembly, chains, expression in rows:
        if assembly == name:
            # These texts may have any number of lines; white space is no part of an id.
            ids = _operation_ids(re.sub(r"\s", "", expression))
            copies = [list(map(steps.__getitem__, operation)) for operation in ids]
            chain_copies.append(ChainCopies(re.sub(r"\s", "", chains).split(","), copies))
    return chain_copies


def _operation_ids(expression: str) -> list[tuple[str, ...]]:
    """Return the steps of each operation of an expression, e.g. "1,3-5"; of two factors the last is applied first.

    Examples
    --------
    >>> _operation_ids("(X0)(1-2,5)")
    [('1', 'X0'), ('2', 'X0'), ('5', 'X0')]
    """
    factors = []
    for factor in filter(None, expression.replace(")", "").split("(")):
        ids: list[str] = []
        for item in factor.split(","):
            first, is_range, last = item.partition("-")
            ids += map(str, range(int(first), int(last) + 1)) if is_range else [item]
        factors.append(ids)
    return list(product(*reversed(factors)))


def _matrices(operations: CategoryTable) -> np.ndarray:
    """Return the operations, ``(rows, 3, 4)`` float64."""
    columns = []
    for i in (1, 2, 3):
        items = (f"matrix[{i}][1]", f"matrix[{i}][2]", f"matrix[{i}][3]", f"vector[{i}]")
        columns.append([_numbers(operations.column(item)) for item in items])
    return np.array(columns).transpose(2, 0, 1)


def _numbers(column: ColumnValues) -> np.ndarray:
    """Return numbers of BinaryCIF as they are, since a float32 written as text would be read as another float64."""
    is_number = not column.is_text and column.mask is None
    return (column.values if is_number else column.texts()).astype(np.float64)


def _texts(table: CategoryTable, item: str) -> list[str]:
    return table.column(item).texts().tolist()


@dataclass(frozen=True)
class Biomt:
    """Chains of REMARK 350, and the rows of their BIOMT records: four numbers each, three rows for each operation."""

    chains: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)


def read_remark_350(text: str, where: str) -> dict[str, list[Biomt]]:
    """Parse the biological assemblies of a PDB file, by name.

    A record "BIOMOLECULE: 1, 2" begins two assemblies with the same operations. The chain NULL is the blank one.
    """
    assemblies: dict[str, list[list[Biomt]]] = {}
    current: list[Biomt] = []
    for line in re.findall(r"^REMARK 350 (.*)", text, re.MULTILINE):
        begin, _, rest = line.strip().partition(":")
        words = rest.replace(",", " ").split()
        if begin == "BIOMOLECULE":
            current = []
            for name in words:
                assemblies.setdefault(name, []).append(current)
        elif begin in ("APPLY THE FOLLOWING TO CHAINS", "AND CHAINS"):
            if begin != "AND CHAINS" or not current:
                current.append(Biomt())
            current[-1].chains.extend("" if word == "NULL" else word for word in words)
        elif begin.startswith("BIOMT"):
            if not current:
                raise StructureFileError(f"{where}: REMARK 350 has BIOMT records without chains that they apply to.")
            current[-1].rows.append(_biomt_row(line, where))
    return {name: list(chain.from_iterable(parts)) for name, parts in assemblies.items()}


def _biomt_row(line: str, where: str) -> list[float]:
    """Return the four numbers of a record BIOMT1, BIOMT2 or BIOMT3."""
    words = line.split()[2:]
    try:
        row = [float(word) for word in words]
    except ValueError:
        row = []
    if len(row) != len(words) or len(row) != 4:
        raise StructureFileError(f"{where}: REMARK 350 {line.strip()!r} does not have four numbers.")
    return row


def pdb_copies(parts: Sequence[Biomt], where: str) -> list[ChainCopies]:
    """Return the chains and operations of an assembly of :func:`read_remark_350`."""
    copies = []
    for biomt in parts:
        if len(biomt.rows) == 0 or len(biomt.rows) % 3:
            raise StructureFileError(
                f"{where}: REMARK 350 has {len(biomt.rows)} BIOMT records for chains {', '.join(biomt.chains)}. "
                "Required: three for each operation."
            )
        operations = np.array(biomt.rows).reshape(-1, 3, 4)
        copies.append(ChainCopies(biomt.chains, [[step] for step in operations]))
    return copies
