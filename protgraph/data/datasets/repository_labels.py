"""Labels of a package for the structure files of a repository that has them in another form or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.errors import DatasetError
from protgraph.structure import Structure, clean, load_structure

__all__ = ["read_repository_labels"]

_VALUES = {"0": 0.0, "1": 1.0, "-": np.nan}


def read_repository_labels(
    source: SourceFolder,
    table: Path,
    labels: Mapping[str, str | tuple[str, str]],
    *,
    split: str = "split",
    load: Callable[[Path], Structure] = load_structure,
) -> Iterator[SourceProtein]:
    """Yield the proteins of a table with their files of a repository.

    Parameters
    ----------
    source : SourceFolder
        Clone of the repository, or its downloaded files.
    table : Path
        Table with the columns ``id``, ``path`` (in the repository), ``split``, ``cluster``, ``chains`` and, for each
        kind of label, one character per residue of these chains in the order of the graph: 0, 1, or - for unknown.
    labels : mapping of str to str or (str, str)
        Task → column. With a second column, labels are unknown where it is not 1.
    split : str
        Column of the split; proteins without one are left out.
    load : callable
        Function that reads a structure file. A blank chain id is replaced by that of the table.

    Raises
    ------
    DatasetError
        A file is missing, or has another number of residues.
    """
    for row in read_tsv(table):
        if not row[split]:
            continue
        path, chains = source.path(row["path"]), tuple(row["chains"].split(","))
        read = partial(_load_named, load, path, chains[0])
        residues = clean(read(), chains=list(chains))
        values = {task: _label_values(row, columns) for task, columns in labels.items()}
        if any(len(column) != len(residues) for column in values.values()):
            count = len(next(iter(values.values())))
            raise DatasetError(
                f"{path} has {len(residues)} residues, the table of the package has {count}. Get it again."
            )
        keys = residues.chain, residues.res_id, residues.ins_code
        yield SourceProtein(
            row["id"], path, row[split], chains, row["cluster"], keys, values, read=read, content=path.read_bytes()
        )


def _load_named(load: Callable[[Path], Structure], path: Path, chain: str) -> Structure:
    structure = load(path)
    atoms = structure.atoms
    if not (atoms.chain_id != "").any():
        atoms.chain_id = np.full(len(atoms), chain)
    return structure


def _label_values(row: Mapping[str, str], columns: str | tuple[str, str]) -> np.ndarray:
    """Return ``(R,)`` labels of a column, NaN where unknown or where the second column is not 1."""
    name, mask = (columns, None) if isinstance(columns, str) else columns
    values = np.array([_VALUES[letter] for letter in row[name]])
    return values if mask is None else np.where([letter == "1" for letter in row[mask]], values, np.nan)
