"""A dataset of three proteins in the layout of archives and tables, for tests of prepared datasets."""

from __future__ import annotations

import gzip
import io
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

from biotite.structure import AtomArray
from biotite.structure.io import pdbx

from protgraph.data.datasets.prepared_dataset import PreparedDataset
from protgraph.data.datasets.site_tables import read_site_tables
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.structure import clean, load_structure

ENTRIES = {"1crn": ("train", ("A",)), "1ppe": ("val", ("E",)), "2dn2": ("test", ("A", "B"))}
CARD = """
name = "tiny_site"
version = "1"
license = "CC0-1.0"
citation = "none"
description = "Three entries."
weights_note = "none"
[splits]
rule = "given"
{sizes}
{sources}
[tasks.site]
level = "node"
kind = "multilabel"
names = ["site"]
labels = "Every fifth residue."
examples = "All chains."
{counts}
"""


def tiny_dataset(card: Path, folder: Path, *, kill_after: int = -1) -> PreparedDataset:
    """Return the dataset with a card; the process kills itself after some proteins."""

    class TinySite(PreparedDataset):
        card_path = card

        def convert(self, source: SourceFolder) -> Iterator[SourceProtein]:
            for number, protein in enumerate(read_site_tables(source, {"site": "label"})):
                if number == kill_after:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield protein

    return TinySite(folder=str(folder))


def write_source(folder: Path, structures: Path, *, only_protein: bool = False) -> dict[str, tuple[int, int, int]]:
    """Write archive and tables; return split → residues, labels and positives. ``only_protein`` leaves the rest out."""
    folder.mkdir(parents=True)
    counts, rows, splits = {}, ["file chain res_id ins_code label"], ["file split cluster30"]
    with tarfile.open(folder / "structures.tar.xz", "w:xz") as tar:
        for name, (split, chains) in ENTRIES.items():
            structure = load_structure(_entry(structures, name))
            residues = clean(structure, chains=list(chains))
            labels = ["" if i % 7 == 3 else str(int(i % 5 == 0)) for i in range(len(residues))]
            rows += [
                f"{name}.bcif {chain} {number} {code} {label}"
                for chain, number, code, label in zip(
                    residues.chain, residues.res_id, residues.ins_code, labels, strict=True
                )
            ]
            splits.append(f"{name}.bcif {split} {name}")
            counts[split] = len(residues), len(labels) - labels.count(""), labels.count("1")
            atoms = structure.atoms
            content = _bcif(atoms[[c in chains for c in atoms.chain_id]] if only_protein else atoms, only_protein)
            member = tarfile.TarInfo(f"{name}.bcif")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with gzip.open(folder / "labels.tsv.gz", "wt") as file:
        file.write("".join(row.replace(" ", "\t") + "\n" for row in rows))
    (folder / "splits.tsv").write_text("".join(row.replace(" ", "\t") + "\n" for row in splits))
    return counts


def write_card(path: Path, counts: dict[str, tuple[int, int, int]], sources: str = "") -> Path:
    """Write the card with the counts of a source."""
    sizes = [f"{split} = {{ proteins = 1, residues = {n} }}" for split, (n, _, _) in counts.items()]
    rows = [
        f"splits.{split} = {{ proteins = 1, residues = {n}, labeled = {known}, per_class = [{positive}] }}"
        for split, (n, known, positive) in counts.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CARD.format(sizes="\n".join(sizes), counts="\n".join(rows), sources=sources))
    return path


def _entry(structures: Path, name: str) -> Path:
    return structures / f"{name}.bcif"


def _bcif(atoms: AtomArray, only_protein: bool) -> bytes:
    atoms = atoms[~atoms.hetero] if only_protein else atoms
    file, content = pdbx.BinaryCIFFile(), io.BytesIO()
    pdbx.set_structure(file, atoms, data_block="x")
    file.write(content)
    return content.getvalue()
