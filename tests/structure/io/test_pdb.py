"""PDB records parsed by columns equal those of biotite; records in another form are refused."""

from __future__ import annotations

import gzip
import io
import warnings

import numpy as np
import pytest
from biotite.structure.io import pdb

from protgraph.structure.io.pdb import parse_records, read_model

FIELDS = ["b_factor", "occupancy"]


def _text(path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("latin-1")


def test_real_files_equal_those_read_by_biotite(shared_data):
    paths = [*(shared_data / "formats").glob("*.pdb"), *(shared_data / "robustness").glob("*.pdb*")]
    plain = 0
    for path in sorted(paths):
        if path.name == "truncated__cut.pdb.gz" or path.stat().st_size > 4e6:
            continue
        text = _text(path)
        if not any(line.startswith(("ATOM", "HETATM")) for line in text.splitlines()):
            continue
        for model in {1, max(1, sum(line.startswith("MODEL") for line in text.splitlines()))}:
            ours = read_model(text, model)
            if ours is None:
                continue
            plain += 1
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # files with warnings are not parsed by columns
                theirs = pdb.PDBFile.read(io.StringIO(text)).get_structure(model, altloc="all", extra_fields=FIELDS)
            assert set(ours.get_annotation_categories()) == set(theirs.get_annotation_categories())
            for name in theirs.get_annotation_categories():
                a, b = getattr(ours, name), getattr(theirs, name)
                assert a.dtype == b.dtype and np.array_equal(a, b), f"{path.name} {name}"
            assert ours.coord.dtype == theirs.coord.dtype and ours.coord.tobytes() == theirs.coord.tobytes()
            assert (ours.box is None) == (theirs.box is None) and (ours.box is None or (ours.box == theirs.box).all())
    assert plain >= 50


@pytest.mark.parametrize("x", ["   0.000", "  -0.000", "   -.500", "    .500", "9999.999", "-999.999", "  12.345"])
def test_numbers_equal_python_floats_bit_for_bit(pdb_lines, x):
    line = pdb_lines.atom("CA", "GLY", "A", 1, 0.0)
    value = parse_records([line[:30] + x + line[38:]]).coord[0, 0]
    assert value.tobytes() == np.float32(float(x)).tobytes()


@pytest.mark.parametrize(
    "columns",
    [{30: "     nan"}, {30: "  1 2.00"}, {30: "12.34567"}, {30: "   +1.00"}, {30: "  --1.00"}, {22: "A000"},
     {22: "    "}, {54: "      "}, {60: " 1.0e1"}, {76: "  "}, {12: " C\u00e9 "}, {12: " C\t "}],
)  # fmt: skip
def test_records_in_another_form_are_refused(pdb_lines, columns):
    line = pdb_lines.atom("CA", "GLY", "A", 1, 0.0)
    for begin, text in columns.items():
        line = line[:begin] + text + line[begin + len(text) :]
    assert parse_records([line]) is None and parse_records([]) is None
