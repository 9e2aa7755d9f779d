"""CB and side-chain centers against their definitions, atom by atom."""

from __future__ import annotations

import numpy as np

from protgraph.structure import clean, load_structure
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.descriptors.representative_atoms import cb_or_ca, sidechain_centroid


def test_points_equal_a_loop_over_residues(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::40]:
        residues = clean(load_structure(path))
        virtual, result, center = virtual_cb(residues.backbone), cb_or_ca(residues), sidechain_centroid(residues)
        for i in range(len(residues)):
            own = residues.atom_residue == i
            names, atoms = residues.atom_name[own], residues.atom_pos[own].astype(np.float64)
            expected = atoms[names == "CB"][0] if "CB" in names else virtual[i]
            expected = residues.pos[i] if np.isnan(expected).any() else expected
            assert np.allclose(result[i], expected, atol=1e-9)
            side = atoms[~np.isin(names, ["N", "CA", "C", "O", "OXT"])]
            assert np.allclose(center[i], side.mean(0) if len(side) else residues.pos[i], atol=1e-9)


def test_a_ca_trace_has_ca_for_all_points(structures_dir):
    residues = clean(load_structure(next(structures_dir.glob("*.bcif"))))
    trace = residues.select(np.arange(len(residues)) < 20).hide("sidechain")
    trace.backbone[:, [0, 2, 3]] = np.nan
    assert np.array_equal(cb_or_ca(trace), trace.pos) and np.array_equal(sidechain_centroid(trace), trace.pos)
