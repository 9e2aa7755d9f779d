"""Graph stores as datasets and sources give the results of the files that they were made from."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.store import write_store
from protgraph.errors import DatasetError, LabelError, OptionError
from protgraph.featurize import FeaturePlan, iter_graphs, store_requests
from protgraph.inference import embed, predict
from protgraph.labels import load_dataset
from protgraph.structure import ReadOptions

NAMES = ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8", "1fas")


@pytest.fixture(scope="module")
def folder(structures_dir, tmp_path_factory) -> Path:
    """Seven structures, and a table with a label per protein."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "files").mkdir()
    for name in NAMES:
        shutil.copy(structures_dir / f"{name}.bcif", folder / "files")
    rows = [(f"{name}.bcif", i + 0.5) for i, name in enumerate(NAMES)]
    with (folder / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "size"), *rows])
    return folder


@pytest.fixture(scope="module")
def run_command():
    from typer.testing import CliRunner

    from protgraph.cli.app import app

    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def store(folder, run_command) -> Path:
    """Written by the command, with other features than the model reads."""
    result = run_command("featurize", folder / "files", "-o", folder / "store", "-f", "dihedral")
    assert result.exit_code == 0, result.output
    return folder / "store"


@pytest.fixture(scope="module")
def same_features(folder, run_command) -> Path:
    """Written by the command with the features of the model, and one that is expanded from them."""
    features = ["-f", "dihedral", "-f", "knn:k=8", "-f", "edge_distance"]
    result = run_command("featurize", folder / "files", "-o", folder / "same", *features)
    assert result.exit_code == 0, result.output
    return folder / "same"


def weights(result):
    return result.model.state_dict()


def assert_same_weights(one, two):
    assert one.keys() == two.keys()
    for name, value in one.items():
        assert torch.equal(value, two[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("task", ["secondary_structure", "inverse_folding", "structure_denoising"])
def test_training_on_a_store_gives_the_weights_of_training_on_files(folder, store, tiny, quick, task, tmp_path):
    spec = tiny if task != "structure_denoising" else "egnn.satorras2021"
    config = replace(quick, epochs=1)
    files = pg.fit(spec, folder / "files", task, config=config, cache=tmp_path)
    assert_same_weights(weights(files), weights(pg.fit(spec, store, task, config=config, cache=tmp_path)))
    assert files.metrics == pg.fit(spec, pg.GraphStore(store), task, config=config, cache=tmp_path).metrics


@pytest.mark.slow
def test_a_label_table_works_with_a_store(folder, store, tiny, quick, tmp_path):
    options = {"labels": folder / "labels.csv", "task": "size", "cache": tmp_path}
    data = [load_dataset(path, **options) for path in (folder / "files", store)]
    one, two = ([(e.id, e.split, d.read(e).ids) for e in d.examples("size")] for d in data)
    assert one == two
    one, two = (pg.fit(tiny, d, "size", config=quick, cache=tmp_path) for d in data)
    assert_same_weights(weights(one), weights(two))
    (tmp_path / "wrong.csv").write_text("file,size\ngone.bcif,1\n")
    with pytest.raises(LabelError, match="gone.bcif"):
        load_dataset(store, labels=tmp_path / "wrong.csv", task="size", cache=tmp_path)


@pytest.mark.slow
def test_features_of_a_store_are_used_if_nothing_is_hidden(same_features, folder, tiny, quick, tmp_path, monkeypatch):
    files = pg.fit(tiny, folder / "files", "secondary_structure", config=quick, cache=tmp_path)
    monkeypatch.setattr(FeaturePlan, "precompute", None)  # features are not computed again
    stored = pg.fit(tiny, same_features, "secondary_structure", config=quick, cache=tmp_path)
    assert_same_weights(weights(files), weights(stored))
    with pytest.raises(DatasetError, match="TypeError"):  # hidden residue types need other features
        pg.fit(tiny, same_features, "inverse_folding", config=quick, cache=tmp_path)


@pytest.mark.slow
def test_notes_give_the_reason_if_features_of_a_store_are_recomputed(store, same_features, tiny, quick, tmp_path):
    options = {"config": replace(quick, epochs=1), "cache": tmp_path}
    used = pg.fit(tiny, same_features, "secondary_structure", **options)
    assert used.notes == ()
    checkpoint = used.checkpoint()
    for use in (predict, embed):
        [left_out] = use(checkpoint, same_features).notes
        assert left_out.startswith("not read by the model: 4 other molecules")
    runs = [
        (store, "featurizers", lambda: pg.fit(tiny, store, "secondary_structure", **options)),
        (same_features, "hides", lambda: pg.fit(tiny, same_features, "inverse_folding", **options)),
        (store, "featurizers", lambda: predict(checkpoint, store)),
        (store, "featurizers", lambda: embed(checkpoint, store)),
        (same_features, "chains", lambda: predict(checkpoint, same_features, read=ReadOptions(chains=["A"]))),
    ]
    for path, reason, run in runs:
        [note] = [note for note in run().notes if not note.startswith("not read by the model")]
        assert repr(str(path)) in note and reason in note and f"{len(NAMES)} graphs" in note
    assert pg.fit(tiny, store, "secondary_structure", **options).notes == ()  # prepared graphs are opened


def test_predictions_and_embeddings_of_a_store_equal_those_of_files(folder, store, trained):
    files, stored = (predict(trained.checkpoint(), path, device="cpu") for path in (folder / "files", store))
    assert files.rows == stored.rows and len(files.rows) > 200
    one, two = (embed(trained.checkpoint(), path, device="cpu") for path in (folder / "files", store))
    assert one.files == two.files
    np.testing.assert_array_equal(one.node, two.node)


def test_numbers_of_residues_count_from_both_ends(store):
    graphs = pg.GraphStore(store)
    numbers = [graphs.num_residues_of(i) for i in range(len(graphs))]
    assert numbers == [len(graphs.residues(i)) for i in range(len(graphs))]
    assert graphs.num_residues_of(-1) == numbers[-1]
    with pytest.raises(IndexError):
        graphs.num_residues_of(len(graphs))


def test_a_store_is_a_source_among_others(folder, store):
    plan = FeaturePlan(["knn"])
    results = list(iter_graphs([store, folder / "files" / "1crn.bcif"], plan))
    assert [r.protein for r in results] == [*sorted(NAMES), "1crn"]
    assert all(r.sha256 for r in results)
    failure = next(iter_graphs(pg.GraphStore(store), plan, read=ReadOptions(chains=["Z"])))
    assert failure.error_type == "SelectionError"


def test_fasta_records_in_a_store_keep_their_names(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "two.fasta").write_text(">a\nMKTAYIAK\n>b\nGGGGSGGGGS\n")
    plan = FeaturePlan(["residue_one_hot"])
    results = list(iter_graphs(tmp_path / "files", plan))
    read = {"sources": [r.source for r in results], "checksums": [r.sha256 for r in results]}
    write_store(tmp_path / "store", [r.graph for r in results], residues=[r.residues for r in results], **read)
    data = [load_dataset(tmp_path / name, task="masked_lm", cache=tmp_path) for name in ("files", "store")]
    one, two = ([(e.id, e.split, d.read(e).sequence) for e in d.examples("masked_lm")] for d in data)
    assert one == two


def test_a_store_read_with_other_options_is_an_error(store):
    for options in ({"altloc": "B"}, {"assembly": "1"}, {"model_number": 2}):
        with pytest.raises(OptionError, match=next(iter(options))):
            store_requests(store, ReadOptions(**options))
    with pytest.raises(DatasetError, match="ligands"):
        store_requests(store, ReadOptions(ligands=True))


def test_a_store_without_residues_is_an_error(tmp_path, tiny):
    from protgraph.structure import load_fasta

    (tmp_path / "x.fasta").write_text(">a\nMKT\n")
    [residues] = load_fasta(tmp_path / "x.fasta")
    write_store(tmp_path / "store", [FeaturePlan(["residue_one_hot"]).precompute(residues)])
    with pytest.raises(DatasetError, match="store"):
        pg.fit(tiny, tmp_path / "store", "masked_lm")


@pytest.mark.slow
def test_bench_runs_on_a_store_with_read_options(store, tmp_path, tiny):
    spec = pg.BenchSpec(
        name="stored",
        dataset=str(store),
        tasks=["secondary_structure"],
        models=["majority"],
        seeds=[0],
        fit={"epochs": 1, "device": "cpu"},
        read={"chains": ["A"]},
        jobs=1,
        out=tmp_path,
    )
    [row] = pg.run_bench(spec)
    assert row.error == "" and row.metrics["test"]["accuracy"] > 0
    from protgraph.bench.job_plan import plan_jobs

    [with_options], [plain] = (plan_jobs(s)[0] for s in (spec, spec.replace(read={})))
    assert with_options.key != plain.key
    with pytest.raises(OptionError, match="altlocs"):
        spec.replace(read={"altlocs": "A"})


@pytest.mark.slow
def test_training_reads_files_with_the_options_of_the_command(run_command, folder, tmp_path):
    arguments = ["train", "majority", "--data", folder / "files", "--task", "secondary_structure", "--epochs", 1, "-q"]
    result = run_command(*arguments, "--chain", "A", "-o", tmp_path / "m.safetensors")
    assert result.exit_code == 0, result.output
    result = run_command(*arguments, "--chain", "Q", "-o", tmp_path / "m.safetensors")
    assert result.exit_code != 0


@pytest.mark.slow
def test_train_predict_and_embed_accept_a_store(run_command, store, tmp_path):
    model = tmp_path / "m.safetensors"
    arguments = ["train", "gcn", "--data", store, "--task", "secondary_structure", "--epochs", 1, "-q", "-o", model]
    result = run_command(*arguments)
    assert result.exit_code == 0 and "val" in result.output, result.output
    assert result.stderr.count(repr(str(store))) == 1  # the features of the store are not those of the model
    result = run_command("predict", model, store, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0 and result.stderr.count(repr(str(store))) == 1, result.output
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert {Path(row["file"]).stem for row in rows} == set(NAMES)
    result = run_command("embed", model, store, "-o", tmp_path / "out.npz")
    assert result.exit_code == 0 and result.stderr.count(repr(str(store))) == 1, result.output


@pytest.mark.slow
def test_the_call_chain_of_fit_passes_at_most_12_modules(folder, tiny, quick, tmp_path, monkeypatch):
    import inspect

    from protgraph.structure.io import readers

    chains = []
    read_bytes = readers.unpack_categories

    def record(*arguments, **options):
        modules = [frame.frame.f_globals.get("__name__", "") for frame in inspect.stack()]
        chains.append([m for m in dict.fromkeys(modules) if m.startswith("protgraph.")])
        return read_bytes(*arguments, **options)

    monkeypatch.setattr(readers, "unpack_categories", record)
    pg.fit(tiny, folder / "files", "secondary_structure", config=replace(quick, epochs=1), cache=tmp_path)
    assert chains and max(map(len, chains)) <= 12, chains
