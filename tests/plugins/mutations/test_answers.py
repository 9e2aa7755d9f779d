"""Calls, spread, burial and percentile of mutations: printed, in tables, and only with a card that supports them."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pytest
from biotite.structure import sasa
from biotite.structure.io.pdbx import BinaryCIFFile, get_structure
from protgraph_plugins.ddg.trained_scorers import TrainedMutationScorer
from protgraph_plugins.mutations import BindingScorer, EnsembleScorer, parse_mutations, scan_mutations
from protgraph_plugins.mutations.answers import relative_sasa, scan_columns
from protgraph_plugins.mutations.scorer import call_rules, name_of_call, score_with_spread
from protgraph_plugins.trained.registered import DDG

from protgraph.structure.io import read_residues

pytestmark = pytest.mark.usefixtures("proteinmpnn_folder")


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return structures_dir / "1ubq.bcif"


@pytest.fixture(scope="module")
def scorer(proteinmpnn_folder):
    return TrainedMutationScorer(device="cpu")


def rows_of(path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_score_is_the_mean_of_the_members_and_the_spread_their_deviation(scorer, ubiquitin) -> None:
    residues = read_residues(ubiquitin)
    variants = [parse_mutations(text) for text in ("A:I3A", "A:G47D", "A:I3A+A:G47D")] + [()]
    members = scorer.score_members(residues, variants)
    assert members.shape == (8, 4) and (members[:, 3] == 0).all()
    alone = [TrainedMutationScorer(device="cpu") for _ in range(2)]
    for number, one in enumerate(alone):
        one.members = one.members[number : number + 1]
        np.testing.assert_allclose(one.score(residues, variants), members[number], atol=1e-6)
    scored = score_with_spread(scorer, residues, variants)
    np.testing.assert_array_equal(scored.values, scorer.score(residues, variants))
    mean = members.sum(0) / 8
    np.testing.assert_allclose(scored.spread, np.sqrt(((members - mean) ** 2).sum(0) / 7), atol=1e-12)
    assert (scored.spread[:3] > 0.01).all()


def test_calls_are_printed_and_written_for_single_mutations_only(run, ubiquitin, tmp_path) -> None:
    (tmp_path / "m.csv").write_text("mutations\nA:I3A\nA:G47D\nA:I3A+A:G47D\nWT\n")
    options = ["--table", tmp_path / "m.csv", "--device", "cpu"]
    result = run("mutate", ubiquitin, *options)
    assert result.code == 0, result.err
    rules = {rule.name: rule for rule in DDG.card().calls}
    assert rules["destabilizing"].sentence in result.out and " ± " in result.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.csv"]

    result = run("mutate", ubiquitin, *options, "--percentile", "-o", tmp_path / "o.csv")
    assert result.code == 0, result.err
    rows = rows_of(tmp_path / "o.csv")
    for row in rows[:2]:
        assert rules[row["call"]].applies(float(row["ddg_kcal_mol"]))
    assert [row["call"] for row in rows[2:]] == ["", ""] and rows[0]["call"] == "destabilizing"
    assert all(0 <= float(row["percentile"]) <= 100 for row in rows[:3])
    assert float(rows[0]["relative_sasa"]) < 0.05 < 0.3 < float(rows[1]["relative_sasa"])


def test_a_scan_has_calls_and_percentiles_of_the_scanned_substitutions(run, scorer, ubiquitin, tmp_path) -> None:
    options = ["--positions", "A:3-5", "--no-heat-map", "-o", tmp_path / "s.csv", "--device", "cpu"]
    result = run("scan", ubiquitin, *options)
    assert result.code == 0, result.err
    rows = rows_of(tmp_path / "s.csv")
    changed = [row for row in rows if row["wild_type"] != row["mutant"]]
    assert len(rows) == 60 and all(row["call"] == "" for row in rows if row not in changed)
    scores = np.array([float(row["ddg_kcal_mol"]) for row in changed])
    expected = [100 * ((scores < s).sum() + 0.5 * (scores == s).sum()) / 57 for s in scores]
    np.testing.assert_allclose([float(row["percentile"]) for row in changed], expected, atol=1e-3)
    counts = Counter(row["call"] for row in changed)
    assert all(f"{number} {name}" in result.out for name, number in counts.items())
    scan = scan_mutations(scorer, read_residues(ubiquitin), [2, 3, 4])
    spread = np.array(scan_columns(scorer, scan)["spread"])
    np.testing.assert_allclose([float(row["spread"]) for row in rows], spread, atol=1e-6)


def test_burial_is_the_accessible_surface_of_biotite(ubiquitin) -> None:
    atoms = get_structure(BinaryCIFFile.read(ubiquitin), model=1, altloc="occupancy")
    atoms = atoms[~atoms.hetero & (atoms.element != "H")]
    area = sasa(atoms, point_number=1000, vdw_radii="ProtOr")
    largest = {"MET": 224.0, "ILE": 197.0, "LYS": 236.0}  # Tien et al. 2013, table 1, theoretical
    relative = relative_sasa(read_residues(ubiquitin))
    for number, name in ((1, "MET"), (3, "ILE"), (6, "LYS"), (48, "LYS")):
        of_residue = (atoms.res_id == number) & (atoms.res_name == name)
        assert relative[number - 1] == pytest.approx(area[of_residue].sum() / largest[name], abs=0.03)


def test_nothing_is_called_without_a_card_that_supports_it(run, scorer, ubiquitin, tmp_path) -> None:
    arguments = ["mutate", ubiquitin, "--mutations", "A:I3A", "--model", "proteinmpnn.v_48_020"]
    result = run(*arguments, "-o", tmp_path / "o.csv", "--device", "cpu")
    assert result.code == 0 and "no calls" in result.out
    assert not {"call", "spread"} & set(rows_of(tmp_path / "o.csv")[0])
    weights = DDG.folder / "model.safetensors"
    copy = tmp_path / "copied.safetensors"
    copy.write_bytes(weights.read_bytes())
    assert not TrainedMutationScorer(weights=str(copy), device="cpu").calls
    assert TrainedMutationScorer(weights=str(weights), device="cpu").calls == scorer.calls
    assert not call_rules(BindingScorer(scorer, [["A"], ["B"]])) and not call_rules(EnsembleScorer([scorer, scorer]))
    assert name_of_call(scorer.calls, float("nan")) == ""


def test_options_of_log_odds_select_proteinmpnn(run, ubiquitin, tmp_path) -> None:
    arguments = ["mutate", ubiquitin, "--mutations", "A:I3A", "--device", "cpu", "-o"]
    assert run(*arguments, tmp_path / "a.csv").code == 0
    assert run(*arguments, tmp_path / "b.csv", "--mode", "unconditional").code == 0
    assert rows_of(tmp_path / "a.csv")[0]["model"] == "ddg"
    assert rows_of(tmp_path / "b.csv")[0]["model"] == "proteinmpnn.v_48_020"
