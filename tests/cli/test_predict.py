"""``protgraph predict``: tables, and files for molecular viewers."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import protgraph as pg
from protgraph.checkpoint import save_checkpoint
from protgraph.structure.io import read_residues


@pytest.fixture(scope="module")
def checkpoint(structures_dir, tmp_path_factory):
    """Return the checkpoint of a small model of three classes."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "in").mkdir()
    rows = ["file,chain,res_id,ins_code,state"]
    for name in ("1crn", "10sb", "134l", "1ubq"):
        (folder / "in" / f"{name}.bcif").write_bytes((structures_dir / f"{name}.bcif").read_bytes())
        r = read_residues(structures_dir / f"{name}.bcif")
        keys = zip(r.chain, r.res_id, r.ins_code, strict=True)
        rows += [f"{name},{c},{n},{i},{('low', 'mid', 'high')[n % 3]}" for c, n, i in keys]
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    data = pg.load_dataset(folder / "in", labels=folder / "labels.csv", task="state")
    result = pg.fit("gcn", data, "state", config=pg.FitConfig(epochs=1, device="cpu"))
    return result.save(folder / "m.safetensors")


def test_structure_attributes_and_scripts_of_one_file(run, checkpoint, structures_dir, tmp_path):
    source = structures_dir / "1ubq.bcif"
    outputs = {"--structure": "a.cif", "--defattr": "a.defattr", "--pymol": "a.pml", "--chimerax": "a.cxc"}
    options = [part for option, name in outputs.items() for part in (option, tmp_path / name)]
    result = run("predict", checkpoint, source, "-o", tmp_path / "a.parquet", "--value", "p_mid", *options)
    assert result.code == 0, result.err
    assert all((tmp_path / name).is_file() for name in outputs.values())
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    r = read_residues(tmp_path / "a.cif")
    np.testing.assert_allclose(r.b_factor, 100 * np.array(table["p_mid"]), rtol=1e-5)
    assert "B factor 0" not in result.out  # every residue has a value
    lines = (tmp_path / "a.defattr").read_text().splitlines()
    assert "attribute: p_mid" in lines and sum(line.startswith("\t/A:") for line in lines) == 76


def test_several_files_are_written_to_a_folder(run, checkpoint, structures_dir, tmp_path):
    sources = [structures_dir / "1ubq.bcif", structures_dir / "1crn.bcif"]
    (tmp_path / "s.fasta").write_text(">a\nMKT\n")
    result = run("predict", checkpoint, *sources, "-o", tmp_path / "a.csv", "--structure", tmp_path / "many")
    assert result.code == 0, result.err
    assert sorted(p.name for p in (tmp_path / "many").iterdir()) == ["1crn.cif", "1ubq.cif"]
    assert "REMARK" not in (tmp_path / "many" / "1crn.cif").read_text()
    result = run("predict", checkpoint, *sources, "-o", tmp_path / "b.csv", "--structure", tmp_path / "many")
    assert result.code == 2 and "--overwrite" in result.err
    result = run("predict", checkpoint, *sources, "-o", tmp_path / "b.csv", "--structure", tmp_path / "one.cif")
    assert result.code == 2 and "folder" in result.err and not (tmp_path / "one.cif").exists()


def test_an_input_is_not_replaced(run, checkpoint, structures_dir, tmp_path):
    source = tmp_path / "1ubq.cif"
    source.write_bytes((structures_dir / "1ubq.bcif").read_bytes())
    before = source.read_bytes()
    for structure in (source, tmp_path):
        result = run("predict", checkpoint, source, "-o", tmp_path / "a.csv", "--structure", structure)
        assert result.code == 2 and "1ubq.cif" in result.err and "input" in result.err
    assert source.read_bytes() == before


def test_inputs_without_atoms_are_refused(run, checkpoint, structures_dir, tmp_path):
    (tmp_path / "s.fasta").write_text(">a\nMKT\n")
    assert run("featurize", structures_dir / "1crn.bcif", "-o", tmp_path / "store").code == 0
    for name in ("s.fasta", "store"):
        files = [checkpoint, tmp_path / name]
        result = run("predict", *files, "-o", tmp_path / "a.csv", "--structure", tmp_path / "a.cif")
        assert result.code == 2 and name in result.err and not (tmp_path / "a.csv").exists()


def test_a_sequence_has_no_structure(run, checkpoint, structures_dir, tmp_path):
    files = [structures_dir / "1ubq.bcif", tmp_path / "s.fasta"]
    files[1].write_text(">a\nMKT\n")
    result = run("predict", checkpoint, *files, "-o", tmp_path / "a.csv", "--structure", tmp_path / "many")
    assert result.code == 1  # the model reads coordinates
    assert [p.name for p in (tmp_path / "many").iterdir()] == ["1ubq.cif"]


def test_warnings_are_printed_and_written(run, checkpoint, structures_dir, tmp_path):
    columns = "ATOM    {0:3}  CA  GLY A{0:4}    {1:8.3f}   0.000   0.000  1.00  0.00           C"
    lines = [columns.format(i, 3.8 * i) for i in range(1, 30)]
    (tmp_path / "trace.pdb").write_text("\n".join(lines) + "\n")
    result = run("predict", checkpoint, tmp_path / "trace.pdb", "-o", tmp_path / "a.csv")
    assert result.code == 0 and "CA atoms only" in result.err
    assert "ca_only,29" in (tmp_path / "a.csv.warnings.csv").read_text()
    result = run("predict", checkpoint, structures_dir / "1ubq.bcif", "-o", tmp_path / "a.csv", "--overwrite")
    assert result.code == 0 and not (tmp_path / "a.csv.warnings.csv").exists()


@pytest.mark.parametrize(("command", "suffix"), [("predict", "csv"), ("embed", "npz")])
def test_a_model_that_gives_nan_fails_on_every_file(run, checkpoint, structures_dir, tmp_path, command, suffix):
    trained = pg.load_checkpoint(checkpoint)
    with torch.no_grad():
        next(trained.model.layers.parameters()).fill_(torch.nan)
    broken = save_checkpoint(tmp_path / "nan.safetensors", trained)
    out = tmp_path / f"out.{suffix}"
    result = run(command, broken, structures_dir / "1ubq.bcif", structures_dir / "1crn.bcif", "-o", out)
    assert result.code == 2 and not out.exists() and "2 failed" in result.err and "layers.0" in result.err
    assert len((tmp_path / f"{out.name}.failures.csv").read_text().splitlines()) == 3


def test_interfaces_have_a_row_per_pair_of_chains(run, checkpoint, structures_dir, tmp_path):
    out, pairs = tmp_path / "out.csv", tmp_path / "interfaces.csv"
    result = run("predict", checkpoint, structures_dir / "1jk9.bcif", "-o", out, "--interfaces", pairs)
    assert result.code == 0, result.err
    rows = list(csv.DictReader(pairs.open()))
    assert len(rows) > 2 and all(row["chain_1"] < row["chain_2"] and int(row["contacts"]) > 0 for row in rows)
    assert f"{len(rows)} pairs of chains" in result.out
    assert run("predict", checkpoint, structures_dir / "1jk9.bcif", "-o", out, "--interfaces", pairs).code == 2
