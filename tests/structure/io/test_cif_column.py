"""Numbers of CIF columns equal ``float`` bit for bit."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_column import ColumnValues, canonical_name

PLAIN = st.from_regex(r"-?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})", fullmatch=True)
ANY = st.from_regex(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", fullmatch=True)


def _same(a: float, b: float) -> bool:
    return np.float64(a).tobytes() == np.float64(b).tobytes()


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.one_of(PLAIN, ANY), min_size=1, max_size=30), st.sampled_from(["S", "U"]))
def test_numbers_equal_float_bit_for_bit(texts, kind):
    numbers = ColumnValues(np.array(texts).astype(kind)).numbers("x")
    assert all(_same(number, float(text)) for number, text in zip(numbers, texts, strict=True))


def test_random_coordinates_equal_float():
    values = np.random.default_rng(1).uniform(-2000, 2000, 20_000)
    texts = np.array([f"{value:.{i % 6}f}" for i, value in enumerate(values)])
    assert np.array_equal(ColumnValues(texts.astype("S")).numbers("x"), texts.astype(float))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.one_of(PLAIN, ANY, st.sampled_from(["-", ".", "1..2", "+2", "1e5"])), min_size=9, max_size=30))
def test_columns_of_bytes_equal_texts(texts):
    column, plain = (ColumnValues(np.array(texts).astype(kind)) for kind in "SU")
    assert column.texts().tolist() == texts
    assert column.is_text and len(column) == len(texts)
    assert column.is_constant == (len(set(texts)) == 1)
    assert column.select(slice(2, 5)).texts().tolist() == texts[2:5]
    bad = [text for text in texts if not _is_number(text)]
    if bad:
        with pytest.raises(StructureFileError, match=re.escape(repr(bad[0]))):
            column.numbers("x")
    else:
        assert column.numbers("x").tobytes() == plain.numbers("x").tobytes()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "value"),
    [("12.345(5)", 12.345), ("-0.5(12)", -0.5), ("1.", 1.0), (".5", 0.5), ("1e1", 10.0), ("+2", 2.0), ("-0", -0.0)],
)
def test_other_forms_of_numbers(text, value):
    assert _same(ColumnValues(np.array([text.encode(), b"7"])).numbers("x")[0], value)


@pytest.mark.parametrize(
    "text", ["", "-", ".", "1..2", "1-2", "--1", "1_000", "0x10", "12A", "1.5(", "(5)", "1 2", "e5"]
)
def test_texts_that_are_not_numbers_raise_with_row_and_text(text):
    values = np.array(["1.5", text]).astype("S8")
    with pytest.raises(StructureFileError, match=r"here: .* \(row 2\)"):
        ColumnValues(values).numbers("here")


def test_masked_values():
    column = ColumnValues(np.array([b"3", b"?", b"."]), np.array([0, 2, 1], np.uint8))
    np.testing.assert_array_equal(column.numbers("x"), [3, np.nan, np.nan])
    assert column.integers("x").tolist() == [3, -1, -1]
    assert column.texts().tolist() == ["3", "?", "."] and column.texts(blank=True).tolist() == ["3", "", ""]
    hidden = ColumnValues(np.array([3.5, 7.0], np.float32), np.array([0, 2], np.uint8))  # BinaryCIF
    np.testing.assert_array_equal(hidden.numbers("x"), [3.5, np.nan])


@pytest.mark.parametrize("mask", [None, [0, 2, 0, 1, 0], [2, 2, 2, 2, 2]])
def test_indexed_texts_equal_those_of_each_row(mask):
    texts, index = np.array(["ATOM", "HETATM", "7", ""]), np.array([1, 0, 2, 2, -1])
    mask = None if mask is None else np.array(mask, np.uint8)
    indexed, plain = ColumnValues(texts, mask, index), ColumnValues(texts[index], mask)
    assert len(indexed) == 5 and not indexed.is_constant and ColumnValues(texts, None, index[2:4]).is_constant
    for rows in (slice(None), slice(1, 4), np.array([4, 0, 2])):
        a, b = indexed.select(rows), plain.select(rows)
        for blank in (False, True):
            assert a.texts(blank=blank).tolist() == b.texts(blank=blank).tolist()
            assert a.texts(width=9, blank=blank).tolist() == b.texts(blank=blank).tolist()
            assert a.texts(width=9, blank=blank).dtype == "U9"
        assert a.equals("HETATM").tolist() == b.equals("HETATM").tolist() == (b.texts() == "HETATM").tolist()
    sevens = [column.select(slice(2, 4)) for column in (indexed, plain)]
    assert sevens[0].numbers("x").tobytes() == sevens[1].numbers("x").tobytes()
    with pytest.raises(StructureFileError, match="HETATM"):
        ColumnValues(texts, None, index).integers("x")


@pytest.mark.parametrize("values", [np.array([b"CA", b"N"]), np.array(["CA", "N"])])
def test_texts_of_any_form_have_the_requested_width(values):
    texts = ColumnValues(values).texts(width=6)
    assert texts.tolist() == ["CA", "N"] and texts.dtype == "U6"


@pytest.mark.parametrize("text", ["1.5", "3000000000", "nan"])
def test_integers_are_whole_and_of_32_bits(text):
    with pytest.raises(StructureFileError, match=text):
        ColumnValues(np.array([text.encode()])).integers("x")


def test_names_ignore_case():
    assert [canonical_name(x) for x in ("CARTN_X", "pdbx_pdb_INS_code", "Matrix[1][2]")] == [
        *("Cartn_x", "pdbx_PDB_ins_code", "matrix[1][2]")
    ]
