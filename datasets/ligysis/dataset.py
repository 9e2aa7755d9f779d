"""Dataset ``ligysis``: representative human chains of LIGYSIS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from protgraph_datasets.ligysis.chain_archive import ChainArchive

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import hold_out_clusters, read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.errors import DatasetError
from protgraph.structure import Structure, clean, load_structure

__all__ = ["Ligysis"]
ENTRY_POINTS = {"protgraph.datasets": {"ligysis": "Ligysis"}}

FOLDER = Path(__file__).resolve().parent
ARCHIVE = "lbs_heavy.npz"
HELD_OUT = 0.1  # of the chains, for test and for validation each
STATES = {"H": 0.0, "E": 1.0, "C": 2.0, "-": np.nan}


class Ligysis(PreparedDataset):
    """Human chains with clusters of homologs, for tasks that compute their labels and for secondary structure.

    The source is the repository LBS-comparison (``DATA/trans_rep_chains/*.trans.pdb``), or a folder with the archive
    ``lbs_heavy.npz``, whose coordinates are rounded to 0.01 Å and centered.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of either layout; splits are those of ``clusters.tsv``."""
        rows = read_tsv(FOLDER / "clusters.tsv")
        splits = _splits(rows)
        states = {row["id"]: row["states"] for row in read_tsv(FOLDER / "secondary_structure.tsv.gz")}
        chains = _read_repository(source, rows) if source.has("DATA") else _read_archive(source, rows)
        for row, chain, split in zip(rows, chains, splits, strict=True):
            yield _labeled(chain, row["cluster"], split, states.get(row["id"]))


def _splits(rows: list[dict[str, str]]) -> list[str]:
    """Return the split of each chain: relatives of TS50 and the first clusters are ``test``, the next ones ``val``."""
    clusters = np.array([row["cluster"] for row in rows])
    is_test = np.array([row["ts50"] == "1" for row in rows])
    rest = np.flatnonzero(~is_test)
    is_test[rest] = hold_out_clusters(clusters[rest].tolist(), HELD_OUT - is_test.mean())
    rest = np.flatnonzero(~is_test)
    is_val = hold_out_clusters(clusters[rest].tolist(), HELD_OUT)
    splits = np.where(is_test, "test", "train")
    splits[rest[is_val]] = "val"
    return splits.tolist()


def _read_repository(source: SourceFolder, rows: list[dict[str, str]]) -> Iterator[SourceProtein]:
    for row in rows:
        path = source.path(f"DATA/trans_rep_chains/{row['id']}.trans.pdb")
        yield SourceProtein(row["id"], path, "", read=partial(_read_chain, path, row["id"]), content=path.read_bytes())


def _read_chain(path: Path, name: str) -> Structure:
    """Return the chain of a file under its author chain id, that of the name; files have ``label_asym_id``."""
    structure = load_structure(path)
    atoms = structure.atoms.copy()
    atoms.chain_id = np.full(len(atoms), name.split("_")[1])
    return replace(structure, name=name, atoms=atoms)


def _read_archive(source: SourceFolder, rows: list[dict[str, str]]) -> Iterator[SourceProtein]:
    path = source.path(ARCHIVE)
    for row, (name, read, content) in zip(rows, ChainArchive(path).chains(), strict=True):
        if name != row["id"]:
            raise DatasetError(f"{path} has chain {name!r} in place of {row['id']!r}. Copy it again.")
        yield SourceProtein(name, path, "", read=read, content=content)


def _labeled(chain: SourceProtein, cluster: str, split: str, states: str | None) -> SourceProtein:
    """Return a chain with its split and, if they are known, the states of its residues in the order of the graph."""
    chain = replace(chain, split=split, cluster=cluster)
    if states is None:
        return chain
    residues = clean(chain.structure())
    if len(residues) != len(states):
        raise DatasetError(f"{chain.id} has {len(residues)} residues and {len(states)} states in the package's table.")
    labels = {"secondary_structure": np.array([STATES[state] for state in states])}
    return replace(chain, residues=(residues.chain, residues.res_id, residues.ins_code), residue_labels=labels)
