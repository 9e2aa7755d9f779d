"""BinaryCIF against a full MessagePack decoder, biotite's encoders and biotite's atoms."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.structure.io.bcif import AtomSite, decode_column, unpack_categories
from protgraph.structure.io.readers import read_atoms

# --- categories ---------------------------------------------------------------------------------------------------


def _pack(*categories: dict, first: str = "name") -> bytes:
    order = [{first: c[first], **c} for c in categories]
    return msgpack.packb({"version": "0.3", "dataBlocks": [{"header": "X", "categories": order}], "encoder": "me"})


def test_selected_categories_equal_those_of_a_full_decoder(shared_data):
    content = (shared_data / "formats" / "3wip.bcif").read_bytes()
    full, part = msgpack.unpackb(content, raw=False), unpack_categories(content, ["_atom_site", "_cell"])
    expected = [c for c in full["dataBlocks"][0]["categories"] if c["name"] in ("_atom_site", "_cell")]
    assert part["dataBlocks"][0]["categories"] == expected
    assert {k: v for k, v in part.items() if k != "dataBlocks"} == {k: v for k, v in full.items() if k != "dataBlocks"}


@pytest.mark.parametrize("first", ["name", "columns"])
def test_the_order_of_keys_does_not_matter(first):
    a, b = ({"name": name, "rowCount": 1, "columns": [{"name": "x"}]} for name in ("_a", "_b"))
    file = unpack_categories(_pack(a, b, first=first), ["_b"])
    assert file["dataBlocks"] == [{"header": "X", "categories": [b]}]


@pytest.mark.parametrize("end", [-1, -40, 8])
def test_a_truncated_file_raises(end):
    content = _pack({"name": "_a", "rowCount": 1, "columns": [{"name": "x" * 60}]})
    with pytest.raises(ValueError, match=f"{len(content[:end])} bytes"):
        unpack_categories(content[:end], ["_b"])


def test_bytes_after_the_end_raise():
    content = _pack({"name": "_a", "rowCount": 1, "columns": []})
    with pytest.raises(ValueError, match="3 bytes"):
        unpack_categories(content + b"abc", ["_a"])


# --- encodings ----------------------------------------------------------------------------------------------------

RUNS = np.repeat([7, -3, 70000, 7], [4, 1, 300, 2]).astype(np.int32)
NUMBERS = np.array([0, 1, -1, 126, 127, 128, 254, 255, -127, -128, -129, 40000, -40000, 3], np.int32)
TEXTS = np.array(["CA", "", "N", "CA", "Å", "OXT", "CA"])
FIXED = pdbx.FixedPointEncoding(1000)


@pytest.mark.parametrize(
    ("values", "encodings"),
    [
        (NUMBERS, []),
        (NUMBERS, [pdbx.IntegerPackingEncoding(1)]),
        (NUMBERS, [pdbx.IntegerPackingEncoding(2)]),
        (abs(NUMBERS), [pdbx.IntegerPackingEncoding(1)]),
        (NUMBERS[:3], [pdbx.IntegerPackingEncoding(1)]),
        (RUNS, [pdbx.RunLengthEncoding()]),
        (RUNS, [pdbx.RunLengthEncoding(), pdbx.IntegerPackingEncoding(1)]),
        (RUNS, [pdbx.DeltaEncoding(), pdbx.RunLengthEncoding(), pdbx.IntegerPackingEncoding(2)]),
        (NUMBERS / 1000, [FIXED, pdbx.DeltaEncoding(), pdbx.IntegerPackingEncoding(2)]),
        ((NUMBERS / 1000).astype(np.float32), [pdbx.FixedPointEncoding(1000)]),
        (TEXTS, [pdbx.StringArrayEncoding(data_encoding=[pdbx.IntegerPackingEncoding(1), pdbx.ByteArrayEncoding()])]),
        (np.array(["", ""]), [pdbx.StringArrayEncoding()]),
    ],
)
def test_columns_encoded_by_biotite_decode_to_the_same_values_and_type(values, encodings):
    if values.dtype.kind != "U":
        encodings = [*encodings, pdbx.ByteArrayEncoding()]
    content = pdbx.BinaryCIFData(values, encodings).serialize()
    decoded = decode_column(content["data"], content["encoding"])
    assert np.array_equal(decoded, values)
    assert np.array_equal(decoded, pdbx.BinaryCIFData.deserialize(content).array)
    assert decoded.dtype.kind == values.dtype.kind
    if values.dtype.kind != "i":
        assert decoded.dtype == values.dtype


def test_interval_quantization_equals_its_definition():
    steps = [{"kind": "IntervalQuantization", "min": -1.0, "max": 3.0, "numSteps": 5, "srcType": 33}]
    decoded = decode_column(bytes([0, 1, 4]), [*steps, {"kind": "ByteArray", "type": 4}])
    assert decoded.tolist() == [-1.0, 0.0, 3.0]


BYTES = {"kind": "ByteArray", "type": 1}


@pytest.mark.parametrize(
    ("data", "encodings"),
    [
        (bytes([5, 2]), [{"kind": "RunLength", "srcType": 3, "srcSize": 3}, BYTES]),
        (bytes([5, 2, 5]), [{"kind": "RunLength", "srcType": 3, "srcSize": 2}, BYTES]),
        (bytes([5, 254]), [{"kind": "RunLength", "srcType": 3, "srcSize": 2}, BYTES]),
        (bytes([5, 2]), [{"kind": "IntegerPacking", "srcSize": 3}, BYTES]),
        (bytes([5, 127]), [{"kind": "IntegerPacking", "srcSize": 2}, BYTES]),
        (bytes(7), [{"kind": "ByteArray", "type": 33}]),
        (bytes(8), [{"kind": "ByteArray", "type": 7}]),
        (bytes(8), [{"kind": "Zip"}]),
    ],
)
def test_encodings_outside_the_specification_raise(data, encodings):
    with pytest.raises((LookupError, ValueError)):
        decode_column(data, encodings)


@pytest.mark.parametrize("index", [3, -2])
def test_a_string_index_out_of_range_raises(index):
    kinds = {"dataEncoding": [BYTES], "offsetEncoding": [BYTES], "offsets": bytes([0, 1, 3]), "stringData": "abc"}
    assert decode_column(bytes([0, 1, 255]), [{"kind": "StringArray", **kinds}]).tolist() == ["a", "bc", ""]
    with pytest.raises((LookupError, ValueError)):
        decode_column(np.array([index], np.int8).tobytes(), [{"kind": "StringArray", **kinds}])


# --- atoms --------------------------------------------------------------------------------------------------------


def _atom_site(path: Path) -> AtomSite:
    return AtomSite(unpack_categories(path.read_bytes(), ["_atom_site", "_cell"])["dataBlocks"][0])


def _assert_equal_to_biotite(path: Path, models: list[int]) -> None:
    site, file = _atom_site(path), pdbx.BinaryCIFFile.read(path)
    assert site.is_plain
    assert len(site.starts) == pdbx.get_model_count(file)
    for model in models:
        ours = site.atoms(model)
        theirs = pdbx.get_structure(file, model=model, altloc="all", extra_fields=["b_factor", "occupancy"])
        theirs.altloc_id[np.isin(theirs.altloc_id, (".", "?"))] = ""
        assert ours.coord.dtype == theirs.coord.dtype
        assert np.array_equal(ours.coord, theirs.coord)
        assert set(ours.get_annotation_categories()) == set(theirs.get_annotation_categories())
        for name in theirs.get_annotation_categories():
            assert ours.get_annotation(name).dtype == theirs.get_annotation(name).dtype, name
            assert np.array_equal(ours.get_annotation(name), theirs.get_annotation(name)), name
        assert (ours.box is None) == (theirs.box is None)
        assert ours.box is None or np.array_equal(ours.box, theirs.box)


def test_atoms_of_committed_entries_equal_those_of_biotite(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::9]:
        _assert_equal_to_biotite(path, [1])


@pytest.mark.parametrize("name", ["1igy", "3o5r", "3wip", "1k6p"])
def test_atoms_of_archive_entries_equal_those_of_biotite(shared_data, name):
    _assert_equal_to_biotite(shared_data / "formats" / f"{name}.bcif", [1])


def test_atoms_of_each_model_equal_those_of_biotite(shared_data):
    _assert_equal_to_biotite(shared_data / "formats" / "1l2y.bcif", [1, 2, 38])


def _write_changed(path, tmp_path, change):
    file = pdbx.BinaryCIFFile.read(path)
    change(file.block)
    target = tmp_path / "changed.bcif"
    file.write(target)
    return target


CHANGES = {
    "missing column": lambda block: block["atom_site"].pop("auth_atom_id"),
    "numbers as strings": lambda block: block["atom_site"].update(Cartn_x=block["atom_site"]["Cartn_x"].as_array(str)),
    "masked number": lambda block: block["atom_site"].update(
        auth_seq_id=pdbx.BinaryCIFColumn(
            block["atom_site"]["auth_seq_id"].data,
            pdbx.BinaryCIFData((np.arange(block["atom_site"].row_count) == 3).astype(np.uint8)),
        )
    ),
    "cell as strings": lambda block: block["cell"].update(length_a=["50.000"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_files_written_in_another_way_are_read_by_biotite(structures_dir, tmp_path, change):
    path = sorted(structures_dir.glob("*.bcif"))[0]
    changed = _write_changed(path, tmp_path, change)
    assert _atom_site(path).is_plain
    assert not _atom_site(changed).is_plain
    original, reread = read_atoms(path).atoms, read_atoms(changed).atoms
    assert np.array_equal(original.coord, reread.coord)
    assert original.atom_name.shape == reread.atom_name.shape


def test_a_masked_unit_cell_gives_no_box(structures_dir, tmp_path):
    def mask_cell(block):
        block["cell"]["length_a"] = pdbx.BinaryCIFColumn([0.0], mask=[2])

    changed = _write_changed(sorted(structures_dir.glob("*.bcif"))[0], tmp_path, mask_cell)
    assert _atom_site(changed).is_plain
    assert _atom_site(changed).atoms(1).box is None
