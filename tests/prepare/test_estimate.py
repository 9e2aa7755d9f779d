"""The estimate of a dry run agrees with the real run, and is exact if all files are measured."""

from __future__ import annotations

import shutil

import pytest

from protgraph.errors import DatasetError
from protgraph.featurize import FeaturePlan
from protgraph.prepare import estimate_store, prepare_store
from protgraph.registry.component import component


@pytest.mark.slow
@pytest.mark.parametrize("sample", [1000, 40])
def test_residues_and_bytes_agree_with_the_real_run_on_files_of_mixed_sizes(tmp_path, structures_dir, sample):
    files, plan = sorted(structures_dir.iterdir())[:120], FeaturePlan(["dihedral", component("knn", k=8)])
    (tmp_path / "x.pdb").write_text("broken")
    files.append(tmp_path / "x.pdb")
    found = estimate_store(files, plan, jobs=0, sample=sample)
    real = prepare_store(files, tmp_path / "s", plan, jobs=0)
    assert found.files == 121 and found.shards == len(real.shards) and found.seconds > 0
    assert found.sample == min(sample, 121)
    if sample > 121:
        assert found.failed == 1
        assert (found.residues, found.bytes) == (real.total("residues"), real.total("bytes"))
    else:
        assert found.residues == pytest.approx(real.total("residues"), rel=0.2)
        assert found.bytes == pytest.approx(real.total("bytes"), rel=0.2)
    shutil.rmtree(tmp_path / "s")


def test_nothing_to_estimate_raises():
    with pytest.raises(DatasetError, match="no inputs"):
        estimate_store([], FeaturePlan(["knn"]), jobs=0)
