"""paratope_joined: training antibodies that are not like those of validation and test."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from protgraph_plugins.similarity import HomologyRule, find_homologs

import protgraph as pg
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder

ROWS = {  # file → split, split_expanded, cluster, residue 93 of chain H
    "1AAA_1.bcif": ("val", "train", "a", "ALA"),
    "1BBB_1.bcif": ("test", "", "b", "CYS"),
    "1CCC_1.bcif": ("train", "", "c", "ASP"),
    "1DDD_1.bcif": ("", "test", "d", "GLU"),
    "1AAA_2.bcif": ("", "train", "e", "PHE"),  # entry of 1AAA_1
    "1EEE_1.bcif": ("train", "", "b", "GLY"),  # cluster of 1BBB_1
    "1FFF_1.bcif": ("", "val", "f", "CYS"),  # H3 of 1BBB_1
}


def write_source(folder: Path) -> SourceFolder:
    """Write the three files of a source with the rows above; structures are empty files."""
    columns = ("file", "split", "split_expanded", "cluster90")
    lines = [(name, *row[:3]) for name, row in ROWS.items()]
    (folder / "splits.tsv").write_text("\n".join("\t".join(line) for line in [columns, *lines]) + "\n")
    columns = ("file", "chain", "res_id", "ins_code", "res_name", "label", "cdr_plus2")
    lines = [
        (name, chain, number, "", kind, "0", "1")
        for name, row in ROWS.items()
        for chain, number, kind in (("H", "92", "CYS"), ("H", "93", row[3]), ("L", "93", "SER"))
    ]
    with gzip.open(folder / "labels.tsv.gz", "wt") as file:
        file.write("\n".join("\t".join(line) for line in [columns, *lines]) + "\n")
    with tarfile.open(folder / "structures.tar.xz", "w:xz") as tar:
        for name in ROWS:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    return SourceFolder(folder, folder / "scratch")


def test_antibodies_like_those_of_validation_and_test_are_not_trained_on(tmp_path):
    found = {p.id: p.split for p in pg.datasets.create("paratope_joined").convert(write_source(tmp_path))}
    assert found == {"1AAA_1": "val", "1BBB_1": "test", "1CCC_1": "train", "1DDD_1": "train"}


@pytest.mark.slow
def test_no_training_antibody_is_95_percent_identical_to_one_of_validation_or_test(shared_data, tmp_path):
    source = shared_data / "sites" / "paratope"
    dataset = pg.datasets.create("paratope_joined")
    proteins = list(dataset.convert(SourceFolder(source, tmp_path)))
    rows = {Path(row["file"]).stem: row for row in read_tsv(source / "splits.tsv")}
    sequences = [rows[p.id]["sequence_H"] + rows[p.id]["sequence_L"] for p in proteins]
    groups = [int(p.split == "train") for p in proteins]
    assert groups.count(1) == dataset.card.splits["train"].proteins == 255
    assert len(find_homologs(sequences, HomologyRule(identity=0.95), groups=groups)) == 0
    assert len(find_homologs(sequences, HomologyRule(identity=0.5), groups=groups)) > 0
