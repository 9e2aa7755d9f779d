"""Dataset ``db55_pairs``: contacts between the unbound partners of complexes of the docking benchmark 5.5."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from biotite.structure import concatenate
from protgraph_datasets.db55_interface.dataset import FOLDER as INTERFACE_FOLDER
from protgraph_datasets.db55_interface.dataset import SIDES, SPLITS
from protgraph_datasets.db55_interface.interface_labels import CUTOFF, counterparts
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_tsv
from scipy.spatial.transform import Rotation

from protgraph.data.datasets import Example, Labels, PairLabels
from protgraph.structure import Residues, Structure, clean, load_structure
from protgraph.structure.neighbors import close_pairs_between

__all__ = ["GAP", "Db55Pairs", "bound_contacts", "pair_labels", "separated"]
ENTRY_POINTS = {"protgraph.datasets": {"db55_pairs": "Db55Pairs"}}

TASK = "interface_pairs"
PAIR_RESIDUES, PAIR_CONTACTS = "pair_residues.parquet", "pair_contacts.parquet"
GAP = 60.0
"""Å between the partners in a prepared file, at least."""


@dataclass(frozen=True, eq=False)
class _Complex:
    """Partners of a complex: files, and the labels of their pairs."""

    name: str
    split: str
    cluster: str
    files: tuple[Path, Path]
    labels: PairLabels


class Db55Pairs(PreparedDataset):
    """Contacts of residues of two unbound partners, labeled from the bound complex; both partners are in an example.

    The chains of the receptor begin with ``r``, those of the ligand with ``l``. The ligand is rotated at random and
    moved away from the receptor, since the partners of the source are superposed on their complex. Complexes, splits,
    clusters and the source are those of ``db55_interface``; complexes of ``test`` whose cluster is not in training are
    also in ``test_no_homolog``.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the complexes in the order of the splits of the source; pairs are written by :meth:`write_tables`."""
        self._labels: dict[str, PairLabels] = {}
        used, apart = set(), []
        for complex_ in _complexes(source):
            self._labels[complex_.name] = complex_.labels
            first, second = complex_.files
            protein = SourceProtein(
                complex_.name,
                first,
                complex_.split,
                cluster=complex_.cluster,
                read=lambda files=complex_.files, name=complex_.name: separated(*map(load_structure, files), name),
                content=first.read_bytes() + second.read_bytes(),
            )
            used |= {complex_.cluster} if complex_.split == "train" else set()
            apart += [protein] if complex_.split == "test" and complex_.cluster not in used else []
            yield protein
        for protein in apart:
            name = f"{protein.id}_no_homolog"
            self._labels[name] = self._labels[protein.id]
            yield replace(protein, id=name, split="test_no_homolog")

    def write_tables(self, source: SourceFolder, folder: Path, structures: Mapping[str, Path]) -> Sequence[str]:
        """Write the labeled residues, and the pairs in contact."""
        columns = {name: [] for name in ("file", "chain", "res_id", "ins_code", "group")}
        contacts = {name: [] for name in ("file", "first", "second")}
        for name, labels in self._labels.items():
            columns["file"] += [f"{name}.bcif"] * len(labels.group)
            for key in ("chain", "res_id", "ins_code", "group"):
                columns[key] += getattr(labels, key).tolist()
            contacts["file"] += [f"{name}.bcif"] * labels.positive.shape[1]
            for key, values in zip(("first", "second"), labels.positive, strict=True):
                contacts[key] += values.tolist()
        pq.write_table(pa.table(columns), folder / PAIR_RESIDUES, compression="zstd")
        pq.write_table(pa.table(contacts), folder / PAIR_CONTACTS, compression="zstd")
        return PAIR_RESIDUES, PAIR_CONTACTS

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of the pairs of an example."""
        residues, contacts = (table.get(example.path.name) for table in self._tables)
        pairs = np.zeros((0, 2), np.int64) if contacts is None else contacts
        chain, number, code, group = residues
        return PairLabels(chain, number, code, group, pairs.T, name=example.path.name)

    def _labeled(self, task: str) -> None:
        """Return None: every complex has labels."""
        self._task(task)

    @cached_property
    def _tables(self) -> tuple[dict[str, tuple[np.ndarray, ...]], dict[str, np.ndarray]]:
        """Labeled residues and pairs in contact by file."""
        tables = []
        for name in (PAIR_RESIDUES, PAIR_CONTACTS):
            read = pq.read_table(self.folder / name)
            table = {key: read[key].to_numpy(zero_copy_only=False) for key in read.column_names}
            files = table.pop("file").astype(str)
            starts = np.flatnonzero(np.r_[True, files[1:] != files[:-1]])
            ends = [*starts[1:].tolist(), len(files)]
            tables.append({str(files[a]): (table, a, b) for a, b in zip(starts.tolist(), ends, strict=True)})
        keys = ("chain", "res_id", "ins_code", "group")
        residues = {
            file: tuple(t[key][a:b].astype(str if key in ("chain", "ins_code") else np.int64) for key in keys)
            for file, (t, a, b) in tables[0].items()
        }
        contacts = {file: np.stack([t["first"][a:b], t["second"][a:b]], 1) for file, (t, a, b) in tables[1].items()}
        return residues, contacts


def _complexes(source: SourceFolder) -> Iterator[_Complex]:
    archive = "benchmark5.5.tar.xz"
    root = source.folder_or_archive("data/benchmark5.5", archive)
    clusters = {row["complex"]: row["cluster"] for row in read_tsv(INTERFACE_FOLDER / "clusters.tsv")}
    for split in SPLITS:
        for name in (root / "cv" / "cv_0" / f"{split}.txt").read_text(encoding="utf-8").split():
            files = {f: root / "structures" / f"{name}_{f}.pdb" for f in ("r_u", "l_u", "r_b", "l_b")}
            parts = {key: clean(load_structure(path)) for key, path in files.items()}
            unbound, bound = (tuple(parts[f"{side}_{state}"] for side in SIDES) for state in "ub")
            yield _Complex(name, split, clusters[name], (files["r_u"], files["l_u"]), pair_labels(unbound, bound, name))


def pair_labels(unbound: tuple[Residues, Residues], bound: tuple[Residues, Residues], name: str) -> PairLabels:
    """Return the labels of pairs of residues of two unbound partners that have counterparts in the complex."""
    rows = [counterparts(free, part) for free, part in zip(unbound, bound, strict=True)]
    known = [np.flatnonzero(known_rows >= 0) for known_rows in rows]
    near = bound_contacts(*bound)  # (N_r, N_l) bool
    first, second = np.nonzero(near[rows[0][known[0]]][:, rows[1][known[1]]])
    keys = []
    for side, free, known_rows in zip(SIDES, unbound, known, strict=True):
        keys.append(
            (np.char.add(side, free.chain[known_rows].astype(str)), free.res_id[known_rows], free.ins_code[known_rows])
        )
    chain, number, code = (np.concatenate(column) for column in zip(*keys, strict=True))
    group = np.repeat([0, 1], [len(known_rows) for known_rows in known])
    return PairLabels(chain, number, code, group, np.stack([first, second + len(known[0])]), name=name)


def bound_contacts(first: Residues, second: Residues) -> np.ndarray:
    """Return the residues of two partners with heavy atoms within 5 Å, ``(N1, N2)`` bool."""
    i, j = close_pairs_between(first.atom_pos, second.atom_pos, CUTOFF)
    near = np.zeros((len(first), len(second)), bool)
    near[first.atom_residue[i], second.atom_residue[j]] = True
    return near


def separated(receptor: Structure, ligand: Structure, name: str) -> Structure:
    """Return both partners in one structure, the ligand rotated at random and moved at least 60 Å away.

    Parameters
    ----------
    receptor, ligand : Structure
    name : str
        Name of the result, which is also the seed of the rotation and the direction.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    partners = [structure.atoms.copy() for structure in (receptor, ligand)]
    for side, atoms in zip(SIDES, partners, strict=True):
        atoms.chain_id = np.char.add(side, atoms.chain_id.astype(str))
        atoms.coord = (atoms.coord - atoms.coord.mean(axis=0)).astype(np.float32)
    size = sum(float(np.linalg.norm(atoms.coord, axis=1).max()) for atoms in partners)
    direction = rng.normal(size=3)
    rotation = Rotation.from_quat(rng.normal(size=4)).as_matrix()
    step = (size + GAP) * direction / np.linalg.norm(direction)
    partners[1].coord = (partners[1].coord @ rotation.T + step).astype(np.float32)
    return replace(receptor, name=name, atoms=concatenate(partners))
