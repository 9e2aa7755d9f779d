"""Proteins with labeled residues: files of a repository with the table of a package, or a folder with archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from protgraph_plugins.published.source_folder import SourceFolder, SourceProtein, read_tsv

from protgraph.errors import DatasetError
from protgraph.structure import Structure, clean, load_structure

__all__ = ["is_site_archive", "read_columns", "read_repository_labels", "read_site_archive"]

SPLITS, LABELS = "splits.tsv", "labels.tsv.gz"
_ARCHIVE = ".tar.xz"
#: Columns of ``labels.tsv.gz`` that name a residue.
_RESIDUE = {"file": pa.string(), "chain": pa.string(), "res_id": pa.int64(), "ins_code": pa.string()}
#: Character of a label table of a package → label.
_VALUES = {"0": 0.0, "1": 1.0, "-": np.nan}


def is_site_archive(source: SourceFolder) -> bool:
    """Return True if a source has the layout of :func:`read_site_archive`."""
    return source.has(SPLITS) and source.has(LABELS)


def read_site_archive(
    source: SourceFolder, labels: Mapping[str, str], *, rows: Sequence[Mapping[str, str]] | None = None
) -> Iterator[SourceProtein]:
    """Yield the proteins of a folder whose structures are in archives, in the order of its table of splits.

    Parameters
    ----------
    source : SourceFolder
        Folder with ``splits.tsv`` (columns ``file``, ``split``, ``chains`` and ``cluster30``), ``labels.tsv.gz``
        (``file``, ``chain``, ``res_id``, ``ins_code`` and labels; the rows of a file follow each other, and a blank
        label is unknown), and ``structures.tar.xz`` or ``structures_1.tar.xz`` and so on. An archive may be
        given unpacked, as a folder.
    labels : mapping of str to str
        Task → column.
    rows : sequence of mapping, optional
        Rows of ``splits.tsv``. Default: all.

    Raises
    ------
    DatasetError
        A file is missing, or the archives lack a structure.
    """
    rows = read_tsv(source.path(SPLITS)) if rows is None else rows
    paths = _structure_paths(source)
    columns_of_file = _columns_of_files(source.path(LABELS), list(labels.values()))
    for row in rows:
        path = _structure_path(paths, row["file"], source)
        columns = columns_of_file[row["file"]]
        residue_keys = columns["chain"], columns["res_id"], columns["ins_code"]
        values = {task: columns[name] for task, name in labels.items()}
        chains = tuple(row["chains"].split(","))
        yield SourceProtein(path.stem, path, row["split"], chains, row["cluster30"], residue_keys, values)


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
        Clone of the repository, or its downloaded files; or a folder with the layout of :func:`read_site_archive`,
        of which only the structures are read.
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
    archived = _structure_paths(source) if is_site_archive(source) else None
    for row in read_tsv(table):
        if not row[split]:
            continue
        if archived is None:
            path = source.path(row["path"])
        else:
            path = _structure_path(archived, f"{row['id']}.bcif", source)
        chains = tuple(row["chains"].split(","))
        read = partial(_load_named, load, path, chains[0])
        residues = clean(read(), chains=list(chains))
        values = {}
        for task, columns in labels.items():
            values[task] = _label_values(row, columns)
            count = len(values[task])
            if count != len(residues):
                raise DatasetError(
                    f"{path} has {len(residues)} residues, the table of the package has {count}. Get it again."
                )
        residue_keys = residues.chain, residues.res_id, residues.ins_code
        content = path.read_bytes()
        yield SourceProtein(
            row["id"], path, row[split], chains, row["cluster"], residue_keys, values, read=read, content=content
        )


def read_columns(path: Path, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Read columns of a table with a header and tabs, plain or gzipped; numbers are missing where they are blank."""
    parse = pa_csv.ParseOptions(delimiter="\t")
    convert = pa_csv.ConvertOptions(column_types=dict(types), include_columns=list(types))
    return pa_csv.read_csv(path, parse_options=parse, convert_options=convert)


def _structure_paths(source: SourceFolder) -> dict[str, Path]:
    """Return the structures of all archives by file name."""
    names = {path.name.removesuffix(_ARCHIVE) for path in source.folder.glob("structures*")}
    paths: dict[str, Path] = {}
    for name in sorted(names) or ["structures"]:
        folder = source.folder_or_archive(name, f"{name}{_ARCHIVE}")
        paths |= {path.name: path for path in folder.glob("*.bcif")}
    return paths


def _structure_path(paths: Mapping[str, Path], file: str, source: SourceFolder) -> Path:
    if file not in paths:
        raise DatasetError(f"{file} is in no archive of {str(source.folder)!r}. Copy the folder again.")
    return paths[file]


def _columns_of_files(path: Path, labels: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
    """Return the columns of each file of ``labels.tsv.gz``; the rows of a file follow each other."""
    table = read_columns(path, _RESIDUE | dict.fromkeys(labels, pa.float64()))
    columns = {}
    for name in ("res_id", *labels):
        columns[name] = table[name].to_numpy()
    for name in ("chain", "ins_code"):
        columns[name] = table[name].to_numpy().astype(str)

    files = table["file"].to_numpy()
    is_other_file = files[1:] != files[:-1]
    begins = [0, *(np.flatnonzero(is_other_file) + 1).tolist()]
    ends = [*begins[1:], len(files)]
    columns_of_file: dict[str, dict[str, np.ndarray]] = {}
    for begin, end in zip(begins, ends, strict=True):
        file = str(files[begin])
        columns_of_file[file] = {name: column[begin:end] for name, column in columns.items()}
    return columns_of_file


def _load_named(load: Callable[[Path], Structure], path: Path, chain: str) -> Structure:
    structure = load(path)
    atoms = structure.atoms
    if not (atoms.chain_id != "").any():
        atoms.chain_id = np.full(len(atoms), chain)
    return structure


def _label_values(row: Mapping[str, str], columns: str | tuple[str, str]) -> np.ndarray:
    """Return ``(R,)`` labels of a column, NaN where unknown or where the second column is not 1."""
    if isinstance(columns, str):
        return np.array([_VALUES[letter] for letter in row[columns]])
    name, mask = columns
    values = np.array([_VALUES[letter] for letter in row[name]])
    is_known = np.array([letter == "1" for letter in row[mask]])
    return np.where(is_known, values, np.nan)
