"""Fingerprints: checksum of a file and digests of its readable sequences."""

from __future__ import annotations

import hashlib
import shutil

from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.structure import clean, load_structure


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_chain_of_a_structure_has_the_digest_of_its_sequence(structures_dir):
    path = structures_dir / "2d7t.bcif"
    residues = clean(load_structure(path))
    content = fingerprint_file(path)
    assert content.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert content.sequences == {name: sha(residues.chains((name,)).sequence) for name in residues.chain_names}
    assert len(content.sequences) == 2
    assert content.of(("H",)).sequences == {"H": content.sequences["H"]}
    assert content.of(None) is content


def test_equal_sequences_in_different_formats_have_equal_digests(structures_dir, tmp_path):
    sequence = clean(load_structure(structures_dir / "1ubq.bcif")).sequence
    (tmp_path / "made.fa").write_text(f">one\n{sequence}\n")
    assert (
        fingerprint_file(tmp_path / "made.fa").known
        == fingerprint_file(structures_dir / "1ubq.bcif").known
        == {sha(sequence)}
    )


def test_sequences_of_unknown_types_only_have_no_digest(tmp_path):
    (tmp_path / "made.fasta").write_text(">a\nMKT\n>b\nXXXX\n>c\nM1T\n>d\n\n")
    content = fingerprint_file(tmp_path / "made.fasta")
    assert content.sequences == {"a": sha("MKT"), "b": ""}  # c and d cannot be read
    assert content.known == {sha("MKT")}


def test_unreadable_files_have_a_checksum_and_no_sequences(structures_dir, tmp_path):
    (tmp_path / "text.cif").write_text("no structure")
    (tmp_path / "twice.fa").write_text(">a\nMK\n>a\nMK\n")
    shutil.copy(structures_dir / "1ubq.bcif", tmp_path / "cut.bcif")
    with (tmp_path / "cut.bcif").open("r+b") as file:
        file.truncate(2000)
    for name in ("text.cif", "twice.fa", "cut.bcif"):
        content = fingerprint_file(tmp_path / name)
        assert content.digest and not content.sequences, name
    assert fingerprint_file(tmp_path / "missing.cif") == Fingerprint("")
