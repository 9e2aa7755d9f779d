"""Dataset ``ligysis``: representative human chains of LIGYSIS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, hold_out_clusters, read_tsv

from protgraph.errors import DatasetError
from protgraph.structure import Structure, clean, load_structure

__all__ = ["Ligysis", "read_chain"]
ENTRY_POINTS = {"protgraph.datasets": {"ligysis": "Ligysis"}}

FOLDER = Path(__file__).resolve().parent
HELD_OUT = 0.1  # of the chains, for test and for validation each
STATES = {"H": 0.0, "E": 1.0, "C": 2.0, "-": np.nan}


class Ligysis(PreparedDataset):
    """Human chains with clusters of homologs, for tasks that compute their labels and for secondary structure.

    The source is the repository LBS-comparison: ``DATA/trans_rep_chains/*.trans.pdb``.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains; splits are those of ``clusters.tsv``."""
        rows = read_tsv(FOLDER / "clusters.tsv")
        splits = _splits(rows)
        states = {row["id"]: row["states"] for row in read_tsv(FOLDER / "secondary_structure.tsv.gz")}
        for row, split in zip(rows, splits, strict=True):
            path = source.path(f"DATA/trans_rep_chains/{row['id']}.trans.pdb")
            chain = SourceProtein(
                row["id"], path, split, cluster=row["cluster"], read=partial(read_chain, path, row["id"])
            )
            yield _labeled(chain, states.get(row["id"]))


def _splits(rows: list[dict[str, str]]) -> list[str]:
    """Return the split of each chain: relatives of TS50 and the first clusters are ``test``, the next ones ``val``."""
    clusters = np.array([row["cluster"] for row in rows])
    is_test = np.array([row["ts50"] == "1" for row in rows])
    not_test = np.flatnonzero(~is_test)
    is_test[not_test] = hold_out_clusters(clusters[not_test].tolist(), HELD_OUT - is_test.mean())
    not_test = np.flatnonzero(~is_test)
    is_val = hold_out_clusters(clusters[not_test].tolist(), HELD_OUT)
    splits = np.where(is_test, "test", "train")
    splits[not_test[is_val]] = "val"
    return splits.tolist()


def read_chain(path: Path, name: str) -> Structure:
    """Return the chain of a file under its author chain id, that of the name; files have ``label_asym_id``."""
    structure = load_structure(path)
    atoms = structure.atoms.copy()
    atoms.chain_id = np.full(len(atoms), name.split("_")[1])
    return replace(structure, name=name, atoms=atoms)


def _labeled(chain: SourceProtein, states: str | None) -> SourceProtein:
    """Return a chain with the states of its residues in the order of the graph, if they are known."""
    if states is None:
        return chain
    residues = clean(chain.structure())
    if len(residues) != len(states):
        raise DatasetError(f"{chain.id} has {len(residues)} residues and {len(states)} states in the package's table.")
    labels = {"secondary_structure": np.array([STATES[state] for state in states])}
    return replace(chain, residues=(residues.chain, residues.res_id, residues.ins_code), residue_labels=labels)
