"""``protgraph train --cv``: printed table, files, resumed folds and refused options."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from protgraph.checkpoint import load_checkpoint
from protgraph.train import TrainingInterrupted

NAMES = ("1ajj", "1crn", "1vii", "2erl", "1fas", "1bx8")


@pytest.fixture(scope="module")
def data(structures_dir, tmp_path_factory) -> Path:
    """Six small structures, and a yes/no label of each."""
    folder = tmp_path_factory.mktemp("cv")
    (folder / "A").mkdir()
    for name in NAMES:
        shutil.copy(structures_dir / f"{name}.bcif", folder / "A")
    rows = [f"{name},{i % 2}" for i, name in enumerate(NAMES)]
    (folder / "labels.csv").write_text("\n".join(["file,bound", *rows]))
    return folder


def arguments(data: Path, *more: object) -> list[object]:
    return ["train", "gcn", "--data", data / "A", "--labels", data / "labels.csv", "--epochs", 1, *more]


@pytest.mark.slow
def test_cv_prints_a_row_per_fold_and_writes_tables_and_models(run, data, tmp_path):
    out = tmp_path / "cv.csv"
    result = run(*arguments(data, "--cv", 3, "-o", out))
    assert result.code == 0, result.err
    assert "too few" in result.out and "majority" in result.out
    assert "random, seed" not in result.err and "\n  val " not in result.err and "bound" in result.err
    rows = list(csv.DictReader(out.open()))
    assert sorted(row["protein"] for row in rows) == sorted(NAMES)
    assert {row["protein"]: int(row["label_bound"]) for row in rows} == {n: i % 2 for i, n in enumerate(NAMES)}
    folds = list(csv.DictReader((tmp_path / "cv.folds.csv").open()))
    assert [row["fold"] for row in folds] == ["1", "2", "3", "pooled"]
    assert [row["with_positives"] for row in folds] == ["1", "1", "1", "3"]
    assert float(folds[-1]["auprc_low"]) <= float(folds[-1]["auprc"]) <= float(folds[-1]["auprc_high"])
    for fold in (1, 2, 3):
        assert load_checkpoint(tmp_path / "cv.run" / f"fold_{fold}" / "model.safetensors").task == "bound"
    again = run(*arguments(data, "--cv", 3, "-o", out))
    assert again.code == 2 and "--overwrite" in again.err
    resumed = run(*arguments(data, "--cv", 3, "-o", out, "--overwrite", "--resume"))
    assert resumed.code == 0 and resumed.out.count("(resumed)") == 6
    assert list(csv.DictReader(out.open())) == rows


@pytest.mark.slow
def test_positives_are_not_counted_for_classes(run, data, tmp_path):
    rows = [f"{name},{'ab'[i % 2]}" for i, name in enumerate(NAMES)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,family", *rows]))
    args = ["--data", data / "A", "--labels", tmp_path / "labels.csv", "--epochs", 1, "--cv", 3, "--log", "none"]
    result = run("train", "gcn", *args, "-o", tmp_path / "cv.csv")
    assert result.code == 0 and "  positive  " not in result.out, result.err
    folds = list(csv.DictReader((tmp_path / "cv.folds.csv").open()))
    assert [row["proteins"] for row in folds] == ["2", "2", "2", "6"] and "with_positives" not in folds[0]
    [pooled] = [line.split() for line in result.out.splitlines() if line.startswith("pooled")]
    assert pooled[1] == "6" and [float(f"{float(folds[-1]['accuracy']):.4f}")] == [float(pooled[2])]


@pytest.mark.slow
def test_an_interrupted_cv_exits_with_the_signal_and_can_be_resumed(run, data, tmp_path, monkeypatch):
    import signal

    from protgraph.train import cross_validation

    fit, calls = cross_validation.fit, []

    def stopped(model, *args, **options):
        calls.append(model)
        if len(calls) == 3:  # the model of the second fold, after the first and its baseline
            raise TrainingInterrupted(signal.SIGTERM)
        return fit(model, *args, **options)

    monkeypatch.setattr(cross_validation, "fit", stopped)
    out = tmp_path / "cv.csv"
    result = run(*arguments(data, "--cv", 3, "-o", out))
    assert result.code == 128 + signal.SIGTERM
    assert "--resume" in result.err and not out.exists()
    monkeypatch.setattr(cross_validation, "fit", fit)
    result = run(*arguments(data, "--cv", 3, "-o", out, "--resume"))
    assert result.code == 0 and result.out.count("(resumed)") == 2
    assert len(list(csv.DictReader(out.open()))) == len(NAMES)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--cv", "3", "--devices", "2"), "--devices"),
        (("--cv", "7"), "6 independent groups"),
    ],
)
def test_invalid_options_are_refused(run, data, tmp_path, monkeypatch, more, named):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments(data, *more))
    assert result.code == 2
    assert named in result.err
    assert not list(tmp_path.glob("*.csv"))
