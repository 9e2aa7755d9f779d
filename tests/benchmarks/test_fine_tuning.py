"""Learning curves of fine-tuning: subsets of the training proteins, the same for each way of training."""

from __future__ import annotations

import shutil

import pytest

from benchmarks import fine_tuning

CHAINS = ("1crn", "2erl", "1d3z", "1ubq", "1fas", "1hf9", "1orc")


@pytest.mark.slow
def test_each_way_is_trained_on_the_same_subset_and_tested_on_all_test_proteins(structures_dir, tmp_path, monkeypatch):
    rows = ["file,chain,res_id,site,split"]
    for number, name in enumerate(CHAINS):
        shutil.copy(structures_dir / f"{name}.bcif", tmp_path)
        rows += [f"{name}.bcif,A,{i},{i % 2},{'test' if number > 4 else 'train'}" for i in range(5, 20)]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n")
    runs, usual = [], fine_tuning.fit

    def record(model, dataset, task, **options):
        names = {split: sorted(e.id for e in dataset.examples(task, split)) for split in ("train", "val", "test")}
        runs.append((names, options["config"]))
        return usual(model, dataset, task, **options)

    monkeypatch.setattr(fine_tuning, "fit", record)
    options = {"task": "site", "model": "mpnn", "parent": "ligand_site", "sizes": [5], "seeds": [0], "epochs": 1}
    table = list(fine_tuning.learning_curve(str(tmp_path), tmp_path / "labels.csv", **options))
    assert [row["way"] for row in table] == ["scratch", "fine-tuned", "frozen"]
    assert runs[0][0] == runs[1][0] == runs[2][0]
    assert [len(runs[0][0][split]) for split in ("train", "val", "test")] == [4, 1, 2]
    assert [config.start_from for _, config in runs] == [None, "ligand_site", "ligand_site"]
    assert 0 <= table[1]["auprc"] <= 1
