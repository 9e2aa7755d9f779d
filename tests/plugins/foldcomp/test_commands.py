"""Files and databases of foldcomp through the commands: inspect, train, predict, store and prediction of a store."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.plugins.foldcomp.files import CHAINS, atom_lines, chain_atoms, compress, write_database


@pytest.fixture(scope="module")
def here(structures_dir, tmp_path_factory) -> Path:
    """A database "db", the folder "files" with the same entries, and a table of a label per protein."""
    here = tmp_path_factory.mktemp("foldcomp")
    names = [*CHAINS, "1fas", "1rx4", "1gya", "2fvv"]
    entries = [(name, compress(atom_lines(chain_atoms(structures_dir / f"{name}.bcif")), name)) for name in names]
    write_database(here / "db", entries)
    (here / "files").mkdir()
    for name, content in entries:
        (here / "files" / f"{name}.fcz").write_bytes(content)
    with (here / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "size"), *((name, i / 2) for i, name in enumerate(names))])
    return here


@pytest.fixture
def run(here, monkeypatch):
    from typer.testing import CliRunner

    from protgraph.cli.app import app

    monkeypatch.chdir(here)

    def call(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    return call


def rows(path: str) -> list[tuple[str, ...]]:
    """Return the rows of a table without the name of the file, sorted."""
    with open(path, newline="") as file:
        return sorted(tuple(v for k, v in row.items() if k != "file") for row in csv.DictReader(file))


@pytest.mark.slow
def test_inspect_counts_the_entries_of_a_database_as_those_of_its_files(run):
    texts = [run("data", "inspect", source, "--labels", "labels.csv") for source in ("db", "files")]
    assert all("9 proteins" in text for text in texts)
    one, two = ([line for line in text.splitlines() if "train" in line] for text in texts)
    assert one == two


@pytest.mark.slow
def test_a_model_is_trained_on_a_database_and_predicts_for_it_as_for_its_files(run):
    config = ["--task", "secondary_structure", "--epochs", "1", "--device", "cpu"]
    run("train", "gcn", "--data", "db", *config, "-o", "m.safetensors")
    run("featurize", "db", "-f", "dihedral", "-f", "knn:k=8", "--jobs", "1", "-o", "store")
    for command in ("predict", "embed"):
        for source in ("db", "files", "store"):
            run(
                command,
                "m.safetensors",
                source,
                "-o",
                f"{command}_{source}{'.csv' if command == 'predict' else '.npz'}",
            )
    predicted = [rows(f"predict_{source}.csv") for source in ("db", "files", "store")]
    assert predicted[0] == predicted[1] == predicted[2] and len(predicted[0]) > 1000
    embedded = [np.load(f"embed_{source}.npz") for source in ("db", "files", "store")]
    assert all(sorted(own) == sorted(embedded[0]) for own in embedded)
    db, files, store = (own["node"] for own in embedded)
    np.testing.assert_array_equal(db, store)
    assert db.shape == files.shape
    run("predict", "m.safetensors", "db:1fas", "-o", "one.csv")
    assert len(rows("one.csv")) == 61 and set(rows("one.csv")) <= set(predicted[0])
