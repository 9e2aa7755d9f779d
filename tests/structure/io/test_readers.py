"""One entry gives one structure in every format; broken files raise typed errors."""

from __future__ import annotations

import gzip
import shutil
import warnings

import numpy as np
import pytest

from protgraph.errors import EmptyStructureError, SelectionError, StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.io.sniff import detect_format

ENTRIES = ("1aki", "1dix", "1igy", "1k6p", "1l2y", "1o1z", "2d0f", "3o5r", "3wip", "5h73", "5zng")  # 4p5j is RNA
FORMATS = {"pdb": "pdb", "cif": "mmcif", "bcif": "bcif"}


@pytest.mark.parametrize("entry", ENTRIES)
def test_three_formats_give_the_same_residues_bit_for_bit(shared_data, assert_same, entry):
    result = [clean(load_structure(shared_data / "formats" / f"{entry}.{suffix}")) for suffix in FORMATS]
    assert_same(result[0], result[1])
    assert_same(result[0], result[2])


def test_three_formats_give_the_same_assembly(shared_data, assert_same):
    result = [clean(load_structure(shared_data / "formats" / f"3wip.{s}", assembly="1")) for s in FORMATS]
    assert result[0].chain_names == ("A", "B", "C", "D", "E")
    assert_same(result[0], result[1])
    assert_same(result[0], result[2])


def test_other_models_are_the_same_in_three_formats(shared_data, assert_same):
    result = [clean(load_structure(shared_data / "formats" / f"1l2y.{suffix}", model_number=38)) for suffix in FORMATS]
    assert_same(result[0], result[1])
    assert_same(result[0], result[2])
    assert not np.array_equal(result[0].pos, clean(load_structure(shared_data / "formats" / "1l2y.pdb")).pos)


@pytest.mark.parametrize("suffix", FORMATS)
def test_format_is_detected_from_content_with_or_without_gzip(shared_data, tmp_path, assert_same, suffix):
    source = shared_data / "formats" / f"1l2y.{suffix}"
    (tmp_path / "1l2y.txt").write_bytes(gzip.compress(source.read_bytes()))
    shutil.copy(source, tmp_path / "1l2y.gz")
    for path in (tmp_path / "1l2y.txt", tmp_path / "1l2y.gz"):
        structure = load_structure(path)
        assert structure.format == FORMATS[suffix] and structure.source == str(path)
        assert_same(clean(structure), clean(load_structure(source)))


@pytest.mark.parametrize(
    ("content", "data"),
    [
        (b"", "x.cif"),
        (b" \n\n", "x.cif"),
        (b"Dear colleague,\nplease find enclosed", "Dear colleague"),
        (b"\x00\x01\x02", "x00"),
        (b"<?xml version='1.0'?>", "xml version"),
        (b"\x87\xa8dataBlocks", "bcif"),
        (b"\x87\xabmmtfVersion", "MMTF"),
        (b"\x1f\x8b\x08\x00", "gzip"),
    ],
)
def test_content_that_is_not_a_structure_raises(tmp_path, content, data):
    (tmp_path / "x.cif").write_bytes(content)
    with pytest.raises(StructureFileError, match=data):
        load_structure(tmp_path / "x.cif")


def test_missing_files_and_folders_raise(tmp_path):
    with pytest.raises(StructureFileError, match="absent.pdb"):
        load_structure(tmp_path / "absent.pdb")
    with pytest.raises(StructureFileError, match=tmp_path.name):
        load_structure(tmp_path)


def test_truncated_gzip_raises(shared_data, tmp_path):
    packed = gzip.compress((shared_data / "formats" / "1l2y.pdb").read_bytes())
    (tmp_path / "cut.pdb.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(StructureFileError, match="gzip"):
        load_structure(tmp_path / "cut.pdb.gz")


def test_a_cif_without_coordinates_raises(tmp_path):
    (tmp_path / "x.cif").write_text("data_x\n_cell.length_a 10\n")
    with pytest.raises(EmptyStructureError, match="atom_site"):
        load_structure(tmp_path / "x.cif")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("model", [0, 39, -1])
def test_an_unknown_model_raises_with_the_number_of_models(shared_data, suffix, model):
    with pytest.raises(SelectionError, match=rf"{model}\b.*\b38"):
        load_structure(shared_data / "formats" / f"1l2y.{suffix}", model_number=model)


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_unknown_assembly_raises_with_the_available_ones(shared_data, suffix):
    with pytest.raises(SelectionError, match="'9'.*'1', '2'"):
        load_structure(shared_data / "formats" / f"3wip.{suffix}", assembly="9")


def test_a_file_without_assemblies_raises(structures_dir):
    with pytest.raises(SelectionError, match="1crn.bcif.*'1'"):
        load_structure(structures_dir / "1crn.bcif", assembly="1")


def test_copies_of_a_chain_get_distinct_chain_ids(shared_data):
    path = shared_data / "robustness" / "missing__1BHL.pdb"
    one, two = clean(load_structure(path)), clean(load_structure(path, assembly="1"))
    assert two.chain_names == ("A", "A-2") and len(two) == 2 * len(one)
    first, second = two.chains(["A"]), two.chains(["A-2"])
    np.testing.assert_array_equal(first.pos, one.pos)
    np.testing.assert_array_equal(first.res_id, second.res_id)
    between = [np.linalg.norm(r.pos[:, None] - r.pos, axis=-1) for r in (first, second)]
    np.testing.assert_allclose(*between, atol=1e-3)  # a copy is a rigid image
    assert np.abs(first.pos - second.pos).max() > 5


def test_copies_are_distinguished_when_serial_numbers_repeat(shared_data, tmp_path, assert_same):
    whole = shared_data / "robustness" / "missing__1BHL.pdb"
    lines = whole.read_text().splitlines(keepends=True)
    other = tmp_path / whole.name
    other.write_text("".join(f"{x[:6]}{1:5}{x[11:]}" if x.startswith(("ATOM", "HETATM")) else x for x in lines))
    assert_same(*(clean(load_structure(path, assembly="1")) for path in (whole, other)))


def test_inferred_elements_are_counted(write_pdb, pdb_lines):
    path = write_pdb([line[:66] for line in pdb_lines.residue("GLY", "A", 1, 0.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structure = load_structure(path)
    assert structure.report.inferred_elements == 4 and structure.report.warnings == ()
    assert structure.atoms.element.tolist() == ["N", "C", "C", "O"]


def test_a_minimal_cif_needs_no_optional_columns(tmp_path):
    names = ("id", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z")
    rows = ["1 N GLY A 1 0 0 0", "2 CA GLY A 1 1.5 0 0", "3 C GLY A 1 2.5 0 0", "4 O GLY A 1 2.5 1 0"]
    head = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
    (tmp_path / "x.cif").write_text(head + "\n".join(rows) + "\n")
    residues = clean(load_structure(tmp_path / "x.cif"))
    assert residues.ids == ["A:1"] and residues.backbone_mask.all() and residues.b_factor.tolist() == [0.0]


def test_atoms_of_several_data_blocks_are_reported(tmp_path, shared_data):
    text = (shared_data / "formats" / "1l2y.cif").read_text()
    (tmp_path / "two.cif").write_text(text + "\n" + text.replace("data_1L2Y", "data_again"))
    assert "'again'" in load_structure(tmp_path / "two.cif").report.warnings[0]


def test_detect_format_and_read_atoms_agree(shared_data):
    for suffix, name in FORMATS.items():
        path = shared_data / "formats" / f"1aki.{suffix}"
        assert detect_format(path.read_bytes()) == name == read_atoms(path).format
