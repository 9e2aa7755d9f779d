"""Features of real alignments are equal to loops over sequences and columns that follow the papers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.alignment import align_protein
from protgraph_plugins.alignment.coupling import coupling_scores
from protgraph_plugins.alignment.profile import BACKGROUND
from scipy.sparse import csr_array

import protgraph as pg
from protgraph.data import collate
from protgraph.errors import AlignmentError, OptionError
from protgraph.featurize import FeaturePlan
from protgraph.structure import GAP, Alignment

LETTERS = "ACDEFGHIKLMNPQRSTVWYX-"
# Of the program of Capra & Singh 2007, in its order.
FREQUENCIES = ".078 .051 .041 .052 .024 .034 .059 .083 .025 .062 .092 .056 .024 .044 .043 .059 .055 .014 .034 .072"
PUBLISHED = dict(zip("ARNDCQEGHILKMFPSTWYV", map(float, FREQUENCIES.split()), strict=True))


@pytest.fixture(scope="module")
def aligned(protein, a3m_file):
    return replace(protein, alignment=align_protein(protein, [str(a3m_file)]))


@pytest.fixture(scope="module")
def rows(aligned) -> list[str]:
    return ["".join(LETTERS[t] for t in row) for row in aligned.alignment.rows]


@pytest.fixture(scope="module")
def weights(rows) -> list[float]:
    similar = [[sum(a == b for a, b in zip(x, y, strict=True)) >= 0.8 * len(x) for y in rows] for x in rows]
    return [1 / sum(row) for row in similar]


def compute(aligned, name, **options):
    return pg.build_graph(aligned, [pg.component(name, **options)])


def test_weights_count_similar_sequences(aligned, weights):
    np.testing.assert_allclose(aligned.alignment.weights, weights, rtol=1e-14)
    assert 1 < sum(weights) < len(weights)
    assert compute(aligned, "effective_sequences").effective_sequences.item() == pytest.approx(sum(weights), rel=1e-6)


def test_weights_of_wide_alignments_compare_every_column():
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.integers(0, 22, (1, 131)), 12, 0).astype(np.uint8)
    for number in range(12):  # 0 to 33 columns differ; 26 of 131 are the limit
        rows[number, 131 - 3 * number :] = (rows[number, 131 - 3 * number :] + 1) % 22
    expected = [1 / sum((x == y).mean() >= 0.8 for y in rows) for x in rows]
    np.testing.assert_allclose(Alignment(rows, None).weights, expected)


def test_frequencies_scores_and_gaps_are_weighted_sums(aligned, rows, weights):
    frequency = compute(aligned, "residue_frequency", pseudocount=2.0).residue_frequency
    pssm = compute(aligned, "pssm", pseudocount=2.0).pssm
    gaps = compute(aligned, "gap_fraction").gap_fraction
    total = sum(PUBLISHED.values())
    for column in range(0, len(rows[0]), 5):
        letters = [row[column] for row in rows]
        known = sum(w for w, a in zip(weights, letters, strict=True) if a not in "X-")
        for number, letter in enumerate(LETTERS[:20]):
            count = sum(w for w, a in zip(weights, letters, strict=True) if a == letter)
            p = PUBLISHED[letter] / total
            f = (count + 2.0 * p) / (known + 2.0)
            assert frequency[column, number].item() == pytest.approx(f, rel=1e-5)
            assert pssm[column, number].item() == pytest.approx(math.log2(f / p), abs=1e-5)
        share = sum(w for w, a in zip(weights, letters, strict=True) if a == "-") / sum(weights)
        assert gaps[column].item() == pytest.approx(share, rel=1e-5)


def conservation_in_loops(rows: list[str], max_gaps: float) -> list[float]:
    """Compute the score of Capra & Singh 2007 with sequence weights of Henikoff & Henikoff 1994, column by column."""
    rows = [row.replace("X", "-") for row in rows]
    columns = list(zip(*rows, strict=True))
    weights = [0.0] * len(rows)
    for column in columns:
        types = {letter for letter in column if letter != "-"}
        for s, letter in enumerate(column):
            weights[s] += 1 / (len(types) * column.count(letter)) if letter != "-" else 0.0
    scores: list[float | None] = []
    for column in columns:
        if column.count("-") / len(column) > max_gaps:
            scores.append(None)
            continue
        counts = {a: 1e-7 + sum(w for w, b in zip(weights, column, strict=True) if a == b) for a in PUBLISHED}
        total = sum(counts.values())
        divergence = 0.0
        for letter, p in PUBLISHED.items():
            f = counts[letter] / total
            r = (f + p) / 2
            divergence += (f * math.log2(f / r) + p * math.log2(p / r)) / 2
        gaps = sum(w for w, b in zip(weights, column, strict=True) if b == "-")
        scores.append(divergence * (1 - gaps / sum(weights)))
    smooth = list(scores)
    for i in range(3, len(scores) - 3):
        beside = [scores[j] for j in range(i - 3, i + 4) if j != i and scores[j] is not None]
        if scores[i] is not None and beside:
            smooth[i] = 0.5 * scores[i] + 0.5 * sum(beside) / len(beside)
    return [0.0 if score is None else score for score in smooth]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_conservation_follows_the_paper(aligned, rows, share):
    max_gaps = float(np.quantile((aligned.alignment.rows == GAP).mean(0), share))  # of half the columns, and of all
    expected = conservation_in_loops(rows, max_gaps)
    score = compute(aligned, "conservation", max_gaps=max_gaps).conservation[:, 0].tolist()
    assert score == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert max(expected) > 0.3 and (min(expected) == 0.0) == (share < 1)


def coupling_in_loops(rows: list[str], weights: list[float]) -> np.ndarray:
    """Compute mean-field couplings of Morcos et al. 2011, their norms, and the correction of Dunn et al. 2008."""
    states = [["ACDEFGHIKLMNPQRSTVWY-".index(a.replace("X", "-")) for a in row] for row in rows]
    n, total = len(rows[0]), sum(weights)
    single, pair = np.full((n, 21), total / 21), np.full((n, n, 21, 21), total / 21**2)
    for w, row in zip(weights, states, strict=True):
        for i in range(n):
            single[i, row[i]] += w
            for j in range(n):
                pair[i, j, row[i], row[j]] += w
    single, pair = single / (2 * total), pair / (2 * total)
    for i in range(n):
        pair[i, i] = np.diag(single[i])
    covariance = np.zeros((n * 20, n * 20))
    for i in range(n):
        for j in range(n):
            block = pair[i, j] - single[i][:, None] * single[j][None]
            covariance[20 * i : 20 * i + 20, 20 * j : 20 * j + 20] = block[:20, :20]
    e = -np.linalg.inv(covariance)
    norm = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            J = np.zeros((21, 21))
            J[:20, :20] = e[20 * i : 20 * i + 20, 20 * j : 20 * j + 20]
            J = J - J.mean(0)[None] - J.mean(1)[:, None] + J.mean()
            norm[i, j] = 0 if i == j else math.sqrt((J[:20, :20] ** 2).sum())
    mean = norm.sum(1) / (n - 1)
    corrected = norm - mean[:, None] * mean[None] / (norm.sum() / n / (n - 1))
    np.fill_diagonal(corrected, 0)
    return corrected


def test_couplings_follow_the_paper(aligned, rows):
    part = aligned.select(np.arange(len(aligned)) < 16)
    of_part = ["".join(LETTERS[t] for t in row) for row in part.alignment.rows]
    expected = coupling_in_loops(of_part, part.alignment.weights.tolist())
    np.testing.assert_allclose(coupling_scores(part.alignment), expected, rtol=1e-8, atol=1e-10)


def test_columns_that_vary_together_are_the_first_edges(protein):
    rng = np.random.default_rng(1)
    types = rng.integers(0, 20, (400, 30)).astype(np.uint8)
    types[:, 25] = (types[:, 4] + 7) % 20
    part = protein.select(np.arange(len(protein)) < 30)
    aligned = replace(part, alignment=Alignment(types, csr_array(types.shape, dtype=np.int32)))
    graph = compute(aligned, "coupling", per_residue=0.05)  # 1.5 pairs
    best = graph.edge_coupling.argmax()
    assert sorted(graph.edge_index[:, best].tolist()) == [4, 25]


def test_couplings_are_edges_beside_others(aligned):
    graph = pg.build_graph(aligned, [pg.component("knn", k=4), "coupling"])
    is_coupled = graph.edge_kind[:, 1] == 1
    assert int(is_coupled.sum()) == 2 * round(1.5 * len(aligned))
    assert (graph.edge_coupling[~is_coupled] == 0).all() and (graph.edge_coupling[is_coupled] != 0).all()
    offset = (graph.edge_index[0] - graph.edge_index[1]).abs()
    assert int(offset[is_coupled].min()) >= 4


def test_a_protein_that_is_too_long_for_couplings_is_an_error(protein):
    repeats = [replace(protein, chain=np.full(len(protein), str(i))) for i in range(17)]
    names = ("chain", "aatype", "seq_pos", "pos", "res_id")
    arrays = {name: np.concatenate([getattr(r, name) for r in repeats]) for name in names}
    with pytest.raises(OptionError, match="1292 residues"):
        pg.featurizers.create("coupling")(replace(protein, **arrays))


def test_rows_are_sampled_by_seed_and_batched(aligned, protein):
    first, again, other = (compute(aligned, "alignment", rows=16, seed=seed).alignment for seed in (0, 0, 1))
    assert first.shape == (76, 16) and first.dtype.is_signed
    assert (first == again).all() and not (first == other).all()
    assert (first[:, 0] == compute(aligned, "alignment", rows=16).aatype).all()
    whole = compute(aligned, "alignment", rows=100)
    assert (whole.alignment[:, 61:] == GAP + 1).all() and (whole.alignment[:, :61] <= GAP).all()
    assert (whole.alignment_deletions.sum() == aligned.alignment.deletions.sum()).all()
    half = compute(aligned.select(np.arange(76) < 30), "alignment", rows=100)
    batch = collate([whole, half])
    assert batch.alignment.shape == (106, 100)
    assert (batch[1].alignment == half.alignment).all()


def test_a_protein_without_an_alignment_is_an_error(protein):
    with pytest.raises(AlignmentError, match="--alignment"):
        compute(protein, "conservation")
    with pytest.raises(AlignmentError, match="--alignment"):
        pg.featurizers.create("conservation")(protein)
    assert FeaturePlan(["knn", "pssm"]).needs_alignment == "features[1] (pssm)"


def test_the_background_is_the_published_one():
    assert [PUBLISHED[letter] for letter in LETTERS[:20]] == pytest.approx(BACKGROUND.tolist())
