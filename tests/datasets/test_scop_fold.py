"""Dataset scop_fold: chains of five collections, splits by superfamily."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_datasets.scop_fold.dataset import ScopFold, read_backbones

from protgraph.data.datasets.preparation import prepare_dataset
from protgraph.structure import clean


def test_backbones_of_the_archive_are_chains_with_three_atoms_per_residue(tmp_path):
    rng = np.random.default_rng(0)
    sequences = {"1ABA_A": "MKVYX", "1AHO_B": "GWR"}
    xyz = rng.integers(-3000, 3000, (8, 4, 3)).astype(np.int16)
    letters = np.frombuffer("".join(sequences.values()).encode(), np.uint8)
    lengths = np.array([len(s) for s in sequences.values()], np.uint16)
    np.savez(tmp_path / "a.npz", ids=np.array(list(sequences)), length=lengths, seq=letters, xyz=xyz)
    first = 0
    for (name, sequence), (found, read, content) in zip(
        sequences.items(), read_backbones(tmp_path / "a.npz"), strict=True
    ):
        residues = clean(read())
        end = first + len(sequence)
        assert found == name and residues.sequence == sequence and set(residues.chain) == {name[-1]}
        np.testing.assert_allclose(residues.backbone[:, :3], xyz[first:end, :3] / 100, atol=1e-4)
        assert np.isnan(residues.backbone[:, 3]).all() and content
        first = end


@pytest.mark.slow
def test_the_real_collections_give_the_counts_of_the_card_and_no_superfamily_is_in_two_splits(shared_data, tmp_path):
    dataset = ScopFold(folder=str(tmp_path / "a"))
    assert prepare_dataset(dataset, shared_data).proteins == 2087  # raises where counts differ
    splits: dict[str, set[str]] = {}
    for row in dataset.rows.values():
        splits.setdefault(row["cluster"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())
    example = dataset.examples("scop_fold")[0]
    names = dataset.target("scop_fold").names
    assert (
        names[int(dataset.labels("scop_fold", example).value)] == dataset.rows[example.id]["cluster"].rsplit(".", 1)[0]
    )
