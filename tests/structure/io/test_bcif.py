"""BinaryCIF against a full MessagePack decoder, biotite's encoders and biotite's atoms."""

from __future__ import annotations

from pathlib import Path

import msgpack
import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.structure import load_structure
from protgraph.structure.io.bcif import BinaryBlock, BinaryTable, decode_column, unpack_categories
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


# --- tables -------------------------------------------------------------------------------------------------------


def _site(path: Path) -> BinaryTable:
    return BinaryBlock(unpack_categories(path.read_bytes(), ["_atom_site"])["dataBlocks"][0]).get("atom_site")


def test_columns_equal_those_of_biotite(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::40]:
        ours, theirs = _site(path), pdbx.BinaryCIFFile.read(path).block["atom_site"]
        assert ours.names == tuple(theirs) and ours.size == theirs.row_count
        for name, column in theirs.items():
            assert np.array_equal(ours.column(name).texts(), column.as_array(str)), name


def _write_changed(path, tmp_path, change):
    file = pdbx.BinaryCIFFile.read(path)
    change(file.block)
    target = tmp_path / "changed.bcif"
    file.write(target)
    return target


def _mask(block, name, rows, value=2):
    """Mask some rows of a column of atom_site; the numbers stay under the mask."""
    mask = np.zeros(block["atom_site"].row_count, np.uint8)
    mask[rows] = value
    block["atom_site"][name] = pdbx.BinaryCIFColumn(block["atom_site"][name].data, pdbx.BinaryCIFData(mask))


@pytest.fixture
def crambin(structures_dir):
    return structures_dir / "1crn.bcif"


def test_texts_of_a_column_that_is_masked_as_a_whole_are_those_of_the_mask(crambin, tmp_path):
    path = _write_changed(crambin, tmp_path, lambda block: _mask(block, "label_comp_id", slice(None)))
    column = _site(path).column("label_comp_id")
    assert column.texts(width=3).tolist() == ["?"] * len(column) and not column.texts(blank=True).any()
    assert not column.equals("THR").any()


@pytest.mark.parametrize("value", [1, 2])
def test_masked_coordinates_are_nan_and_counted(crambin, tmp_path, value):
    path = _write_changed(crambin, tmp_path, lambda block: _mask(block, "Cartn_y", [3, 7], value))
    before, after = read_atoms(crambin).atoms, read_atoms(path).atoms
    assert np.flatnonzero(np.isnan(after.coord).any(axis=1)).tolist() == [3, 7]
    np.testing.assert_array_equal(after.coord[:, [0, 2]], before.coord[:, [0, 2]])
    assert load_structure(path).report.invalid_atoms == 2 and len(load_structure(path).atoms) == len(before) - 2


def test_a_masked_occupancy_is_one(crambin, tmp_path):
    def change(block):
        block["atom_site"]["occupancy"] = np.full(block["atom_site"].row_count, 0.5)
        _mask(block, "occupancy", [2])

    parsed = read_atoms(_write_changed(crambin, tmp_path, change))
    assert parsed.atoms.occupancy[:4].tolist() == [0.5, 0.5, 1.0, 0.5]
    assert any(note.startswith("1 occupancies") for note in parsed.warnings)


CHANGES = {
    "missing column": lambda block: block["atom_site"].pop("auth_atom_id"),
    "numbers as strings": lambda block: block["atom_site"].update(Cartn_x=block["atom_site"]["Cartn_x"].as_array(str)),
    "integers as strings": lambda block: block["atom_site"].update(
        auth_seq_id=block["atom_site"]["auth_seq_id"].as_array(str)
    ),
    "cell as strings": lambda block: block["cell"].update(length_a=["40.960"]),
    "masked author number": lambda block: _mask(block, "auth_seq_id", [3]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_another_encoding_gives_the_same_atoms(crambin, tmp_path, change):
    changed = read_atoms(_write_changed(crambin, tmp_path, change)).atoms
    assert read_atoms(crambin).atoms == changed


def test_a_column_without_the_key_mask_has_no_mask():
    values = np.arange(3, dtype="<i4")
    data = {"data": values.tobytes(), "encoding": [{"kind": "ByteArray", "type": 3}]}
    table = BinaryTable({"rowCount": 3, "columns": [{"name": "id", "data": data}]})
    assert table.column("id").mask is None and table.column("id").values.tolist() == [0, 1, 2]


def test_a_masked_unit_cell_gives_no_box(crambin, tmp_path):
    def mask_cell(block):
        block["cell"]["length_a"] = pdbx.BinaryCIFColumn([0.0], mask=[2])

    assert read_atoms(crambin).atoms.box is not None
    assert read_atoms(_write_changed(crambin, tmp_path, mask_cell)).atoms.box is None
