"""Dataset ``scop_fold``: SCOPe folds of single-domain chains from five collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray
from protgraph_datasets.ligysis.chain_archive import ChainArchive

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.structure import LossReport, Structure
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER

__all__ = ["ScopFold", "read_backbones"]
ENTRY_POINTS = {"protgraph.datasets": {"scop_fold": "ScopFold"}}

ARCHIVES = {
    "eigenfold": ("quality/natives.tar.xz", "natives"),
    "skempi_v2": ("mutations/skempi_v2/structures.tar.xz", "structures"),
}
BACKBONE = ("N", "CA", "C")
RESIDUE_NAMES = dict(zip(ALPHABET, THREE_LETTER, strict=True))


class ScopFold(PreparedDataset):
    """Fold and class of chains that are one SCOPe domain; no superfamily is in two splits.

    The source is a folder with ``folds/domains.tsv.gz`` and the five collections that its column ``file`` names.
    """

    card_path = Path(__file__).with_name("dataset.toml")

    def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
        """Yield the chains of ``split_fold`` with the numbers of their fold and class on the card."""
        folds, classes = (self.card.tasks[task].target.names for task in ("scop_fold", "scop_class"))
        number = {name: float(i) for names in (folds, classes) for i, name in enumerate(names)}
        archives = {
            "ligysis": _by_name(ChainArchive(source.path("benchmark/ligysis_human_chains/lbs_heavy.npz")).chains()),
            "cgdms": _by_name(read_backbones(source.path("embedded/cgdms_chains.npz"))),
        }
        for row in read_tsv(source.path("folds/domains.tsv.gz")):
            if not row["split_fold"]:
                continue
            path, chains, read, content = _located(source, archives, row)
            yield SourceProtein(
                f"{row['pool']}_{row['pdb']}_{row['chain']}",
                path,
                row["split_fold"],
                chains,
                row["superfamily"],
                protein_labels={"scop_fold": number[row["fold"]], "scop_class": number[row["class"]]},
                read=read,
                content=content,
            )


_Chain = tuple[Callable[[], Structure], bytes]


def read_backbones(path: Path) -> Iterator[tuple[str, Callable[[], Structure], bytes]]:
    """Yield name, reader and bytes of the chains of ``cgdms_chains.npz``.

    Arrays: ``ids`` (``ENTRY_chain``) and ``length`` per chain; ``seq`` (character code) and ``xyz`` (N, CA, C, and the
    center of the side chain, which is left out; int16, 0.01 Å) per residue. Residues are numbered from 1.
    """
    with np.load(path, allow_pickle=False) as file:
        ids, ends, letters, xyz = file["ids"], np.cumsum(file["length"], dtype=np.int64), file["seq"], file["xyz"]
    first = 0
    for name, end in zip(ids.tolist(), ends.tolist(), strict=True):
        sequence, positions = "".join(map(chr, letters[first:end])), xyz[first:end, :3] / np.float32(100)
        yield name, partial(_backbone, name, sequence, positions, path), sequence.encode() + positions.tobytes()
        first = end


def _backbone(name: str, sequence: str, positions: np.ndarray, path: Path) -> Structure:
    atoms = AtomArray(len(BACKBONE) * len(sequence))
    atoms.coord = positions.reshape(-1, 3)
    atoms.chain_id[:] = name.split("_")[1]
    atoms.res_id = np.repeat(np.arange(1, len(sequence) + 1), len(BACKBONE))
    atoms.res_name = np.repeat([RESIDUE_NAMES[letter] for letter in sequence], len(BACKBONE))
    atoms.atom_name = np.tile(BACKBONE, len(sequence))
    atoms.element = np.array([atom[0] for atom in atoms.atom_name.tolist()])
    atoms.set_annotation("b_factor", np.zeros(len(atoms), np.float32))
    atoms.set_annotation("occupancy", np.ones(len(atoms), np.float32))
    return Structure(name, atoms, str(path), "npz", LossReport())


def _by_name(chains: Iterator[tuple[str, Callable[[], Structure], bytes]]) -> dict[str, _Chain]:
    return {name: (read, content) for name, read, content in chains}


def _located(
    source: SourceFolder, archives: dict[str, dict[str, _Chain]], row: dict[str, str]
) -> tuple[Path, tuple[str, ...] | None, Callable[[], Structure] | None, bytes | None]:
    """Return file, chains, reader and bytes of a row of the table."""
    file, _, inside = row["file"].partition(":")
    if row["pool"] in archives:
        return source.path(file), None, *archives[row["pool"]][inside]
    if row["pool"] in ARCHIVES:
        name, folder = ARCHIVES[row["pool"]]
        return source.unpacked(name) / folder / inside.split(":")[0], (row["chain"],), None, None
    return source.path(file), (row["chain"],), None, None
