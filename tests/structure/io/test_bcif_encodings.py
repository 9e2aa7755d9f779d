"""Encodings of BinaryCIF columns: every value restored, by biotite and by this package, in about biotite's bytes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.structure.io.bcif import BinaryBlock, unpack_categories
from protgraph.structure.io.bcif_encodings import with_small_encodings


def file_of(**columns: np.ndarray) -> pdbx.BinaryCIFFile:
    category = pdbx.BinaryCIFCategory({name: pdbx.BinaryCIFColumn(value) for name, value in columns.items()})
    return pdbx.BinaryCIFFile({"x": pdbx.BinaryCIFBlock({"atom_site": category})})


def written(file: pdbx.BinaryCIFFile) -> bytes:
    content = io.BytesIO()
    file.write(content)
    return content.getvalue()


def test_structures_are_restored_in_the_bytes_of_biotite(structures_dir):
    ours = theirs = plain = 0
    for path in sorted(structures_dir.glob("*.bcif"))[::60]:
        atoms = pdbx.get_structure(pdbx.BinaryCIFFile.read(path), model=1, extra_fields=["b_factor", "atom_id"])
        file = pdbx.BinaryCIFFile()
        pdbx.set_structure(file, atoms)
        content = written(with_small_encodings(file))
        ours, plain, theirs = (
            ours + len(content),
            plain + len(written(file)),
            theirs + len(written(pdbx.compress(file))),
        )
        read = pdbx.BinaryCIFFile.read(io.BytesIO(content)).block["atom_site"]
        mine = BinaryBlock(unpack_categories(content, ["_atom_site"])["dataBlocks"][0]).get("atom_site")
        for name, column in file.block["atom_site"].items():
            assert np.array_equal(read[name].as_array(), column.as_array()), name
            assert np.array_equal(mine.column(name).texts(), column.as_array(str)), name
    assert ours < 1.02 * theirs < 0.25 * plain


NUMBERS = {
    "constant": np.full(500, 7),
    "count": np.arange(1, 70_000),
    "limits of one byte": np.array([127, -128, 0, 128, -129, 254, -256, 3] * 20),
    "limits without sign": np.array([255, 0, 254, 256, 510, 65535, 65536] * 20),
    "limits of four bytes": np.array([2**31 - 1, -(2**31) + 1, 0]),
    "two": np.array([4, 4]),
    "one": np.array([-3, -3, -3][:1]),
    "runs": np.repeat([3, 900, -70_000], [400, 2, 300]),
    "three decimals": np.array([1.234, -99.001, 0.0, 12.5], np.float32),
    "no decimals": np.array([1e-9, 3.3, np.pi]),
    "too large": np.array([3e9, 1.5, 2e-3]),
    "not finite": np.array([1.0, np.nan, np.inf]),
    "strings": np.array(["", "a", "ä", "a", "long string"] * 9),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_every_value_is_restored(values):
    file = with_small_encodings(file_of(x=values))
    back = pdbx.BinaryCIFFile.read(io.BytesIO(written(file))).block["atom_site"]["x"].as_array()
    assert np.array_equal(back, values, equal_nan=values.dtype.kind == "f")


@pytest.mark.parametrize("name", ["constant", "count", "runs", "limits of one byte", "strings"])
def test_no_more_than_the_bytes_of_the_search(name):
    file = file_of(x=NUMBERS[name])
    assert len(written(with_small_encodings(file))) <= len(written(pdbx.compress(file))) + 30


def test_masks_are_kept():
    column = pdbx.BinaryCIFColumn(np.arange(40), np.repeat([0, 1, 2], [30, 5, 5]).astype(np.uint8))
    file = pdbx.BinaryCIFFile({"x": pdbx.BinaryCIFBlock({"atom_site": pdbx.BinaryCIFCategory({"x": column})})})
    read = pdbx.BinaryCIFFile.read(io.BytesIO(written(with_small_encodings(file)))).block["atom_site"]["x"]
    assert np.array_equal(read.mask.array, column.mask.array)
