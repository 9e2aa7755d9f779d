"""Ranked designs: averaged scores, merged duplicates, structure files, options per file, and several states."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from biotite.sequence import ProteinSequence
from biotite.structure import get_residues, stack
from biotite.structure.io import load_structure, save_structure
from protgraph_plugins.design import (
    DesignSpec,
    design_sequences,
    design_states,
    encode,
    rank_designs,
    ranking_table,
    read_design_specs,
    read_states,
    score_sequences,
    write_design_structures,
)
from protgraph_plugins.design.sampling import SamplingRequest

import protgraph as pg
from protgraph.errors import OptionError
from protgraph.structure import ALPHABET, ReadOptions


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def design(model, ubiquitin):
    spec = DesignSpec(redesign="A:45-47,60")
    return next(design_sequences(model, [ubiquitin], spec, copies=40, temperature=0.5))


def test_redesign_changes_only_the_named_residues(design, ubiquitin):
    assert [ubiquitin.ids[i] for i in np.flatnonzero(design.designed)] == ["A:45", "A:46", "A:47", "A:60"]
    assert (design.aatype[:, ~design.designed] == ubiquitin.aatype[~design.designed]).all()
    others = DesignSpec(fixed="A:1-44,A:48-59,A:61-").constraints(ubiquitin).designed
    assert torch.equal(others, DesignSpec(redesign="45-47,60").constraints(ubiquitin).designed)


def test_duplicates_are_merged_and_scores_are_those_of_score_over_the_same_orders(model, design, ubiquitin):
    ranked = rank_designs(model, design, orders=3, seed=5)
    different = {tuple(types) for types in design.aatype.tolist()}
    assert len(ranked) == len(different) < 40 and sum(one.copies for one in ranked) == 40
    assert [one.score for one in ranked] == sorted(one.score for one in ranked)
    # Scores of a design of the whole protein are those of `score`, whose orders begin with no fixed residue.
    (whole,) = design_sequences(model, [ubiquitin], copies=3, temperature=1.0)
    for one in rank_designs(model, whole, orders=3, seed=5):
        letters = "".join(ALPHABET[t] for t in one.aatype)
        (scored,) = score_sequences(model, [ubiquitin], orders=3, seed=5, sequences=[("x", letters)])
        assert one.score == pytest.approx(scored.score, abs=1e-10)


def test_the_table_lists_mutations_and_identity(model, design, ubiquitin):
    table = ranking_table(design, rank_designs(model, design, orders=2))
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        mutated = list(ubiquitin.sequence)
        for text in filter(None, cells["mutations"].split("+")):
            old, number, new = text[2], int(text[3:-1]), text[-1]
            assert mutated[number - 1] == old != new
            mutated[number - 1] = new
        assert "".join(mutated) == cells["sequence"]
        assert cells["sequence_identity"] == pytest.approx(1 - cells["n_mutations"] / 4)


def test_structure_files_have_the_designed_sequence_and_no_foreign_side_chains(model, design, ubiquitin, tmp_path):
    ranked = rank_designs(model, design, orders=1)
    for suffix in (".cif", ".pdb"):
        paths = write_design_structures(tmp_path / suffix[1:], design, ranked[:3], suffix=suffix)
        for path, one in zip(paths, ranked, strict=False):
            atoms = load_structure(path)
            numbers, names = get_residues(atoms)
            letters = "".join(ProteinSequence.convert_letter_3to1(name) for name in names)
            assert letters == "".join(ALPHABET[t] for t in one.aatype) and numbers.tolist() == list(range(1, 77))
            for row in np.flatnonzero(one.aatype != ubiquitin.aatype).tolist():
                kept = set(atoms.atom_name[atoms.res_id == row + 1])
                assert {"N", "CA", "C", "O"} <= kept <= {"N", "CA", "C", "O", "CB"}
                assert ("CB" in kept) <= (names[row] != "GLY")
            unchanged = ~np.isin(atoms.res_id, np.flatnonzero(one.aatype != ubiquitin.aatype) + 1)
            assert unchanged.sum() > 500


def test_states_do_not_see_each_other_and_get_one_sequence(model, ubiquitin):
    small = ubiquitin.select(np.arange(len(ubiquitin)) < 20)  # fewer residues than neighbors of a residue
    shift = np.float32(64.0)
    moved = {name: getattr(small, name) + shift for name in ("pos", "backbone", "atom_pos")}
    near = design_states(model, [small, small], copies=3, temperature=[0.0])
    far = design_states(model, [small, replace(small, **moved)], copies=3, temperature=[0.0])
    np.testing.assert_array_equal(near.aatype, far.aatype)
    np.testing.assert_allclose(near.score, far.score, atol=1e-4)

    # Scores over two equal states are those of one.
    both = design_states(model, [small, small], copies=4, temperature=[0.0])
    assert both.aatype.shape == (4, 20) and np.isfinite(both.score).all()
    ranked = rank_designs(model, both, orders=2, states=[small, small])
    alone = {tuple(r.aatype): r.score for r in rank_designs(model, both, orders=2)}
    assert all(r.score == pytest.approx(alone[tuple(r.aatype)], abs=1e-12) for r in ranked)
    with pytest.raises(OptionError, match="same residues"):
        design_states(model, [small, ubiquitin])


def test_logits_of_states_are_averaged(model, ubiquitin):
    """One free residue: its type is the one with the largest mean of the logits of both states."""
    small = ubiquitin.select(np.arange(len(ubiquitin)) < 24)
    other = small.with_noise(2.0, seed=3)
    spec = DesignSpec(redesign="A:12")
    design = design_states(model, [small, other], spec, temperature=[0.0])
    logits = []
    for state in (small, other):
        decoding = encode(model, [state])
        rank = torch.arange(24)
        rank[11] = 100  # decoded last
        h = decoding.decoder.teacher_force(decoding.start(copies=0), decoding.aatype, rank)
        logits.append(decoding.head(h)[11, :20])
    assert design.aatype[0, 11] == int((logits[0] + logits[1]).argmax())


def test_models_of_a_file_are_states(ubiquitin, structures_dir, tmp_path):
    atoms = pg.to_atom_array(ubiquitin)
    moved = [atoms.copy() for _ in range(3)]
    for number, model in enumerate(moved):
        model.coord = model.coord + np.float32(number)
    file = tmp_path / "nmr.pdb"
    save_structure(file, stack(moved))
    states = read_states(str(file), ReadOptions(), "1,3")
    assert states[0].ids == states[1].ids and np.allclose(states[1].pos - states[0].pos, 2.0, atol=1e-3)
    assert len(read_states(str(file), ReadOptions(), "all")) == 3
    for text in ("1", "1,1", "a", "0,1"):
        with pytest.raises(OptionError, match="states"):
            read_states(str(file), ReadOptions(), text)
    with pytest.raises(OptionError, match="one model"):
        read_states(str(structures_dir / "1ubq.bcif"), ReadOptions(), "all")


def test_options_per_file_replace_those_of_the_command_line(tmp_path):
    path = tmp_path / "o.csv"
    path.write_text('file,redesign,chains,tied\na.cif,A:4-6,"A,B",\nb.cif,,,"A,B;C,D"\n')
    base = DesignSpec(redesign="A:1", omit="C")
    specs = read_design_specs(path, base)
    assert specs["a.cif"] == DesignSpec(redesign="A:4-6", omit="C", chains=("A", "B"))
    assert specs["b.cif"] == DesignSpec(redesign="A:1", omit="C", tied=("A,B", "C,D"))
    path.write_text("file,size\na.cif,x\n")
    with pytest.raises(OptionError, match="wrong columns"):
        read_design_specs(path, base)


@pytest.mark.usefixtures("proteinmpnn_folder")
def test_the_command_designs_one_sequence_for_the_models_of_a_file(run, ubiquitin, tmp_path):
    atoms = pg.to_atom_array(ubiquitin)
    other = atoms.copy()
    other.coord = other.coord + np.float32(1.0)
    save_structure(tmp_path / "nmr.pdb", stack([atoms, other]))
    arguments = ["design", tmp_path / "nmr.pdb", "--states", "all", "--n", 2, "--orders", 1, "--device", "cpu"]
    result = run(*arguments, "--redesign", "A:45-46", "-o", tmp_path / "d.fasta")
    assert result.code == 0 and "one sequence for 2 states" in result.out, result.err
    assert len((tmp_path / "d.fasta").read_text().splitlines()) == 6
    result = run(*arguments, "--noise", 0.1)
    assert result.code == 2 and "--noise" in result.err


@pytest.mark.usefixtures("proteinmpnn_folder")
def test_the_command_prints_and_writes_the_ranked_table(run, structures_dir, tmp_path):
    file = structures_dir / "1ubq.bcif"
    result = run("design", file, "--redesign", "A:45-50", "--n", 6, "--orders", 2, "--device", "cpu")
    assert result.code == 0, result.err
    assert "different sequence" in result.out and "rank   score" in result.out and not list(tmp_path.iterdir())

    options = tmp_path / "options.csv"
    options.write_text("file,redesign\n1ubq.bcif,A:45-46\n")
    arguments = ["design", file, "--options", options, "--n", 3, "--orders", 2, "--device", "cpu"]
    arguments += ["--structures", tmp_path / "models"]
    result = run(*arguments, "-o", tmp_path / "d.fasta")
    assert result.code == 0, result.err
    with open(tmp_path / "d.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["rank"] for row in rows] == [str(i + 1) for i in range(len(rows))]
    assert sum(int(row["copies"]) for row in rows) == 3
    numbers = {text[3:5] for row in rows for text in filter(None, row["mutations"].split("+"))}
    assert numbers <= {"45", "46"}
    assert len(list((tmp_path / "models").iterdir())) == len(rows)
    before = (tmp_path / "d.csv").read_bytes()
    assert run(*arguments, "-o", tmp_path / "d.fasta").code == 2  # nothing is replaced
    assert run("design", file, "--bias", tmp_path / "d.csv", "-o", tmp_path / "d.fa").code == 2
    assert (tmp_path / "d.csv").read_bytes() == before
    options.write_text("file,redesign\nother.cif,A:45-46\n")
    result = run("design", file, "--options", options, "-o", tmp_path / "e.fasta")
    assert result.code == 2 and "'other.cif'" in result.err


@pytest.mark.usefixtures("proteinmpnn_folder")
@pytest.mark.parametrize("states", [False, True])
def test_a_long_run_prints_an_estimate_and_a_short_one_does_not(states, run, ubiquitin, tmp_path, monkeypatch):
    atoms = pg.to_atom_array(ubiquitin)
    save_structure(tmp_path / "two.pdb", stack([atoms, atoms]))
    options = ("--states", "1,2") if states else ()
    arguments = [
        "design",
        tmp_path / "two.pdb",
        "--redesign",
        "A:5",
        *options,
        "--n",
        3,
        "--orders",
        0,
        "--device",
        "cpu",
    ]
    assert "estimate" not in run(*arguments).err
    clock = iter(range(0, 10_000, 15))  # s between two looks at the clock
    monkeypatch.setattr("protgraph_plugins.design.design_command.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(SamplingRequest, "chunks", lambda *_: iter([range(1), range(1, 3)]))
    assert "estimate: 3 sequences, about 30 s\n" in run(*arguments).err  # one took 15 s, two are left


@pytest.mark.usefixtures("proteinmpnn_folder")
def test_standard_output_has_nothing_but_the_sequences(run, structures_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["design", structures_dir / "1crn.bcif", "--redesign", "A:5-8", "--n", 2, "--device", "cpu"]
    result = run(*arguments, "-o", "-")
    assert result.code == 0 and "rank" in result.err and not list(tmp_path.iterdir())
    run(*arguments, "-o", "d.fasta")
    assert result.out == Path("d.fasta").read_text()
