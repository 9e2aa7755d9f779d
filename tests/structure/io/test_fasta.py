"""FASTA files: unusual ones are read and counted, or raise with their position."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from protgraph.errors import EmptyStructureError, SelectionError, StructureFileError
from protgraph.structure import ALPHABET, LossReport, clean, load_fasta, load_structure
from protgraph.structure.io.fasta import read_fasta
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sniff import is_fasta, read_file
from protgraph.structure.io.sources import is_protein_file, proteins_of


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "made.fasta"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_sequence_becomes_residues_without_coordinates(write):
    [protein] = load_fasta(write(">first of all\nMKTAYIAK\nQRQISFVK\n"))
    assert protein.name == "first"
    assert protein.sequence == "MKTAYIAKQRQISFVK"
    assert protein.ids[0] == "A:1"
    assert protein.ids[-1] == "A:16"
    assert protein.res_name[:3].tolist() == ["MET", "LYS", "THR"]
    assert protein.seq_pos.tolist() == list(range(16))
    assert not protein.has_coordinates
    assert np.isnan(protein.pos).all()
    assert np.isnan(protein.backbone).all()
    assert not protein.backbone_mask.any()
    assert len(protein.atom_pos) == len(protein.atom_name) == len(protein.atom_residue) == 0
    assert not protein.b_factor.any()
    assert protein.report == LossReport()


def test_residues_equal_those_of_a_structure_without_coordinates(structures_dir, write):
    structure = clean(load_structure(structures_dir / "1crn.bcif")).hide({"coordinates"})
    [protein] = load_fasta(write(f">{structure.name}\n{structure.sequence}\n"))
    for name in ("pos", "backbone", "aatype", "b_factor", "atom_pos", "atom_name", "atom_element", "atom_residue"):
        ours, theirs = getattr(protein, name), getattr(structure, name)
        assert ours.dtype.kind == theirs.dtype.kind
        np.testing.assert_array_equal(ours, theirs)
    assert protein.pos.dtype == structure.pos.dtype


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system_and_blank_lines_are_accepted(write, end):
    text = end.join(["", ">a", "MKT", "", " AY I ", ">b", "GG"])
    assert [p.sequence for p in load_fasta(write(text))] == ["MKTAYI", "GG"]


def test_a_gzipped_file_and_a_byte_order_mark_are_read(write):
    plain = b"\xef\xbb\xbf>a\nMKT\n"
    for path in (write(plain), write(gzip.compress(plain), "made.fasta.gz"), write(gzip.compress(plain), "odd.name")):
        assert is_fasta(path)
        assert load_fasta(path)[0].sequence == "MKT"


def test_gaps_stops_and_small_letters_are_read_and_counted(write):
    [protein] = load_fasta(write(">a\nmk-T.A*-\n"))
    assert protein.sequence == "MKTA"
    assert protein.res_id.tolist() == [1, 2, 3, 4]
    assert protein.report == LossReport(gap_letters=3, stops=1, lower_case=2)
    assert protein.report.lines() == [
        "3 gaps of the sequence left out",
        "1 stop at the end of the sequence left out",
        "2 lower-case letters read as residues",
    ]


def test_other_iupac_letters_are_read_as_in_structures(write):
    [protein] = load_fasta(write(">a\nBZJXUOU\n"))
    assert protein.sequence == "XXXXCKC"
    assert protein.res_name.tolist() == ["ASX", "GLX", "XLE", "UNK", "SEC", "PYL", "SEC"]
    assert protein.report.modified == {"SEC": 2, "PYL": 1}
    assert protein.report.unknown == {"ASX": 1, "GLX": 1, "XLE": 1, "UNK": 1}


def test_the_whole_alphabet_is_read(write):
    [protein] = load_fasta(write(f">a\n{ALPHABET}\n"))
    assert protein.aatype.tolist() == list(range(21))


@pytest.mark.parametrize(
    ("header", "name", "chain"),
    [
        ("1ubq_A Ubiquitin", "1ubq_A", "A"),
        ("1UBQ:B", "1UBQ:B", "B"),
        ("1UBQ_1|Chain A|UBIQUITIN|Homo sapiens (9606)", "1UBQ_1|Chain", "A"),
        ("4HHB_2|Chains B, D|Hemoglobin", "4HHB_2|Chains", "B"),
        ("7ABC_1|Chain A[auth H]|Antibody", "7ABC_1|Chain", "H"),
        ("B", "B", "B"),
        ("sp|P0CG48|UBC_HUMAN Polyubiquitin-C", "sp|P0CG48|UBC_HUMAN", "A"),
        ("my_protein", "my_protein", "A"),
        ("", "record1", "A"),
    ],
)
def test_names_and_chains_come_from_the_header(write, header, name, chain):
    [protein] = load_fasta(write(f">{header}\nMK\n"))
    assert (protein.name, protein.chain_names) == (name, (chain,))


@pytest.mark.parametrize(
    ("text", "error", "data"),
    [
        (">a\nMK\n>bad one\nM1K\n", StructureFileError, "'bad' .line 3.*2 .* line 4.*'1'"),
        (">a\nMK*T\n", StructureFileError, "'a' .line 1.*line 2.*'.'"),
        (">a\nMK\n>empty\n\n>c\nGG\n", EmptyStructureError, "'empty' .line 3."),
        (">gaps\n--..\n", EmptyStructureError, "'gaps'"),
        (">a x\nMK\n>b\nGG\n>a y\nAA\n", StructureFileError, "'a' .line 5.: line 1"),
        ("MKT\n>a\nMK\n", StructureFileError, "line 1.*'MKT'"),
        ("\n\n", StructureFileError, "made.fasta"),
        (b">a\nMK\n\xff\xfe\n", StructureFileError, "line 3.*UTF-8"),
        (gzip.compress(b">a\nMKT\n", mtime=0)[:-6], StructureFileError, "made.fasta"),
    ],
)
def test_unreadable_files_raise_with_the_position(write, text, error, data):
    with pytest.raises(error, match=f"(?s){data}") as e:
        load_fasta(write(text))
    assert "made.fasta" in str(e.value)


def test_a_missing_file_raises_and_a_broken_record_affects_only_itself(write, tmp_path):
    with pytest.raises(StructureFileError, match="none.fasta"):
        load_fasta(tmp_path / "none.fasta")
    good, bad = read_fasta(write(">a\nMK\n>b\n123\n"))
    assert good.residues().sequence == "MK"
    with pytest.raises(StructureFileError, match="'b'"):
        bad.residues()


def test_one_record_is_selected_by_name(write):
    path = write(">a\nMK\n>b\nGG\n")
    assert [p.sequence for p in load_fasta(path, "b")] == ["GG"]
    with pytest.raises(SelectionError, match="'c'.*'a', 'b'"):
        load_fasta(path, "c")


def test_loading_a_fasta_file_as_a_structure_raises(write):
    with pytest.raises(StructureFileError, match="load_fasta"):
        load_structure(write(">a\nMK\n", "made.pdb"))


def test_proteins_are_structures_or_records_by_content(write, structures_dir):
    path = write(">1abc_A\nMK\n>1abc_B\nGG\n", "odd.txt")
    file = read_file(path)
    proteins = [(p.label, p.read().sequence) for p in proteins_of(file, ReadOptions())]
    assert proteins == [(f"{path}#1abc_A", "MK"), (f"{path}#1abc_B", "GG")]
    assert [p.label for p in proteins_of(file, ReadOptions(chains=["B"]))] == [f"{path}#1abc_B"]
    with pytest.raises(SelectionError, match="'C'"):
        proteins_of(file, ReadOptions(chains=["C"]))
    [one] = proteins_of(read_file(structures_dir / "1crn.bcif"), ReadOptions())
    assert one.label == str(structures_dir / "1crn.bcif")
    assert one.read().has_coordinates
    assert is_fasta(path) and is_fasta(file)
    assert not any(map(is_fasta, (structures_dir / "1crn.bcif", structures_dir, structures_dir / "absent.fasta")))
    assert all(map(is_protein_file, ("a.fasta", "a.FA.gz", "a.pdb", "x/a.cif.gz")))
    assert not is_protein_file("a.csv")
