"""Dataset ``dna_site``: DNA-binding residues of GraphSite, DNA_Train_573 and DNA_Test_129."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from protgraph_plugins.published import (
    PreparedDataset,
    SourceFolder,
    SourceProtein,
    hold_out_clusters,
    is_site_archive,
    read_site_archive,
    read_tsv,
)

from protgraph.errors import DatasetError

__all__ = ["DnaSite"]
ENTRY_POINTS = {"protgraph.datasets": {"dna_site": "DnaSite"}}

FOLDER = Path(__file__).resolve().parent
SETS = {"DNA_Train_573.fa": "train", "DNA_Test_129.fa": "test"}
HELD_OUT = 0.15  # of the training proteins, for validation


class DnaSite(PreparedDataset):
    """DNA-binding residues on AlphaFold 2 models of single chains.

    The source is the repository GraphSite (``Dataset/pdb/*.pdb`` and ``Dataset/*.fa``), or a folder with the layout of
    :func:`~protgraph_plugins.published.read_site_archive`.
    """

    card_path = FOLDER / "dataset.toml"

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the proteins; validation is cut from training by sequence cluster."""
        if is_site_archive(source):
            proteins = list(read_site_archive(source, {"dna_site": "label"}))
        else:
            proteins = _read_repository(source)
        train = [protein for protein in proteins if protein.split == "train"]
        held = hold_out_clusters([protein.cluster for protein in train], HELD_OUT)
        val = {protein.id for protein, is_held in zip(train, held, strict=True) if is_held}
        for protein in proteins:
            yield replace(protein, split="val") if protein.id in val else protein


def _read_repository(source: SourceFolder) -> list[SourceProtein]:
    """Return the proteins of the repository that have a model; clusters are those of ``clusters.tsv``."""
    clusters = {row["id"]: row["cluster30"] for row in read_tsv(FOLDER / "clusters.tsv")}
    proteins = []
    for name, split in SETS.items():
        lines = source.path(f"Dataset/{name}").read_text(encoding="utf-8").split()
        for header, sequence, labels in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            example = header.removeprefix(">")
            if len(sequence) != len(labels):
                raise DatasetError(f"{name}: {example} has {len(sequence)} residues and {len(labels)} labels.")
            if example not in clusters:  # it has no model
                continue
            keys = np.full(len(labels), "A"), np.arange(1, len(labels) + 1), np.full(len(labels), "")
            values = {"dna_site": np.array([float(label) for label in labels])}
            path = source.path(f"Dataset/pdb/{example}.pdb")
            proteins.append(SourceProtein(example, path, split, ("A",), clusters[example], keys, values))
    return proteins
