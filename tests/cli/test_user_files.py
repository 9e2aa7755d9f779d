"""Commands on user files: train, predict, embed, featurize, describe and bench, and their errors."""

from __future__ import annotations

import csv
import shutil
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from protgraph.cli.train import train_command
from protgraph.data.store.graph_store import GraphStore
from protgraph.structure import clean, load_structure
from protgraph.train import FitConfig

SMALL = ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8")


@pytest.fixture(scope="module")
def folder(structures_dir, tmp_path_factory) -> Path:
    """Six small structures, and two tables: odd or even residue type per residue, and one number per protein."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "structures").mkdir()
    rows, whole = [("file", "chain", "res_id", "ins_code", "kind")], [("file", "size")]
    for name in SMALL:
        shutil.copy(structures_dir / f"{name}.bcif", folder / "structures")
        r = clean(load_structure(structures_dir / f"{name}.bcif"))
        kinds = np.where(r.aatype % 2, "odd", "even")
        rows += [(f"{name}.bcif", *key) for key in zip(r.chain, r.res_id, r.ins_code, kinds, strict=True)]
        whole.append((f"{name}.bcif", len(r) / 10))
    _write(folder / "residues.csv", rows)
    _write(folder / "proteins.csv", whole)
    return folder


def _write(path: Path, rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def checkpoint(run, folder) -> Path:
    path = folder / "gcn.safetensors"
    if not path.exists():
        args = ["--data", folder / "structures", "--labels", folder / "residues.csv", "--epochs", 2, "-o", path]
        result = run("train", "gcn", *args)
        assert result.code == 0, result.err
        assert "epoch   2" in result.out and "test" in result.out
    return path


def test_existing_default_output_is_refused_before_the_data_are_read(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gcn-kind.safetensors").write_text("")
    result = run("train", "gcn", "--data", "absent", "--task", "kind")
    assert result.code == 2
    assert "gcn-kind.safetensors" in result.err and "--overwrite" in result.err


def test_train_on_a_folder_predict_and_read_the_table(run, folder, checkpoint, tmp_path):
    out = tmp_path / "predicted.csv"
    result = run("predict", checkpoint, folder / "structures" / "1crn.bcif", "-o", out)
    assert result.code == 0, result.err
    rows = list(csv.DictReader(out.open()))
    residues = clean(load_structure(folder / "structures" / "1crn.bcif"))
    assert [(r["chain"], int(r["res_id"]), r["res_name"]) for r in rows] == list(
        zip(residues.chain.tolist(), residues.res_id.tolist(), residues.res_name.tolist(), strict=True)
    )
    for r in rows:
        assert r["predicted"] == ("odd" if float(r["p_odd"]) > float(r["p_even"]) else "even")
        assert float(r["p_odd"]) + float(r["p_even"]) == pytest.approx(1, abs=1e-6)


def test_predict_lists_broken_files_and_continues(run, folder, checkpoint, tmp_path):
    (tmp_path / "broken.cif").write_text("data_x\n_cell.length_a 1\n")
    out = tmp_path / "predicted.csv"
    files = [tmp_path / "broken.cif", folder / "structures" / "1crn.bcif", tmp_path / "missing.pdb"]
    result = run("predict", checkpoint, *files, "-o", out)
    assert result.code == 1 and "2 failed" in result.err
    assert {row["file"] for row in csv.DictReader(out.open())} == {str(files[1])}
    failures = list(csv.DictReader((tmp_path / "predicted.csv.failures.csv").open()))
    assert [f["source"] for f in failures] == [str(files[0]), str(files[2])]
    assert [f["error_type"] for f in failures] == ["EmptyStructureError", "StructureFileError"]
    assert "atom_site" in failures[0]["message"] and "missing.pdb" in failures[1]["message"]
    assert "46 rows of 1 of 3 files" in result.out
    result = run("predict", checkpoint, files[1], "--overwrite", "-o", out)
    assert result.code == 0 and "46 rows of 1 file →" in result.out
    assert not (tmp_path / "predicted.csv.failures.csv").exists()  # of the run before


def test_predict_exits_with_2_if_all_files_fail(run, checkpoint, tmp_path):
    result = run("predict", checkpoint, tmp_path / "missing.pdb", "-o", tmp_path / "out.csv")
    assert result.code == 2 and not (tmp_path / "out.csv").exists()


def test_embed_writes_a_vector_per_residue_and_per_protein(run, folder, checkpoint, tmp_path):
    result = run("embed", checkpoint, folder / "structures", "-o", tmp_path / "vectors.npz")
    assert result.code == 0, result.err
    found = np.load(tmp_path / "vectors.npz")
    assert len(found["node"]) == found["ptr"][-1] == len(found["residues"])
    np.testing.assert_allclose(found["node"][: found["ptr"][1]].mean(0), found["protein"][0], atol=1e-5)


def test_embed_lists_failed_files(run, folder, checkpoint, tmp_path):
    files = [folder / "structures" / "1crn.bcif", tmp_path / "missing.pdb"]
    result = run("embed", checkpoint, *files, "-o", tmp_path / "vectors.parquet")
    assert result.code == 1 and (tmp_path / "vectors.parquet.failures.csv").exists()


def test_a_label_per_protein_is_a_regression_task(run, folder, tmp_path):
    path = tmp_path / "size.safetensors"
    args = ["--data", folder / "structures", "--labels", folder / "proteins.csv", "--task", "size"]
    result = run("train", "mpnn", *args, "--epochs", 1, "-o", path, "-q")
    assert result.code == 0, result.err
    assert "rmse" in result.out
    assert run("predict", path, folder / "structures" / "1crn.bcif", "-o", tmp_path / "p.csv").code == 0
    assert next(csv.DictReader((tmp_path / "p.csv").open()))["residues"] == "46"


@pytest.mark.slow
def test_columns_of_a_table_and_their_kind_are_options(run, folder, tmp_path):
    rows = [("file", "note", "group", "ph")]
    rows += [(f"{name}.bcif", f"note {i}", i % 2 + 1, 6.5 + i) for i, name in enumerate(SMALL)]
    _write(tmp_path / "table.csv", rows)
    args = ["--data", folder / "structures", "--labels", tmp_path / "table.csv", "--epochs", 1, "-q"]
    args += ["-o", tmp_path / "x.safetensors"]
    result = run("train", "majority", *args)
    assert result.code == 2 and "--column" in result.err
    result = run("train", "majority", *args, "--column", "ph")
    assert result.code == 0 and "rmse" in result.out, result.err
    result = run("train", "majority", *args, "--column", "group", "--kind", "classification", "--overwrite")
    assert result.code == 0 and "accuracy" in result.out, result.err
    result = run("train", "majority", "--data", "pdb_core", "--task", "interface", "--column", "ph")
    assert result.code == 2 and "--labels" in result.err


@pytest.mark.slow
def test_inverse_folding_trains_on_structures_without_labels(run, folder, tmp_path):
    path = tmp_path / "mine.safetensors"
    args = ["--data", folder / "structures", "--task", "inverse_folding", "--epochs", 1, "-o", path]
    result = run("train", "proteinmpnn", *args)
    assert result.code == 0, result.err
    assert "proteinmpnn on inverse_folding of structures" in result.out and "recovery" in result.out
    assert "2 of 6 proteins share a sequence with another" in result.err  # 1crn and 3u7t are crambin


@pytest.mark.slow
def test_language_models_train_on_sequences_without_structures(run, tmp_path):
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    (tmp_path / "sequences").mkdir()
    with (tmp_path / "sequences" / "made.fasta").open("w") as file:
        for i in range(12):
            file.write(f">p{i}\n{''.join(np.random.default_rng(i).choice(letters, 40))}\n")
    for model, task in (("bert", "masked_lm"), ("gpt", "next_residue")):
        path = tmp_path / f"{model}.safetensors"
        result = run("train", model, "--data", tmp_path / "sequences", "--task", task, "--epochs", 1, "-o", path)
        assert result.code == 0, result.err
        assert "train 10 proteins 400 residues  val 1 protein 40 residues  test 1 protein" in result.out


@pytest.mark.slow
def test_training_lists_broken_files_and_continues(run, folder, tmp_path):
    shutil.copytree(folder / "structures", tmp_path / "mixed")
    (tmp_path / "mixed" / "broken.cif").write_text("data_x\n_cell.length_a 1\n")
    (tmp_path / "mixed" / "water.pdb").write_text(
        "HETATM    1  O   HOH A   1       0.000   0.000   0.000  1.00  0.00           O\nEND\n"
    )
    path = tmp_path / "gcn.safetensors"
    args = ["--data", tmp_path / "mixed", "--task", "secondary_structure", "--epochs", 1, "-q", "-o", path]
    result = run("train", "gcn", *args)
    listed = tmp_path / "gcn.safetensors.failures.csv"
    assert result.code == 1 and path.exists() and "2 failed" in result.err and str(listed) in result.err
    failures = {f["protein"]: f["message"] for f in csv.DictReader(listed.open())}
    assert "atom_site" in failures["broken"] and "protein" in failures["water"] and len(failures) == 2
    for name in ("broken.cif", "water.pdb"):
        (tmp_path / "mixed" / name).unlink()
    assert run("train", "gcn", *args, "--overwrite").code == 0 and not listed.exists()


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_without_usable_proteins_ends_with_the_first_failure(run, folder, tmp_path, split):
    shutil.copytree(folder / "structures", tmp_path / "mixed")
    names = {"train": ["1crn", "1vii"], "val": ["2erl", "3u7t"]}
    rows = [f"{name},{part}" for part, members in names.items() for name in members]
    (tmp_path / "splits.csv").write_text("\n".join(["file,split", *rows]))
    for file in (tmp_path / "mixed").iterdir():
        if file.name.partition(".")[0] in names[split]:
            file.unlink()
    for name in names[split]:
        (tmp_path / "mixed" / f"{name}.pdb").write_text("HETATM    1  O   HOH A   1       0.000   0.000   0.000\n")
    out = tmp_path / "m.safetensors"
    args = ["--data", tmp_path / "mixed", "--labels", tmp_path / "splits.csv", "--task", "contact", "-o", out]
    result = run("train", "sequence_mlp", *args)
    assert result.code == 2 and not out.exists()
    assert all(part in result.err for part in (f"2 proteins of split '{split}'", f"{names[split][0]}.pdb"))
    assert "assign" not in result.err and "logs:" not in result.out + result.err
    assert not (tmp_path / "m.run" / "csv").exists()
    with (tmp_path / "m.safetensors.failures.csv").open() as file:
        assert sorted(row["protein"] for row in csv.DictReader(file)) == names[split]


def test_a_table_of_splits_assigns_the_files_of_a_folder(run, folder, tmp_path):
    (tmp_path / "splits.csv").write_text("file,split\n1crn,train\n1vii,train\n2erl,val\n3u7t,test\n")
    args = ["--data", folder / "structures", "--labels", tmp_path / "splits.csv", "--task", "contact", "--epochs", 1]
    result = run("train", "sequence_mlp", *args, "-o", tmp_path / "m.safetensors")
    assert result.code == 0, result.err
    assert "train 2 proteins 82 residues  val 1 protein 40 residues  test 1 protein 46 residues" in result.out
    assert "2 files" in result.err and "splits.csv" in result.err
    assert "1 sequence is in more than one split (test, train)" in result.err


def test_unused_label_columns_are_an_error(run, folder):
    args = ["--data", folder / "structures", "--labels", folder / "residues.csv"]
    result = run("train", "gcn", *args, "--task", "secondary_structure")
    assert result.code == 2 and "(kind)" in result.err and "secondary_structure" in result.err


def test_missing_labels_are_an_error_with_the_tasks_that_need_none(run, folder):
    for args in ([], ["--task", "ligand_binding"]):
        result = run("train", "gcn", "--data", folder / "structures", *args)
        assert result.code == 2 and "Tasks that need none: b_factor, contact, inverse_folding" in result.err
    result = run("train", "gcn", "--data", folder / "structures", "--task", "contact", "--kind", "classification")
    assert result.code == 2 and "--labels" in result.err


def test_labels_of_absent_residues_are_one_error_with_their_names(run, folder, tmp_path):
    text = (folder / "residues.csv").read_text() + "1crn.bcif,A,999,,odd\n"
    (tmp_path / "wrong.csv").write_text(text)
    result = run("train", "gcn", "--data", folder / "structures", "--labels", tmp_path / "wrong.csv", "--epochs", 1)
    assert result.code == 2 and "A:999" in result.err and "1crn" in result.err and "Traceback" not in result.err


def test_featurize_writes_every_graph_and_a_manifest_row_per_file(run, folder, tmp_path):
    (tmp_path / "empty.pdb").write_text("")
    out = tmp_path / "graphs"
    files = [folder / "structures", tmp_path / "empty.pdb"]
    result = run("featurize", *files, "-o", out, "-f", "dihedral", "-f", "knn:k=8", "-f", "edge_distance")
    assert result.code == 1, result.err
    store = GraphStore(out)
    assert sorted(store.names) == sorted(SMALL) and store[0].degree == 8 and store[0].validate()
    manifest = list(csv.DictReader((tmp_path / "graphs.manifest.tsv").open(), delimiter="\t"))
    assert [m["status"] for m in manifest] == ["done"] * 6 + ["failed"] and "empty" in manifest[-1]["message"]


def test_featurize_keeps_the_shards_of_unchanged_files(run, folder, tmp_path):
    args = ["featurize", folder / "structures" / "1crn.bcif", "-o", tmp_path / "graphs"]
    assert run(*args).code == 0
    again = run(*args)
    assert again.code == 0 and "1 shard (1 unchanged)" in again.out
    other = run(*args, "--feature", "knn:k=4")
    assert other.code == 2 and "--overwrite" in other.err
    assert run(*args, "--feature", "knn:k=4", "--overwrite").code == 0


def test_describe_counts_or_prints_a_diagram(run):
    assert "node_classifier" in run("describe", "gat").out
    assert run("describe", "gat", "--mermaid").out.startswith("flowchart TD\n")


def test_describe_reads_a_checkpoint(run, checkpoint):
    assert "node_classifier" in run("describe", checkpoint).out


@pytest.mark.slow
def test_bench_writes_a_table_and_is_resumed(run, tmp_path, folder):
    (tmp_path / "spec.toml").write_text(
        'name = "tiny"\ndataset = "pdb_core"\ntasks = ["ligand_binding"]\nmodels = ["majority", "gcn"]\n'
        f'baselines = ["majority"]\nseeds = [0]\nout = "{tmp_path / "runs"}"\njobs = 1\n[fit]\nepochs = 1\n'
    )
    first = run("bench", tmp_path / "spec.toml")
    assert first.code == 0, first.out + first.err
    table = (tmp_path / "runs" / "tiny" / "table.md").read_text()
    assert "majority" in table and "gcn" in table and "auprc" in table
    again = run("bench", tmp_path / "spec.toml")
    assert again.code == 0 and "2 finished before, 0 to do" in again.err


def test_options_of_train_have_the_defaults_of_fit():
    shown, config = signature(train_command).parameters, FitConfig()
    for name in ("epochs", "lr", "seed", "patience", "batch_residues", "device", "pos_weight", "max_time"):
        default = getattr(config, name)
        assert shown[name].default == (str(default) if name == "batch_residues" else default), name  # or "auto"
