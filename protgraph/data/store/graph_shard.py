"""One shard of a graph store: proteins in flat memory-mapped arrays, joined over proteins, and offsets.

If every node of a protein has the same number K of edges, only sources are kept: the target of edge e is e // K.

The files are those of safetensors. Not safetensors.numpy (0.8.0, 2026-11-22): ``save_file`` copies every array before
it writes, and ``safe_open`` copies what it reads. The files can be read with it, except that strings are code points.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protgraph.data.graph.protein_graph import LossCounts
from protgraph.errors import DatasetError
from protgraph.failure import Failure
from protgraph.file_io import atomic_write
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues

__all__ = [
    "EDGES",
    "GraphShard",
    "ShardFile",
    "flatten_residues",
    "map_shard_file",
    "residues_from_arrays",
    "residues_to_arrays",
    "slice_residues",
    "write_shard_file",
]

EDGES = ("edge_source", "edge_target")
"""Arrays of ``edge_index``: int32 numbers of the nodes in their protein."""


class GraphShard:
    """Proteins of one shard; the arrays are mapped when it is opened and read when they are used.

    ``path``: file of :func:`~protgraph.data.store.store_writer.write_shard`. ``layout``: see
    :class:`~protgraph.data.store.store_description.StoreDescription`. ``levels``: field → level of its rows.
    ``arrays``: joined arrays, not to be changed. ``offsets``: level → ``P + 1`` offsets of the proteins.
    """

    def __init__(self, path: Path) -> None:
        file = map_shard_file(path)
        self.path, self._file, self.arrays = path, file, file.arrays
        meta = file.plain("meta")
        self.layout, self.levels = meta["layout"], meta["layout"]["level"]
        self.offsets = {level: self.arrays[f"ptr_{level}"].tolist() for level in meta["levels"]}
        self.degrees: list[int | None] = [None if k < 0 else k for k in self.arrays["degree"].tolist()]
        self.sizes = np.diff(self.arrays["ptr_node"])

    def __len__(self) -> int:
        return len(self.degrees)

    @cached_property
    def _plain(self) -> dict[str, Any]:
        return self._file.plain("proteins")

    @cached_property
    def attributes(self) -> dict[str, list[Any]]:
        """Plain attributes of the graphs: one value per protein."""
        return self._plain["attributes"]

    @property
    def sources(self) -> list[str]:
        """File that each protein was read from; empty if that is not recorded."""
        return self._plain["sources"]

    @property
    def checksums(self) -> list[str]:
        """SHA-256 of the file of each protein; empty if that is not recorded."""
        return self._plain["sha256"]

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs that the proteins and failures are from; empty if they are not recorded."""
        return self._plain["inputs"]

    @property
    def failures(self) -> list[tuple[int, Failure]]:
        """Records of proteins and files that could not be used, with their places among all results."""
        return [(at, Failure(**record)) for at, record in self._plain["failures"]]

    def rows(self, key: str, i: int) -> tuple[int, int]:
        """Return the first and last row of a field of protein i in its array."""
        offsets = self.offsets[self.levels[key]]
        return offsets[i], offsets[i + 1]

    def attribute(self, key: str, i: int) -> Any:
        """Return an attribute that is not a numeric field."""
        if key in self.arrays:  # strings of nodes
            a, b = self.rows(key, i)
            return self.arrays[key][a:b].copy()
        value = self.attributes[key][i]
        return LossCounts(value) if key == "report" and isinstance(value, dict) else value

    def edges(self, name: str, i: int) -> np.ndarray:
        """Return the sources or targets ``(E,)`` (:data:`EDGES`) of the edges of protein i, numbers of its nodes."""
        if name in self.arrays:
            a, b = self.offsets["edge"][i : i + 2]
            return self.arrays[name][a:b]
        degree = self.degrees[i]
        assert degree is not None  # contract: only targets of graphs with one degree are not stored
        return np.repeat(np.arange(self.sizes[i]), degree)

    def residues(self, i: int) -> Residues:
        """Return the residues of protein i as copies."""
        described = self._plain["residues"]
        if described is None:
            raise DatasetError(f"{self.path} has no residues. Write the store with 'protgraph featurize'.")
        return slice_residues(self.arrays, described[i], i)

    def described_residues(self, i: int) -> dict[str, Any]:
        """Return the plain data of the residues of protein i: name, loss report, and names of arrays."""
        return self._plain["residues"][i]

    def num_residues_of(self, i: int) -> int:
        """Return the number of residues of protein i."""
        offsets = self.arrays["residues.ptr_residue"]
        return int(offsets[i + 1] - offsets[i])


# Residues as named arrays, of one protein or of many in flat arrays: a store keeps them beside the graphs, so that
# features and labels can be recomputed.
RESIDUE = (
    *("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos", "occupancy"),
)
"""Arrays with one row per residue; ``occupancy`` is optional."""
ATOM = ("atom_pos", "atom_name", "atom_element", "atom_residue")
"""Arrays with one row per atom."""
_LIGANDS = "ligands."
LIGAND = tuple(_LIGANDS + name for name in ("chain", "res_id", "ins_code", "res_name"))
"""Arrays with one row per ligand molecule, if ligands were kept."""
LIGAND_ATOM = tuple(_LIGANDS + name for name in ("atom_pos", "atom_name", "atom_element", "atom_molecule"))
"""Arrays with one row per ligand atom, if ligands were kept."""
LIGAND_BOND = (_LIGANDS + "bonds",)
"""Arrays with one row per bond of a ligand that the file states, if ligands were kept."""
_PREFIX = "residues."
_LEVELS = {
    "residue": RESIDUE,
    "atom": ATOM,
    "ligand": LIGAND,
    "ligand_atom": LIGAND_ATOM,
    "ligand_bond": LIGAND_BOND,
}
_COUNTS = {level: names[0] for level, names in _LEVELS.items()}  # the array that has a row count at each level


def residues_to_arrays(residues: Residues) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of residues by name, of the shapes of the attributes, and everything else as plain data."""
    arrays = {}
    for name in (*RESIDUE, *ATOM):
        value = getattr(residues, name)
        if value is not None:
            arrays[name] = value
    if residues.ligands is not None:
        for f in fields(residues.ligands):
            arrays[_LIGANDS + f.name] = getattr(residues.ligands, f.name)
    plain = {"name": residues.name, "predicted": bool(residues.predicted), "report": residues.report.to_dict()}
    return arrays, plain


def residues_from_arrays(arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> Residues:
    """Return the residues of the arrays, of the same shapes, and of the data of :func:`residues_to_arrays`."""
    columns: dict[str, Any] = {name: arrays[name] for name in (*RESIDUE, *ATOM) if name in arrays}
    ligands = None
    if LIGAND[0] in arrays:
        names = (*LIGAND, *LIGAND_ATOM, *LIGAND_BOND)
        of_ligands = {name.removeprefix(_LIGANDS): arrays[name] for name in names if name in arrays}
        ligands = Ligands(**of_ligands)
    report = LossReport.from_dict(plain["report"])
    return Residues(name=plain["name"], **columns, report=report, predicted=bool(plain["predicted"]), ligands=ligands)


def flatten_residues(residues: Sequence[Residues]) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Join the arrays of proteins.

    Returns joined arrays and ``(P + 1,)`` offsets of each level, by file name, and plain data of each protein with the
    names of its arrays.
    """
    flattened = [residues_to_arrays(r) for r in residues]
    joined: dict[str, np.ndarray] = {}
    for level, names in _LEVELS.items():
        if level.startswith("ligand") and not any(names[0] in arrays for arrays, _ in flattened):
            continue
        rows = [len(arrays.get(_COUNTS[level], ())) for arrays, _ in flattened]
        joined[f"{_PREFIX}ptr_{level}"] = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        for name in names:
            column = _join([arrays.get(name) for arrays, _ in flattened], rows)
            if column is not None:
                joined[_PREFIX + name] = column
    return joined, [{**plain, "arrays": sorted(arrays)} for arrays, plain in flattened]


def _join(arrays: Sequence[np.ndarray | None], rows: Sequence[int]) -> np.ndarray | None:
    """Concatenate an array of each protein, with zeros for a protein that lacks it; None if all lack it."""
    like = next((array for array in arrays if array is not None), None)
    if like is None:
        return None
    filled = []
    for array, number in zip(arrays, rows, strict=True):
        filled.append(np.zeros((number, *like.shape[1:]), like.dtype) if array is None else array)
    return np.concatenate(filled)


def slice_residues(arrays: Mapping[str, np.ndarray], described: Mapping[str, Any], i: int) -> Residues:
    """Return protein i of the joined arrays, ``(M, …)`` each, as copies; ``described`` is its plain data."""
    sliced: dict[str, np.ndarray] = {}
    for level, names in _LEVELS.items():
        offsets = arrays.get(f"{_PREFIX}ptr_{level}")
        if offsets is None:
            continue
        begin, end = offsets[i : i + 2].tolist()
        for name in names:
            if name in described["arrays"]:
                sliced[name] = arrays[_PREFIX + name][begin:end].copy()
    return residues_from_arrays(sliced, described)


_DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "I16": "<i2",
    "U16": "<u2",
    "F16": "<f2",
    "I32": "<i4",
    "U32": "<u4",
    "F32": "<f4",
    "I64": "<i8",
    "U64": "<u8",
    "F64": "<f8",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_TEXTS = "text."  # prefix of the plain data, as UTF-8 JSON
_STRINGS = "strings"


class ShardFile:
    """Arrays and plain data of one file; nothing is read before it is used.

    ``arrays``: of any shape; memory-mapped, copy-on-write: nothing can write to the file. ``texts``: ``(bytes,)`` uint8
    each, plain data as UTF-8 JSON.
    """

    def __init__(self, arrays: dict[str, np.ndarray], texts: dict[str, np.ndarray]) -> None:
        self.arrays, self._texts = arrays, texts

    def plain(self, name: str) -> Any:
        """Return plain data; they are parsed at each call."""
        return json.loads(self._texts[name].tobytes())


def write_shard_file(path: str | Path, arrays: Mapping[str, np.ndarray], plain: Mapping[str, Any]) -> tuple[str, int]:
    """Write arrays and plain data to a file, atomically; the same content gives the same bytes."""
    # arrays of the types of safetensors: strings as code points, plain data as text
    strings = {name: array.dtype.str for name, array in arrays.items() if array.dtype.kind == "U"}
    stored = {name: _codes(array) if name in strings else array for name, array in arrays.items()}
    texts = {_STRINGS: strings, **plain}
    for name, value in texts.items():
        stored[_TEXTS + name] = np.frombuffer(json.dumps(value).encode(), np.uint8)

    # the header, with the largest types first, so that each array is aligned
    names = sorted(stored, key=lambda name: (-stored[name].dtype.itemsize, name))
    header = {}
    end = 0
    for name in names:
        array = stored[name]
        begin = end
        end += array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    checksum = hashlib.sha256()
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        blocks: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
        blocks += [_bytes(stored[name]) for name in names]
        for block in blocks:
            checksum.update(block)
            file.write(block)
    return checksum.hexdigest(), 8 + len(text) + end


def map_shard_file(path: str | Path) -> ShardFile:
    """Map the file of :func:`write_shard_file` into memory; no file stays open."""
    path = Path(path)
    try:
        size = path.stat().st_size
        # not np.memmap: each map would keep its file open, and processes may open 1024 files
        content = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8).numpy()
        start = 8 + int.from_bytes(content[:8].tobytes(), "little")
        header = json.loads(content[8:start].tobytes())
        stored = {}
        texts = {}
        for name, entry in header.items():
            if name.startswith(_TEXTS):
                texts[name.removeprefix(_TEXTS)] = _array(content, start, entry)
            elif name != "__metadata__":
                stored[name] = _array(content, start, entry)
        strings = json.loads(texts[_STRINGS].tobytes())
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DatasetError(f"{path} is missing or incomplete. Write the store again.") from e
    for name, dtype in strings.items():
        stored[name] = stored[name].view(dtype)[..., 0]
    return ShardFile(stored, texts)


def _array(content: np.ndarray, start: int, entry: Mapping[str, Any]) -> np.ndarray:
    begin, end = entry["data_offsets"]
    values = content[start + begin : start + end].view(_DTYPES[entry["dtype"]])
    return values.reshape(entry["shape"])


def _codes(strings: np.ndarray) -> np.ndarray:
    """Return the ``(…, W)`` uint32 code points of strings: safetensors has no type for strings."""
    strings = np.ascontiguousarray(strings)
    width = strings.dtype.itemsize // 4
    return np.frombuffer(strings.tobytes(), "<u4").reshape(*strings.shape, width)


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
