"""The estimate of a dry run agrees with the real run within its interval, and is exact if all files are measured."""

from __future__ import annotations

import shutil

import pytest

from protgraph.errors import DatasetError
from protgraph.featurize import FeaturePlan
from protgraph.prepare import estimate_store, prepare_store
from protgraph.registry.component import component


@pytest.mark.parametrize("sample", [1000, 40])
def test_residues_and_bytes_agree_with_the_real_run_on_files_of_mixed_sizes(tmp_path, structures_dir, sample):
    files, plan = sorted(structures_dir.iterdir())[:120], FeaturePlan(["dihedral", component("knn", k=8)])
    (tmp_path / "x.pdb").write_text("broken")
    files.append(tmp_path / "x.pdb")
    found = estimate_store(files, plan, jobs=0, sample=sample)
    real = prepare_store(files, tmp_path / "s", plan, jobs=0)
    assert found.files == 121 and found.shards == len(real.shards) and found.seconds.value > 0 and found.failed == 1
    for quantity, value in ((found.residues, real.total("residues")), (found.bytes, real.total("bytes"))):
        assert abs(quantity.value - value) <= (0.2 if sample < 121 else 0.02) * value
    if sample > 121:
        assert found.residues.interval == (real.total("residues"),) * 2 and found.sample == 121
    else:
        assert found.sample <= 51 and found.residues.interval[0] <= real.total("residues") <= found.residues.interval[1]
    shutil.rmtree(tmp_path / "s")


def test_nothing_to_estimate_raises():
    with pytest.raises(DatasetError, match="no inputs"):
        estimate_store([], FeaturePlan(["knn"]), jobs=0)
