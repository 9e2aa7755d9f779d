"""Predictions and embeddings equal the model's outputs; files that cannot be used are listed."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace

import biotite.structure as struc
import biotite.structure.io as strucio
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from protgraph.errors import OptionError
from protgraph.featurize import write_failures
from protgraph.inference import embed, predict
from protgraph.structure import ReadOptions, clean, load_structure
from protgraph.train import fit


@pytest.fixture
def one(structures_dir):
    return structures_dir / "1orc.bcif"


def test_rows_have_the_probabilities_of_the_model(trained, one):
    result = predict(trained.checkpoint(), [one], device="cpu")
    residues = clean(load_structure(one))
    with torch.no_grad():
        p = trained.model(trained.model.plan.precompute(residues))["logits"].softmax(1)
    assert result.columns == ("file", "chain", "res_id", "ins_code", "res_name", "predicted", "p_no", "p_yes")
    assert result.failures == []
    assert predict(trained.checkpoint(), str(one), device="cpu").rows == result.rows  # one path
    assert len(result.rows) == len(residues)
    for i, row in enumerate(result.rows):
        assert row[:5] == (str(one), residues.chain[i], residues.res_id[i], residues.ins_code[i], residues.res_name[i])
        assert row[5] == ("no", "yes")[int(p[i].argmax())]
        assert row[6:] == pytest.approx(tuple(p[i].tolist()), abs=1e-6)


def test_yes_no_labels_are_predicted_at_the_threshold_of_training(small, tiny, quick, one):
    result = fit(tiny, small, "buried", config=quick)
    checkpoint = replace(result.checkpoint(), threshold=torch.tensor([-0.2]))
    rows = predict(checkpoint, [one], device="cpu").rows
    cut = torch.tensor(-0.2).sigmoid().item()
    assert {row[-1] for row in rows} <= {0, 1}
    assert all(row[-1] == (row[-2] >= cut) for row in rows)


def test_a_value_per_protein_is_one_row_per_protein(small, tiny, quick, structures_dir):
    result = fit(tiny, small, "size", config=replace(quick, epochs=1))
    files = [structures_dir / "1ubq.bcif", structures_dir / "1hf9.bcif"]
    result = predict(result.checkpoint(), files, device="cpu")
    assert result.columns == ("file", "protein", "chains", "residues", "size")
    assert [row[1:4] for row in result.rows] == [("1ubq", "A", 76), ("1hf9", "A", 41), ("1hf9", "B", 41)]


def test_a_model_trained_on_single_chains_predicts_each_chain_alone(trained, structures_dir):
    file = structures_dir / "1hf9.bcif"
    together = predict(trained.checkpoint(), [file], device="cpu").rows
    options = [ReadOptions(chains=[chain]) for chain in "AB"]
    apart = [r for read in options for r in predict(trained.checkpoint(), [file], read=read, device="cpu").rows]
    assert [r[:6] for r in together] == [r[:6] for r in apart]
    np.testing.assert_allclose([r[6] for r in together], [r[6] for r in apart], atol=1e-6)
    whole = predict(replace(trained.checkpoint(), one_chain=False), [file], device="cpu").rows
    assert [r[:5] for r in whole] == [r[:5] for r in together]
    assert np.abs(np.array([r[6] for r in whole]) - [r[6] for r in together]).max() > 1e-4


def test_batches_do_not_change_predictions(trained, structures_dir):
    files = sorted(structures_dir.glob("1h*.bcif"))[:3]
    a = predict(trained.checkpoint(), files, device="cpu", batch_residues=1)
    b = predict(trained.checkpoint(), files, device="cpu", batch_residues=10**6)
    np.testing.assert_allclose([r[6] for r in a.rows], [r[6] for r in b.rows], atol=1e-5)


def test_inverse_folding_does_not_depend_on_hidden_information(small, tiny, quick, one, tmp_path):
    # The same backbone as polyglycine has another sequence and the same prediction.
    checkpoint = fit(tiny, small, "inverse_folding", config=replace(quick, epochs=1)).checkpoint()
    atoms = load_structure(one).atoms
    atoms = atoms[struc.filter_amino_acids(atoms) & np.isin(atoms.atom_name, ["N", "CA", "C", "O"])]
    atoms.res_name[:] = "GLY"
    strucio.save_structure(tmp_path / "glycine.cif", atoms)
    real, bare = (predict(checkpoint, [f], device="cpu").rows for f in (one, tmp_path / "glycine.cif"))
    assert {r[4] for r in bare} == {"GLY"}
    assert len({r[4] for r in real}) > 10
    assert [r[5:] for r in real] == [r[5:] for r in bare]


def test_broken_files_are_listed_and_the_others_continue(trained, one, tmp_path):
    (tmp_path / "text.pdb").write_text("nothing here\n")
    files = [tmp_path / "gone.cif", one, tmp_path / "text.pdb"]
    result = predict(trained.checkpoint(), files, device="cpu")
    assert [f.source for f in result.failures] == [str(files[0]), str(files[2])]
    assert len(result.rows) == 64
    missing = predict(trained.checkpoint(), files[:1], device="cpu")
    assert missing.rows == [] and len(missing.failures) == 1
    write_failures(tmp_path / "failed.csv", result.failures)
    with open(tmp_path / "failed.csv", newline="") as file:
        assert [row["source"] for row in csv.DictReader(file)] == [str(files[0]), str(files[2])]


def test_an_unknown_chain_is_a_failure_of_that_file(trained, one):
    result = predict(trained.checkpoint(), [one], read=ReadOptions(chains=["Q"]), device="cpu")
    assert result.rows == []
    assert "'Q'" in result.failures[0].reason


def test_csv_keeps_each_float32_exactly(trained, one, tmp_path):
    result = predict(trained.checkpoint(), [one], device="cpu")
    result.write(tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == result.columns
    assert [np.float32(r["p_yes"]) for r in rows] == [np.float32(r[-1]) for r in result.rows]


def test_node_embeddings_are_inputs_of_the_head_and_protein_embeddings_their_means(trained, structures_dir):
    files = [structures_dir / "1ubq.bcif", structures_dir / "1hf9.bcif"]
    embeddings = embed(trained.checkpoint(), files, device="cpu")
    assert (embeddings.names, embeddings.chains) == (("1ubq", "1hf9", "1hf9"), ("A", "A", "B"))
    assert embeddings.ptr.tolist() == [0, 76, 117, 158]
    residues = clean(load_structure(files[0]))
    with torch.no_grad():
        h = trained.model.embed(trained.model.plan.precompute(residues))["h"]
    np.testing.assert_allclose(embeddings.node[:76], h.numpy(), atol=1e-5)
    np.testing.assert_allclose(embeddings.protein[0], h.mean(0).numpy(), atol=1e-5)
    assert embeddings.residues[:76].tolist() == residues.ids
    assert embeddings.residues[117] == "B:1"


def test_embeddings_round_trip_through_npz_and_parquet(trained, structures_dir, tmp_path):
    embeddings = embed(trained.checkpoint(), [structures_dir / "1hf9.bcif", tmp_path / "gone.cif"], device="cpu")
    assert len(embeddings.failures) == 1
    assert embeddings.write(tmp_path / "v.npz") == [tmp_path / "v.npz"]
    with np.load(tmp_path / "v.npz", allow_pickle=False) as file:
        for name in ("ptr", "node", "protein", "residues", "names", "chains", "files"):
            np.testing.assert_array_equal(file[name], getattr(embeddings, name))
    nodes, proteins = embeddings.write(tmp_path / "v.parquet")
    table = pq.read_table(nodes)
    np.testing.assert_array_equal(np.stack(table["vector"].to_pylist()).astype(np.float32), embeddings.node)
    assert table["residue"].to_pylist() == embeddings.residues.tolist()
    assert table["chains"].to_pylist() == ["A"] * 41 + ["B"] * 41
    table = pq.read_table(proteins)
    np.testing.assert_array_equal(np.stack(table["vector"].to_pylist()).astype(np.float32), embeddings.protein)
    assert table["residues"].to_pylist() == [41, 41]
    with pytest.raises(OptionError, match="v.txt"):
        embeddings.write(tmp_path / "v.txt")


def test_embeddings_of_failed_files_are_empty(trained, tmp_path):
    embeddings = embed(trained.checkpoint(), [tmp_path / "gone.cif"], device="cpu")
    assert embeddings.files == () and len(embeddings.failures) == 1
    assert embeddings.node.shape == (0, 16)
    assert embeddings.write(tmp_path / "v.parquet")


@pytest.mark.slow
def test_importing_train_imports_neither_lightning_nor_torchmetrics():
    code = "import sys, protgraph.train; print([m for m in ('lightning', 'torchmetrics') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
