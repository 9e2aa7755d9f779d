"""Datasets ``ligand_site`` and ``ligand_site_dsdp``: residues that bind small molecules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from protgraph_plugins.published import (
    PreparedDataset,
    SourceFolder,
    SourceProtein,
    read_columns,
    read_site_archive,
    read_tsv,
    write_tsv,
)

__all__ = ["LICENSES", "LigandSite", "LigandSiteDsdp", "SiteLigand"]
ENTRY_POINTS = {"protgraph.datasets": {"ligand_site": "LigandSite", "ligand_site_dsdp": "LigandSiteDsdp"}}

FOLDER = Path(__file__).resolve().parent
LIGANDS, ORIGINS = "ligands.parquet", "origins.tsv"
TEXT, WHOLE, NUMBER = pa.string(), pa.int64(), pa.float64()
LIGAND_COLUMNS = {
    "file": TEXT,
    "ligand": WHOLE,
    "res_name": TEXT,
    "element": TEXT,
    "x": NUMBER,
    "y": NUMBER,
    "z": NUMBER,
}

#: Set of the source → license of its rows.
LICENSES = {
    "dsdp": "Apache-2.0 and GPL-2.0 (DSDP)",
    "timesplit": "Apache-2.0 and GPL-2.0 (DSDP)",
    "dude": "Apache-2.0 and GPL-2.0 (DSDP)",
    "pdbbind": "PDBbind (academic use; files may not be passed on)",
}


class SiteLigand(NamedTuple):
    """Ligand that made the labels of an example; for evaluation alone.

    Parameters
    ----------
    res_name : str
        Residue name in the source; ``LIG`` where the source has no other.
    elements : ndarray
        ``(M,)`` str, elements of its heavy atoms.
    pos : ndarray
        ``(M, 3)`` float64, Å, in the frame of the structure.
    """

    res_name: str
    elements: np.ndarray
    pos: np.ndarray


class LigandSite(PreparedDataset):
    """Residues that bind small molecules, of structures without their ligands.

    The source has the layout of :func:`~protgraph_plugins.published.read_site_archive`, ``ligands.tsv.gz``, and in
    ``splits.tsv`` the columns ``set`` and ``pdb``. The ligands are in a table beside the prepared structures, which
    no model reads (:meth:`ligands`).
    """

    card_path = FOLDER / "dataset.toml"
    sets: ClassVar[frozenset[str]] = frozenset(LICENSES)
    """Sets of the source that are part of the dataset."""

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins of the sets with both kinds of labels, in the order of ``splits.tsv``."""
        labels = {"ligand_site": "label", "ligand_site_own": "label_own"}
        return read_site_archive(source, labels, rows=self._source_rows(source))

    def write_tables(self, source: SourceFolder, folder: Path, structures: Mapping[str, Path]) -> Sequence[str]:
        """Write the ligands of the examples, and the set and license of each one."""
        table = read_columns(source.path("ligands.tsv.gz"), LIGAND_COLUMNS)
        files = pa.array([f"{name}.bcif" for name in structures])
        pq.write_table(table.filter(pc.is_in(table["file"], files)), folder / LIGANDS, compression="zstd")
        rows = self._source_rows(source)
        origins = [(row["file"].removesuffix(".bcif"), row["set"], row["pdb"], LICENSES[row["set"]]) for row in rows]
        write_tsv(folder / ORIGINS, [("id", "set", "pdb", "license"), *origins])
        return LIGANDS, ORIGINS

    def ligands(self, example_id: str) -> list[SiteLigand]:
        """Return the ligands that made ``ligand_site_own`` of an example, for evaluation."""
        return self._ligands[self.rows[example_id]["file"]]

    @cached_property
    def origins(self) -> dict[str, dict[str, str]]:
        """Example → its set (``dsdp``, ``pdbbind``, ``timesplit`` or ``dude``), PDB id and license."""
        return {row["id"]: row for row in read_tsv(self.folder / ORIGINS)}

    def _source_rows(self, source: SourceFolder) -> list[dict[str, str]]:
        return [row for row in read_tsv(source.path("splits.tsv")) if row["set"] in self.sets]

    @cached_property
    def _ligands(self) -> dict[str, list[SiteLigand]]:
        table = pq.read_table(self.folder / LIGANDS)
        columns = {name: table[name].to_numpy() for name in table.column_names}
        pos = np.stack([columns[axis] for axis in "xyz"], axis=1)
        ligands: dict[str, list[SiteLigand]] = {}
        is_first = (columns["file"][1:] != columns["file"][:-1]) | (columns["ligand"][1:] != columns["ligand"][:-1])
        for atoms in np.split(np.arange(len(pos)), np.flatnonzero(is_first) + 1):
            ligand = SiteLigand(str(columns["res_name"][atoms[0]]), columns["element"][atoms].astype(str), pos[atoms])
            ligands.setdefault(str(columns["file"][atoms[0]]), []).append(ligand)
        return ligands


class LigandSiteDsdp(LigandSite):
    """The same without the rows of PDBbind, for models whose weights may be passed on freely."""

    card_path = FOLDER / "dsdp.toml"
    sets = frozenset({"dsdp", "timesplit", "dude"})
