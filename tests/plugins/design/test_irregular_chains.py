"""Gaps, insertion codes, missing backbone atoms and modified residues in designs and scores.

Real entries of two chains each, and a checkpoint with random weights.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.design import DesignSpec, design_records, design_sequences, score_sequences

import protgraph as pg
from protgraph.checkpoint import Checkpoint, save_checkpoint
from protgraph.model import build_model
from protgraph.structure import ALPHABET
from protgraph.task.builtin import INVERSE_FOLDING

#: Entry → number of residues with a CA atom in each chain.
LENGTHS = {"1fa8": [128, 128], "2d7t": [116, 110], "5cq2": [12, 76], "1hvr": [99, 99]}


@pytest.fixture(scope="module")
def model():
    network = build_model("proteinmpnn.small", INVERSE_FOLDING.target, seed=0).eval()
    with torch.no_grad():  # random weights give nearly uniform probabilities; sharpen them
        network.head.mlp[0].weight.mul_(8)
    return network


@pytest.fixture(scope="module")
def checkpoint(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.safetensors"
    return save_checkpoint(path, Checkpoint(model, "inverse_folding"))


@pytest.fixture(scope="module")
def entry(structures_dir):
    return lambda name: pg.clean(pg.load_structure(structures_dir / f"{name}.bcif"))


@pytest.fixture
def designed(run, checkpoint, structures_dir, tmp_path):
    """``designed("1fa8", "--fixed", "A")``: the native chains, then those of the design, from the FASTA file."""

    def call(name, *options):
        out = tmp_path / f"{name}.fasta"
        done = run("design", structures_dir / f"{name}.bcif", "--model", checkpoint, *options, "-o", out, "--overwrite")
        assert done.code == 0, done.err
        return [line.split("/") for line in out.read_text().splitlines()[1::2]]

    return call


@pytest.fixture
def scored(run, checkpoint, structures_dir, tmp_path):
    """``scored("1fa8")``: the rows of the CSV, by "A:42A"."""

    def call(name, *options):
        out = tmp_path / f"{name}.csv"
        done = run("score", structures_dir / f"{name}.bcif", "--model", checkpoint, *options, "-o", out, "--overwrite")
        assert done.code == 0, done.err
        return {f"{r['chain']}:{r['res_id']}{r['ins_code']}": r for r in csv.DictReader(out.open())}

    return call


def letters(residues, chain):
    return "".join(ALPHABET[t] for t in residues.aatype[residues.chain == chain])


@pytest.mark.parametrize("name", LENGTHS)
def test_chains_have_the_lengths_and_residues_the_names_of_the_structure(entry, designed, scored, name):
    residues = entry(name)
    native, design = designed(name)
    assert [len(chain) for chain in design] == LENGTHS[name]
    assert native == [letters(residues, chain) for chain in residues.chain_names]
    rows = scored(name)
    assert list(rows) == residues.ids
    assert "".join(row["type"] for row in rows.values()) == "".join(native)


@pytest.mark.slow
def test_a_gap_does_not_shift_residues(entry, model, designed, scored):
    """1fa8 lacks 127 to 133 in both chains."""
    native, design = designed("1fa8", "--fixed", "A:120-130,B:134-", "--temperature", "1")
    assert design[0][119:126] == native[0][119:126] and design[0][126:] != native[0][126:]  # A:134 is the next letter
    assert design[1][126:] == native[1][126:] and design[1][:126] != native[1][:126]
    rows = scored("1fa8")
    assert not {f"{chain}:{number}" for chain in "AB" for number in range(127, 134)} & set(rows)
    residues = entry("1fa8")
    assert np.diff(residues.seq_pos)[[125, 253]].tolist() == [8, 8]
    closed = replace(residues, seq_pos=residues.seq_pos - 7 * (residues.res_id > 130))
    (gap,), (none,) = (
        score_sequences(model, [residues], mode="unconditional"),
        score_sequences(model, [closed], mode="unconditional"),
    )
    beside = np.isin(residues.res_id, (126, 134))
    assert np.abs(gap.log_probs - none.log_probs)[beside].max() > 1e-3  # the length of the gap is an input


@pytest.mark.slow
def test_residues_with_insertion_codes_are_separate_residues(designed, scored, tmp_path):
    """2d7t has H:52A and H:82A, B and C."""
    native, design = designed("2d7t", "--fixed", "H:52A,H:82A-82C", "--temperature", "1")
    rows = scored("2d7t")
    ids = list(rows)
    assert [ids.index(i) for i in ("H:52", "H:52A", "H:53")] == [51, 52, 53]
    assert [rows[i]["ins_code"] for i in ("H:82", "H:82A", "H:82B", "H:82C", "H:83")] == ["", "A", "B", "C", ""]
    fixed = [ids.index(i) for i in ("H:52A", "H:82A", "H:82B", "H:82C")]
    assert all(design[0][n] == native[0][n] for n in fixed)
    table = tmp_path / "table.csv"
    table.write_text("chain,res_id,ins_code,W\nH,52,A,100\nL,1,,100\n")
    _, design = designed("2d7t", "--bias", table)
    assert (design[0][52], design[1][0]) == ("W", "W") and design[0][51:54] != "WWW"


def test_residues_without_a_backbone_atom_keep_types_positions_and_rows(entry, model, designed, scored):
    """5cq2: C:2, A:41 and A:46 lack backbone atoms; 42 to 45 are missing."""
    native, design = designed("5cq2", "--temperature", "1")
    places = {"C:2": (0, 0), "A:41": (1, 34), "A:46": (1, 35)}
    ids = entry("5cq2").ids
    for name, (chain, place) in places.items():
        assert ids.index(name) == 12 * chain + place
        assert design[chain][place] == native[chain][place]
    assert sum(a != b for a, b in zip(design[1], native[1], strict=True)) > 30
    rows = scored("5cq2")
    assert [name for name, row in rows.items() if row["log_p"] == ""] == list(places)
    assert all(rows[name]["A"] == "" for name in places)
    residues = entry("5cq2")
    there = ~np.isin(residues.ids, list(places))
    (whole,), (rest,) = (score_sequences(model, [r], mode="unconditional") for r in (residues, residues.select(there)))
    np.testing.assert_allclose(whole.log_probs[there], rest.log_probs, atol=1e-5)  # not neighbors of any residue
    (drawn,) = design_sequences(model, [residues], DesignSpec(), temperature=1.0)
    assert np.array_equal(drawn.designed, there)
    assert [len(part) for part in list(design_records(drawn, model="", seed=0))[1][1].split("/")] == LENGTHS["5cq2"]


def test_modified_residues_have_the_type_of_their_parent(entry, model, designed, scored):
    """1hvr has S-hydroxycysteine (CSO) at 67 of both chains."""
    residues = entry("1hvr")
    modified = np.flatnonzero(residues.res_name == "CSO")
    assert [residues.ids[n] for n in modified] == ["A:67", "B:67"]
    native, design = designed("1hvr", "--fixed", "A:67", "--omit", "C", "--temperature", "1")
    assert native[0][66] == native[1][66] == design[0][66] == "C" and design[1][66] != "C"
    rows = scored("1hvr")
    assert [rows[name]["type"] for name in ("A:67", "B:67")] == ["C", "C"]
    assert float(rows["A:67"]["log_p"]) == float(rows["A:67"]["C"])
    plain = replace(residues, res_name=np.where(residues.res_name == "CSO", "CYS", residues.res_name))
    (one,), (other,) = score_sequences(model, [residues]), score_sequences(model, [plain])
    assert np.array_equal(one.log_probs, other.log_probs)
