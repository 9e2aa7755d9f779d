"""Compressed BinaryCIF: every value restored, by biotite and by this package."""

from __future__ import annotations

import io

import numpy as np
import pytest
from biotite.structure.io import pdbx
from protgraph_plugins.published.preparation import _compressed

from protgraph.structure.io.bcif import BinaryBlock, unpack_categories


def file_of(**columns: np.ndarray) -> pdbx.BinaryCIFFile:
    category = pdbx.BinaryCIFCategory({name: pdbx.BinaryCIFColumn(value) for name, value in columns.items()})
    return pdbx.BinaryCIFFile({"x": pdbx.BinaryCIFBlock({"atom_site": category})})


def written(file: pdbx.BinaryCIFFile) -> bytes:
    content = io.BytesIO()
    file.write(content)
    return content.getvalue()


def test_structures_are_restored(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::60]:
        atoms = pdbx.get_structure(pdbx.BinaryCIFFile.read(path), model=1, extra_fields=["b_factor", "atom_id"])
        file = pdbx.BinaryCIFFile()
        pdbx.set_structure(file, atoms)
        content = written(_compressed(file))
        assert len(content) < 0.25 * len(written(file))
        read = pdbx.BinaryCIFFile.read(io.BytesIO(content)).block["atom_site"]
        mine = BinaryBlock(unpack_categories(content, ["_atom_site"])["dataBlocks"][0]).get("atom_site")
        for name, column in file.block["atom_site"].items():
            assert np.array_equal(read[name].as_array(), column.as_array()), name
            assert np.array_equal(mine.column(name).texts(), column.as_array(str)), name


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
    "differences beyond four bytes": np.array([200.1234567, -200.7654321]),
    "small": np.array([0.123456789123, -1e-10]),
    "strings": np.array(["", "a", "ä", "a", "long string"] * 9),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_every_value_is_restored(values):
    file = _compressed(file_of(x=values))
    back = pdbx.BinaryCIFFile.read(io.BytesIO(written(file))).block["atom_site"]["x"].as_array()
    assert np.array_equal(back, values, equal_nan=values.dtype.kind == "f")


def test_masks_are_kept():
    column = pdbx.BinaryCIFColumn(np.arange(40), np.repeat([0, 1, 2], [30, 5, 5]).astype(np.uint8))
    file = pdbx.BinaryCIFFile({"x": pdbx.BinaryCIFBlock({"atom_site": pdbx.BinaryCIFCategory({"x": column})})})
    read = pdbx.BinaryCIFFile.read(io.BytesIO(written(_compressed(file)))).block["atom_site"]["x"]
    assert np.array_equal(read.mask.array, column.mask.array)
