"""Local alignments of all pairs against a plain dynamic program, planted homologs, and both engines."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from biotite.sequence.align import SubstitutionMatrix
from protgraph_plugins.similarity import HomologyRule, cluster_homologs, find_homologs, homologs
from protgraph_plugins.similarity.homologs import evalue, least_score
from protgraph_plugins.similarity.local_alignment import ALIGNERS, PROTEIN, local_aligner

from protgraph.errors import OptionError

AMINO_ACIDS = list("ACDEFGHIKLMNPQRSTVWY")
ENGINE = [
    pytest.param("parasail", marks=pytest.mark.skipif(not find_spec("parasail"), reason="parasail is not installed")),
    "biotite",
]


def random_sequence(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(AMINO_ACIDS, length))


def mutate(rng: np.random.Generator, sequence: str, fraction: float) -> str:
    """Replace a fraction of the residues by other types."""
    letters = list(sequence)
    for i in rng.choice(len(letters), round(fraction * len(letters)), replace=False):
        letters[i] = rng.choice([a for a in AMINO_ACIDS if a != letters[i]])
    return "".join(letters)


def plain_score(a: str, b: str) -> int:
    """Smith & Waterman with Gotoh's affine gaps, cell by cell: a gap of k residues costs 11 + k."""
    matrix = SubstitutionMatrix.std_protein_matrix()
    best = np.zeros((len(a) + 1, len(b) + 1))
    down, right = np.full_like(best, -np.inf), np.full_like(best, -np.inf)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            down[i, j] = max(best[i - 1, j] - 12, down[i - 1, j] - 1)
            right[i, j] = max(best[i, j - 1] - 12, right[i, j - 1] - 1)
            best[i, j] = max(0, best[i - 1, j - 1] + matrix.get_score(x, y), down[i, j], right[i, j])
    return int(best.max())


@pytest.mark.parametrize("engine", ENGINE)
def test_score_is_that_of_the_plain_algorithm(engine):
    rng = np.random.default_rng(0)
    a = random_sequence(rng, 60)
    others = [mutate(rng, a, 0.5), mutate(rng, a[:25] + random_sequence(rng, 9) + a[25:], 0.3), a[:20] + a[31:]]
    for b in [*others, random_sequence(rng, 40), "WWWW"]:
        assert local_aligner(a, PROTEIN, engine)(b, 0).score == plain_score(a, b)


@pytest.mark.parametrize("engine", ENGINE)
def test_alignment_counts_columns_and_aligned_residues(engine):
    a = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ"
    align = local_aligner(a, PROTEIN, engine)
    found = align(a[:12] + a[15:] + "GGGG", 0)
    assert (len(found.pairs), found.columns, found.spans) == (30, 33, (33, 30))
    assert found.pairs.tolist() == [[i, i - 3 * (i > 12)] for i in range(33) if i not in (12, 13, 14)]
    assert align(a, 10_000) is None


def test_unknown_residues_are_not_identical():
    sequence = "MKTAYXAKQRQISFVKSHFSRQLEERLG"
    found = find_homologs([sequence, sequence[:-1] + "A"])
    assert found.identity.tolist() == [26 / 27]


@pytest.mark.parametrize("engine", ENGINE)
def test_planted_homologs_are_found_and_random_sequences_are_not(engine):
    rng = np.random.default_rng(1)
    a, b, c = (random_sequence(rng, n) for n in (150, 160, 120))
    relatives = [
        a,
        b,
        c,
        mutate(rng, a, 0.6),
        a[:60] + random_sequence(rng, 12) + mutate(rng, a[60:], 0.3),
        a,
        "X" * 90,
    ]
    found = find_homologs(relatives, engine=engine)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [
        (0, 3), (0, 4), (0, 5), (3, 4), (3, 5), (4, 5),
    ]  # fmt: skip
    assert found.identity[2] == 1
    assert found.identity[0] == pytest.approx(0.4, abs=0.03)
    clusters = cluster_homologs(found)
    assert clusters.tolist() == [0, 1, 2, 0, 0, 0, 3]


def test_coverage_of_the_shorter_chain_finds_a_shared_domain():
    rng = np.random.default_rng(2)
    domain = random_sequence(rng, 80)
    long = random_sequence(rng, 150) + mutate(rng, domain, 0.4) + random_sequence(rng, 100)
    assert len(find_homologs([domain, long])) == 0
    (coverage,) = find_homologs([long, domain], HomologyRule(coverage_of="shorter")).second_coverage
    assert coverage > 0.8


@pytest.mark.parametrize("engine", ENGINE)
def test_homologs_of_different_length_are_found(engine):
    """An insertion is covered from the first to the last aligned residue, so that it does not lower the coverage."""
    rng = np.random.default_rng(9)
    short = random_sequence(rng, 80)
    long = short[:40] + random_sequence(rng, 40) + short[40:]
    found = find_homologs([short, long], engine=engine)
    assert found.first_coverage.tolist() == found.second_coverage.tolist() == [1.0]
    assert 80 / 120 - 0.02 < found.identity[0] < 80 / 120 + 0.02


def test_the_window_of_lengths_has_every_homolog(monkeypatch):
    rng, rule = np.random.default_rng(10), HomologyRule(identity=0.7, coverage=0.9)
    parent = random_sequence(rng, 90)
    family = [
        parent[:n] + random_sequence(rng, inserted) + parent[n:] for n in (30, 60) for inserted in range(0, 40, 4)
    ]
    family += [mutate(rng, one[:-cut], 0.05) for one in family for cut in (10, 50)]
    windowed = find_homologs(family, rule)
    monkeypatch.setattr(HomologyRule, "last_partners", lambda self, lengths: np.full(len(lengths), len(lengths)))
    every = find_homologs(family, rule)
    assert windowed.aligned < every.aligned
    assert len(every) > 50
    assert (windowed.first.tolist(), windowed.second.tolist()) == (every.first.tolist(), every.second.tolist())


def test_pairs_of_one_group_are_left_out():
    rng = np.random.default_rng(3)
    a = random_sequence(rng, 100)
    same = [a, a, mutate(rng, a, 0.2), mutate(rng, a, 0.2)]
    found = find_homologs(same, groups=[0, 1, 1, 0])
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 3), (2, 3)]


@pytest.mark.slow
def test_result_does_not_depend_on_processes_blocks_and_order(monkeypatch):
    rng = np.random.default_rng(4)
    parents = [random_sequence(rng, n) for n in (60, 70, 80)]
    family = [mutate(rng, parents[i % 3], 0.3) for i in range(18)]
    whole = find_homologs(family)
    monkeypatch.setattr(homologs, "_CELLS", 20_000)
    parts, reversed_order = find_homologs(family, workers=2), find_homologs(family[::-1])
    for field in ("first", "second", "identity", "evalue"):
        assert np.array_equal(getattr(whole, field), getattr(parts, field))
    assert {(17 - j, 17 - i) for i, j in zip(reversed_order.first, reversed_order.second, strict=True)} == set(
        zip(whole.first, whole.second, strict=True)
    )


def test_interrupted_search_continues(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    a = random_sequence(rng, 60)
    family = [mutate(rng, a, 0.3) for _ in range(8)]
    monkeypatch.setattr(homologs, "_CELLS", 8_000)
    aligned: list[str] = []

    def counting(sequence: str, scoring: object, engine: str) -> object:
        aligned.append(sequence)
        return local_aligner(sequence, scoring, engine)

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(homologs, "local_aligner", counting)
    with pytest.raises(KeyboardInterrupt):
        find_homologs(family, cache=tmp_path, report=interrupt)
    before = len(aligned)
    found = find_homologs(family, cache=tmp_path)
    assert 0 < before < len(family) == len(set(aligned)) == len(aligned)
    assert np.array_equal(found.identity, find_homologs(family).identity)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("parasail"), reason="parasail is not installed")
def test_engines_find_the_same_pairs_with_the_same_scores(structures_dir):
    from protgraph.structure import clean, load_structure

    sequences = [clean(load_structure(p)).sequence for p in sorted(structures_dir.glob("*.bcif"))[::16]]
    rule = HomologyRule(identity=0, coverage=0, max_evalue=10)
    ours, theirs = (find_homologs(sequences, rule, engine=engine) for engine in ALIGNERS)
    assert np.array_equal(ours.first, theirs.first)
    assert np.array_equal(ours.second, theirs.second)
    assert np.array_equal(ours.evalue, theirs.evalue)
    assert np.abs(ours.identity - theirs.identity).max(initial=0) < 0.05  # other alignments of the same score


def test_least_score_is_the_first_of_a_significant_evalue():
    score = int(least_score(np.array([200]), 10**6, 1e-3)[0])
    assert evalue(score, 200, 10**6) <= 1e-3 < evalue(score - 1, 200, 10**6)


@pytest.mark.parametrize(
    "options", [{"identity": 30}, {"coverage": -0.1}, {"coverage_of": "longer"}, {"max_evalue": 0}]
)
def test_invalid_rules_name_the_option(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        HomologyRule(**options)


def test_unknown_engine_lists_the_engines():
    with pytest.raises(OptionError, match=r"blast.*parasail, biotite, mmseqs"):
        find_homologs(["MKTAY"], engine="blast")


SEARCH = """
import sys
from pathlib import Path
from protgraph_plugins.similarity import find_homologs, homologs
homologs._CELLS = 8_000
find_homologs(Path(sys.argv[1]).read_text().split(), cache=Path(sys.argv[2]), engine="biotite")
"""


@pytest.mark.slow
def test_killed_search_continues_with_its_finished_blocks(tmp_path, monkeypatch):
    rng = np.random.default_rng(7)
    parent = random_sequence(rng, 90)
    family = [mutate(rng, parent, 0.4) for _ in range(30)]
    (tmp_path / "family.txt").write_text("\n".join(family))
    cache = tmp_path / "cache"
    search = subprocess.Popen([sys.executable, "-c", SEARCH, str(tmp_path / "family.txt"), str(cache)])
    deadline = time.monotonic() + 60
    while len(list(cache.rglob("*.npz"))) < 3 and search.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    search.kill()
    assert search.wait() == -signal.SIGKILL  # it was not finished
    finished = {path: path.stat().st_mtime_ns for path in cache.rglob("*.npz")}
    monkeypatch.setattr(homologs, "_CELLS", 8_000)
    found = find_homologs(family, cache=cache, engine="biotite")
    assert 3 <= len(finished) < len(list(cache.rglob("*.npz")))
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    whole = find_homologs(family, engine="biotite")
    assert np.array_equal(found.second, whole.second)
    assert np.array_equal(found.identity, whole.identity)


def test_aligned_pairs_are_those_of_different_groups():
    rng = np.random.default_rng(8)
    sequences = [random_sequence(rng, 50) for _ in range(7)]
    reported = []
    found = find_homologs(
        [*sequences, sequences[0]], groups=[0, 0, 0, 0, 1, 1, 1, 0], report=lambda *counts: reported.append(counts)
    )
    assert found.aligned == 4 * 3
    assert reported[-1] == (12, 12)
    assert find_homologs(sequences).aligned == 21
