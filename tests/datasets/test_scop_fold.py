"""Dataset scop_fold: chains of five collections, splits by superfamily."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_datasets.scop_fold.dataset import FOLDER, ScopFold, read_backbone
from protgraph_plugins.published import SourceFolder, prepare_dataset, read_tsv

from protgraph.errors import DatasetError
from protgraph.structure import clean
from tests.datasets.public_layouts import lay_out_cgdms, lay_out_eigenfold, lay_out_lbs_comparison, lay_out_mutils


def test_backbones_of_cgdms_are_chains_with_three_atoms_per_residue(tmp_path):
    xyz = np.random.default_rng(0).normal(scale=10, size=(5, 4, 3)).round(3)
    lines = [" ".join(map(str, row)) for row in xyz.reshape(-1, 12).tolist()]
    (tmp_path / "1ABA_B.txt").write_text("\n".join(["MKVYX", "CCCCC", *lines]) + "\n")
    residues = clean(read_backbone(tmp_path / "1ABA_B.txt"))
    assert residues.sequence == "MKVYX" and residues.ids == [f"B:{i}" for i in range(1, 6)]
    np.testing.assert_allclose(residues.backbone[:, :3], xyz[:, :3], atol=1e-5)
    assert np.isnan(residues.backbone[:, 3]).all()


@pytest.mark.parametrize("prefix", ["", "LBS-comparison"])
def test_a_folder_with_clones_or_with_their_files_is_read(tmp_path, prefix):
    first = read_tsv(FOLDER / "domains.tsv.gz")[0]
    path = tmp_path / prefix / first["path"]
    path.parent.mkdir(parents=True)
    path.touch()
    proteins = ScopFold(folder=str(tmp_path / "a")).convert(SourceFolder(tmp_path, tmp_path))
    protein = next(proteins)
    assert (protein.id, protein.path, protein.cluster) == ("ligysis_1a52_A", path, "a.123.1")
    with pytest.raises(DatasetError, match=r"trans\.pdb"):
        next(proteins)


@pytest.mark.slow
def test_the_real_collections_give_the_counts_of_the_card_and_no_superfamily_is_in_two_splits(shared_data, tmp_path):
    rows, source = read_tsv(FOLDER / "domains.tsv.gz"), tmp_path / "source"
    names = {row["path"].rpartition("/")[2].partition(".")[0] for row in rows}
    lay_out_lbs_comparison(shared_data / "benchmark" / "ligysis_human_chains" / "lbs_heavy.npz", source, names)
    lay_out_cgdms(shared_data / "embedded" / "cgdms_chains.npz", source, names)
    lay_out_eigenfold(shared_data / "quality", source / "EigenFold")
    lay_out_mutils(shared_data / "mutations" / "skempi_v2", source / "mutils")
    dataset = ScopFold(folder=str(tmp_path / "a"))
    assert prepare_dataset(dataset, source).proteins == 2087  # raises where counts differ
    splits: dict[str, set[str]] = {}
    for row in dataset.rows.values():
        splits.setdefault(row["cluster"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())
    example = dataset.examples("scop_fold")[0]
    names = dataset.target("scop_fold").names
    assert (
        names[int(dataset.labels("scop_fold", example).value)] == dataset.rows[example.id]["cluster"].rsplit(".", 1)[0]
    )
