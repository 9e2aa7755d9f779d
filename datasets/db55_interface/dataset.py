"""Dataset ``db55_interface``: unbound partners of the protein–protein docking benchmark 5.5."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from protgraph_datasets.db55_interface.interface_labels import counterparts, read_bound
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_tsv

from protgraph.structure import clean, load_structure

__all__ = ["Db55Interface"]
ENTRY_POINTS = {"protgraph.datasets": {"db55_interface": "Db55Interface"}}

FOLDER = Path(__file__).resolve().parent
SPLITS = ("train", "val", "test")
SIDES = ("r", "l")  # receptor and ligand in the names of the files


class Db55Interface(PreparedDataset):
    """Interface residues of unbound proteins, labeled from the bound complex; each partner is an example.

    The partners of complexes of ``test`` whose cluster is not in training are also in ``test_no_homolog``.
    The source is the repository equidock_public (``data/benchmark5.5``), or a folder with ``benchmark5.5.tar.xz``.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the two partners of each complex in the order of the splits of the source."""
        archive = "benchmark5.5.tar.xz"
        root = source.folder_or_archive("data/benchmark5.5", archive)
        clusters = {row["complex"]: row["cluster"] for row in read_tsv(FOLDER / "clusters.tsv")}
        used, apart = set(), []
        for split in SPLITS:
            for name in (root / "cv" / "cv_0" / f"{split}.txt").read_text(encoding="utf-8").split():
                used |= {clusters[name]} if split == "train" else set()
                for partner in _partners(root / "structures", name, split, clusters[name]):
                    apart += [partner] if split == "test" and clusters[name] not in used else []
                    yield partner
        for partner in apart:
            yield replace(partner, id=f"{partner.id}_no_homolog", split="test_no_homolog")


def _partners(folder: Path, name: str, split: str, cluster: str) -> Iterator[SourceProtein]:
    """Yield the partners of a complex; residues without a counterpart in the complex have unknown labels."""
    files = {side: (folder / f"{name}_{side}_u.pdb", folder / f"{name}_{side}_b.pdb") for side in SIDES}
    bound = read_bound(files["r"][1], files["l"][1])
    for side, partner in zip(SIDES, bound, strict=True):
        path = files[side][0]
        residues = clean(load_structure(path))
        rows = counterparts(residues, partner.residues)
        labels = {"interface": partner.in_contact, "ppi_site": partner.loses_area}
        values = {task: np.where(rows >= 0, label[rows], np.nan) for task, label in labels.items()}
        keys = residues.chain, residues.res_id, residues.ins_code
        yield SourceProtein(f"{name}_{side}", path, split, None, cluster, keys, values)
