"""One shard of a graph store: proteins in flat memory-mapped arrays, joined over proteins, and offsets.

If every node of a protein has the same number K of edges, only sources are kept: the target of edge e is e // K.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.graph.protein_graph import LossCounts
from protgraph.data.store.residue_store import slice_residues
from protgraph.data.store.shard_file import map_shard_file
from protgraph.errors import DatasetError
from protgraph.failure import Failure
from protgraph.structure.residues.residues import Residues

__all__ = ["EDGES", "GraphShard"]

EDGES = ("edge_source", "edge_target")
"""Arrays of ``edge_index``: int32 numbers of the nodes in their protein."""


class GraphShard:
    """Proteins of one shard; the arrays are mapped when it is opened and read when they are used.

    Parameters
    ----------
    path : Path
        File of :func:`~protgraph.data.store.store_writer.write_shard`.

    Attributes
    ----------
    layout : dict
        See :class:`~protgraph.data.store.store_description.StoreDescription`.
    levels : dict of str to str
        Field → level of its rows.
    arrays : dict of str to ndarray
        Joined arrays, not to be changed.
    offsets : dict of str to list of int
        Level → ``P + 1`` offsets of the proteins.
    """

    def __init__(self, path: Path) -> None:
        file = map_shard_file(path)
        self.path, self._file, self.arrays = path, file, file.arrays
        meta = file.plain("meta")
        self.layout, self.levels = meta["layout"], meta["layout"]["level"]
        self.offsets = {level: self.arrays[f"ptr_{level}"].tolist() for level in meta["levels"]}
        self.degrees = [None if k < 0 else k for k in self.arrays["degree"].tolist()]
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
        return np.repeat(np.arange(self.sizes[i]), self.degrees[i])

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
