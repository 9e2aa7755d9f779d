"""Pairs of similar structures: planted copies, the letters that exclude pairs, blocks and workers."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.similarity import (
    ChainTrace,
    StructureRule,
    align_structures,
    cluster_pairs,
    find_structure_pairs,
    structure_pairs,
)
from protgraph_plugins.similarity.local_alignment import STRUCTURAL, local_aligner
from protgraph_plugins.similarity.structure_pairs import structural_letters
from scipy.spatial.transform import Rotation

from protgraph.errors import OptionError
from protgraph.structure import clean, load_structure

NAMES = ("1rx2", "1drf", "4hhb", "1or4", "1gya", "1crn", "1ubq")


@pytest.fixture(scope="module")
def backbones(structures_dir):
    found = []
    for name in NAMES:
        residues = clean(load_structure(structures_dir / f"{name}.bcif"))
        found.append(residues.chains(residues.chain_names[0]).backbone.astype(np.float64))
    return found


@pytest.fixture(scope="module")
def chains(backbones):
    """Return the chains, a rotated copy of the first with noise, a part of it, and a peptide."""
    rotation = Rotation.random(random_state=0).as_matrix()
    noise = np.random.default_rng(0).normal(0, 0.2, backbones[0].shape)
    copies = [backbones[0] @ rotation.T + noise, backbones[0][:70], backbones[0][:12]]
    return [ChainTrace.of_backbone(part) for part in (*backbones, *copies)]


@pytest.fixture(scope="module")
def found(chains):
    return find_structure_pairs(chains)


def pairs_of(found) -> set[tuple[int, int]]:
    return set(zip(found.first.tolist(), found.second.tolist(), strict=True))


def test_similar_chains_are_found_and_linked(chains, found):
    assert pairs_of(found) == {(0, 1), (0, 7), (1, 7), (2, 3)}  # the reductases and a copy, the globins
    assert found.left_out == 1  # the peptide
    assert found.aligned < found.compared
    clusters = cluster_pairs(found.number, found.first, found.second)
    assert clusters.tolist() == [0, 0, 1, 1, 2, 3, 4, 0, 5, 6]
    shorter = find_structure_pairs(chains, StructureRule(normalized_by="shorter"))
    assert {(0, 8), (1, 8), (7, 8)} <= pairs_of(shorter)  # the part


def test_scores_are_those_of_the_alignments(chains, found):
    for a, b, tm in zip(found.first, found.second, found.tm, strict=True):
        pair = align_structures(chains[a].pos, chains[b].pos)
        assert tm == pytest.approx(min(pair.first_tm, pair.second_tm), abs=2e-3)


def test_without_letters_all_pairs_are_aligned_with_the_same_result(chains, found):
    exhaustive = find_structure_pairs([ChainTrace(chain.pos) for chain in chains])
    assert exhaustive.aligned == exhaustive.compared > found.aligned
    assert pairs_of(exhaustive) == pairs_of(found)


def test_pairs_of_a_group_are_left_out(chains):
    groups = [0, 0, 1, 2, 0, 0, 0, 1, 0, 0]
    assert pairs_of(find_structure_pairs(chains, groups=groups)) == {(0, 7), (1, 7), (2, 3)}


def test_interrupted_search_continues_from_its_blocks(chains, tmp_path, monkeypatch):
    monkeypatch.setattr(structure_pairs, "_CELLS", 20_000)
    chains, steps = chains[:4], []
    expected = find_structure_pairs(chains, cache=tmp_path)
    files = sorted(tmp_path.rglob("*.npz"))
    assert len(files) > 2
    files[0].unlink()
    calls = []
    original = structure_pairs.align_structures
    monkeypatch.setattr(structure_pairs, "align_structures", lambda *a, **k: calls.append(1) or original(*a, **k))
    found = find_structure_pairs(chains, cache=tmp_path, report=lambda *step: steps.append(step))
    assert pairs_of(found) == pairs_of(expected)
    assert 0 < len(calls) < found.aligned
    assert steps[-1] == (found.compared, found.compared)


def test_engines_of_the_letters_agree(chains):
    pytest.importorskip("parasail")
    first, second = (local_aligner(chains[0].letters, STRUCTURAL, engine) for engine in ("parasail", "biotite"))
    scores = [(first(chain.letters, 0).score, second(chain.letters, 0).score) for chain in chains if chain.letters]
    assert len({a for a, _ in scores}) > 4
    assert all(a == b for a, b in scores)


def test_letters_are_those_of_biotite(structures_dir, backbones):
    from biotite.structure import filter_amino_acids
    from biotite.structure.alphabet import to_3di

    atoms = load_structure(structures_dir / "1ubq.bcif").atoms
    expected = str(to_3di(atoms[filter_amino_acids(atoms)])[0][0])
    ours = structural_letters(backbones[NAMES.index("1ubq")])
    assert len(ours) == len(expected) == 76
    assert np.mean([a == b for a, b in zip(ours, expected, strict=True)]) > 0.9  # biotite uses the CB of the file


def test_trace_of_ca_atoms_alone_has_no_letters(backbones):
    backbone = backbones[0].copy()
    backbone[:, [0, 2, 3]] = np.nan
    backbone[5] = np.nan
    trace = ChainTrace.of_backbone(backbone)
    assert len(trace) == len(backbone) - 1 and trace.letters == ""


@pytest.mark.parametrize("options", [{"tm": 0.1}, {"tm": 1.5}, {"normalized_by": "mean"}])
def test_invalid_rules_are_refused(options):
    with pytest.raises(OptionError):
        StructureRule(**options)
