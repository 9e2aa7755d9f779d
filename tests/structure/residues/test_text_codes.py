"""Codes of texts against NumPy's comparison of strings."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.structure.residues.text_codes import pack_text, pack_texts, text_changes

NAMES = np.array(["N", "CA", "C", "CA", "", "", "OXT", "HD11", "AC", "C ", " C", "1234567", "12345678", "CA"])
COLUMNS = {
    "atom names": NAMES,
    "one character": np.array(["A", "A", "", "B", "B"]),
    "two characters": np.array(["C", "C", "CA", "AC", "CA"]),
    "odd width": NAMES.astype("U9")[:11].astype("U5"),
    "long": np.array(["123456789", "123456789", "12345678", "CA", "123456780"]),
    "not ASCII": np.array(["Å", "Å", "A", "\xc5A", "𝛼", "CA"]),
    "strided": np.repeat(NAMES, 2)[::2],
    "empty": np.array([], "U4"),
}


@pytest.mark.parametrize("texts", COLUMNS.values(), ids=COLUMNS)
def test_codes_are_equal_if_and_only_if_the_texts_are(texts):
    codes = pack_texts(texts)
    assert codes.dtype == np.uint64 and codes.shape == texts.shape
    assert np.array_equal(codes[:, None] == codes, texts[:, None] == texts)


@pytest.mark.parametrize("texts", COLUMNS.values(), ids=COLUMNS)
def test_codes_do_not_depend_on_the_column(texts):
    expected = {text: pack_text(text) for text in texts.tolist() if text.isascii() and len(text) <= 8}
    codes = dict(zip(texts.tolist(), pack_texts(texts).tolist(), strict=True))
    assert {text: codes[text] for text in expected} == expected


@pytest.mark.parametrize("texts", COLUMNS.values(), ids=COLUMNS)
def test_changes_are_those_of_neighboring_texts(texts):
    assert np.array_equal(np.unique(text_changes(texts)), np.flatnonzero(texts[1:] != texts[:-1]) + 1)
