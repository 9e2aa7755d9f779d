"""Links between consecutive residues: chains, gaps, insertion codes and CA traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.residues.chain_breaks import chain_segments, linked_to_next


@pytest.fixture(scope="module")
def unbroken(structures_dir) -> Residues:
    """Return a protein of one chain with a complete backbone and no gaps."""
    residues = clean(load_structure(structures_dir / "1crn.bcif"))
    assert linked_to_next(residues)[:-1].all() and residues.backbone_mask.all()
    return residues


def test_chains_in_contact_are_not_linked(unbroken):
    chain = np.array(["A"] * 7 + ["B"] * (len(unbroken) - 7))
    split = replace(unbroken, chain=chain)
    assert np.flatnonzero(~linked_to_next(split)).tolist() == [6, len(chain) - 1]


def test_links_of_a_ca_trace_come_from_ca_distances(unbroken):
    backbone = unbroken.backbone.copy()
    backbone[:, [0, 2, 3]] = np.nan
    trace = replace(unbroken, backbone=backbone)
    assert np.array_equal(linked_to_next(trace), linked_to_next(unbroken))


@pytest.mark.parametrize("suffix", ["pdb", "cif", "bcif"])
def test_links_cross_insertion_codes_and_stop_at_gaps(shared_data, suffix):
    residues = clean(load_structure(shared_data / "formats" / f"1igy.{suffix}"))
    linked = linked_to_next(residues)
    inserted = np.flatnonzero(residues.ins_code[1:] != "")  # i, with an inserted residue i + 1
    assert len(inserted) == 8  # 52A, 82A, 82B, 82C in both heavy chains
    for i in range(len(residues) - 1):
        bond = np.linalg.norm(residues.backbone[i + 1, 0] - residues.backbone[i, 2])
        assert linked[i] == (residues.chain[i] == residues.chain[i + 1] and bond <= 2.5), residues.ids[i]
    assert linked[inserted].mean() > 0.9
    assert np.array_equal(linked[:-1], np.diff(residues.seq_pos) == 1)


def test_segments_end_at_chain_ends_and_gaps(unbroken):
    backbone, pos = unbroken.backbone.copy(), unbroken.pos.copy()
    backbone[20:] += 50.0
    pos[20:] += 50.0
    broken = replace(unbroken, backbone=backbone, pos=pos, chain=np.where(np.arange(len(pos)) < 7, "A", "B"))
    assert chain_segments(broken).tolist() == [0] * 7 + [1] * 13 + [2] * (len(pos) - 20)
    assert len(chain_segments(unbroken.select(np.zeros(len(unbroken), bool)))) == 0
