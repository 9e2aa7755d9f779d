"""A dataset of three proteins with a table of their labels, for tests of prepared datasets."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from biotite.structure import AtomArray
from biotite.structure.io import pdbx
from protgraph_plugins.published import PreparedDataset, SourceFolder, SourceProtein, read_repository_labels, write_tsv

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
            table = source.path("labels.tsv")
            for number, protein in enumerate(read_repository_labels(source, table, {"site": "label"})):
                if number == kill_after:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield protein

    return TinySite(folder=str(folder))


def write_source(folder: Path, structures: Path, *, only_protein: bool = False) -> dict[str, tuple[int, int, int]]:
    """Write files and table; return split → residues, labels and positives. ``only_protein`` leaves the rest out."""
    folder.mkdir(parents=True)
    counts, rows = {}, [("id", "path", "split", "cluster", "chains", "label")]
    for name, (split, chains) in ENTRIES.items():
        structure = load_structure(_entry(structures, name))
        residues = clean(structure, chains=list(chains))
        labels = "".join("-" if i % 7 == 3 else str(int(i % 5 == 0)) for i in range(len(residues)))
        rows.append((name, f"{name}.bcif", split, name, ",".join(chains), labels))
        counts[split] = len(residues), len(labels) - labels.count("-"), labels.count("1")
        atoms = structure.atoms
        content = _bcif(atoms[[c in chains for c in atoms.chain_id]] if only_protein else atoms, only_protein)
        (folder / f"{name}.bcif").write_bytes(content)
    write_tsv(folder / "labels.tsv", rows)
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
