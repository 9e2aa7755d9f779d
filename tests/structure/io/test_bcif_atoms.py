"""Atoms of BinaryCIF files equal biotite's, array by array; what is written otherwise is left to biotite."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.structure.io.bcif import unpack_categories
from protgraph.structure.io.bcif_atoms import Site
from protgraph.structure.io.readers import read_atoms


def _site(path) -> Site:
    return Site(unpack_categories(path.read_bytes(), ["_atom_site", "_cell"])["dataBlocks"][0])


def _assert_equal_to_biotite(path, models):
    site, file = _site(path), pdbx.BinaryCIFFile.read(path)
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


def test_committed_entries_equal_biotites(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::9]:
        _assert_equal_to_biotite(path, [1])


@pytest.mark.parametrize("name", ["1igy", "3o5r", "3wip", "1k6p"])
def test_entries_of_the_archive_equal_biotites(shared_data, name):
    _assert_equal_to_biotite(shared_data / "formats" / f"{name}.bcif", [1])


def test_models_equal_biotites(shared_data):
    _assert_equal_to_biotite(shared_data / "formats" / "1l2y.bcif", [1, 2, 38])


def _changed(path, tmp_path, change):
    file = pdbx.BinaryCIFFile.read(path)
    change(file.block)
    written = tmp_path / "changed.bcif"
    file.write(written)
    return written


CHANGES = {
    "a column is missing": lambda block: block["atom_site"].pop("auth_atom_id"),
    "numbers are texts": lambda block: block["atom_site"].update(Cartn_x=block["atom_site"]["Cartn_x"].as_array(str)),
    "a number is masked": lambda block: block["atom_site"].update(
        auth_seq_id=pdbx.BinaryCIFColumn(
            block["atom_site"]["auth_seq_id"].data,
            pdbx.BinaryCIFData((np.arange(block["atom_site"].row_count) == 3).astype(np.uint8)),
        )
    ),
    "the cell is texts": lambda block: block["cell"].update(length_a=["50.000"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_written_otherwise_is_read_by_biotite(structures_dir, tmp_path, change):
    path = sorted(structures_dir.glob("*.bcif"))[0]
    written = _changed(path, tmp_path, change)
    assert _site(path).is_plain
    assert not _site(written).is_plain
    given, found = read_atoms(path).atoms, read_atoms(written).atoms
    assert np.array_equal(given.coord, found.coord)
    assert given.atom_name.shape == found.atom_name.shape


def test_a_cell_that_is_unknown_is_none(structures_dir, tmp_path):
    def hide(block):
        block["cell"]["length_a"] = pdbx.BinaryCIFColumn([0.0], mask=[2])

    written = _changed(sorted(structures_dir.glob("*.bcif"))[0], tmp_path, hide)
    assert _site(written).is_plain
    assert _site(written).atoms(1).box is None
