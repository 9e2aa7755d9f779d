"""``protgraph design`` and ``protgraph score`` on a real file."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from protgraph.cli.app import main


@pytest.fixture(autouse=True)
def weights(shared_data, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_PROTEINMPNN", str(shared_data / "weights" / "proteinmpnn"))


def run(*words) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code


def test_designs_are_fasta_with_scores_and_recovery(structures_dir, tmp_path, capsys):
    file, out = structures_dir / "1ubq.bcif", tmp_path / "designs.fasta"
    wishes = ("--fixed", "A:10-20", "--omit", "C", "--seed", 1)
    assert run("design", file, "--n", 2, *wishes, "-o", out) == 0
    assert "2 sequences for 1 protein " in capsys.readouterr().out
    lines = out.read_text().splitlines()
    headers, native, designs = lines[::2], lines[1], lines[3::2]
    assert re.fullmatch(
        r">1ubq, score=\d\.\d{4}, global_score=\d\.\d{4}, fixed_chains=\[\], designed_chains=\['A'\], "
        r"model_name=proteinmpnn.v_48_020, protgraph=\S+, seed=1",
        headers[0],
    )
    for number, (header, design) in enumerate(zip(headers[1:], designs, strict=True), 1):
        told = re.fullmatch(
            rf">T=0.1, sample={number}, score=(\S+), global_score=(\S+), seq_recovery=(\S+)", header
        )
        same = [a == b for a, b in zip(native, design, strict=True)]
        assert design[9:20] == native[9:20] and "C" not in design
        assert float(told[3]) == pytest.approx(np.mean(same[:9] + same[20:]), abs=1e-4)
        assert 0.3 < float(told[1]) < float(headers[0].split("score=")[1].split(",")[0])
    scored = tmp_path / "scores.npz"
    assert run("score", file, "--sequences", out, "-o", scored) == 0
    with np.load(scored) as z:
        assert z["log_probs"].shape == (3 * 76, 21) and z["ptr"].tolist() == [0, 76, 152, 228]
    assert run("design", file, "--n", 2, *wishes, "-o", tmp_path / "again.fasta") == 0
    assert (tmp_path / "again.fasta").read_text() == out.read_text()


def test_scores_are_rows_of_residues(structures_dir, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    assert run("score", structures_dir / "1ubq.bcif", "--mode", "unconditional", "-o", out) == 0
    rows = list(csv.DictReader(out.open()))
    assert "".join(row["type"] for row in rows).startswith("MQIFVKTLTGK")
    for row in rows[::10]:
        assert sum(np.exp(float(row[t])) for t in "ACDEFGHIKLMNPQRSTVWYX") == pytest.approx(1, abs=1e-5)
        assert row["log_p"] == row[row["type"]]
    mean = np.mean([float(row["log_p"]) for row in rows])
    assert f"1ubq: {-mean:.4f}" in capsys.readouterr().out


def test_what_fails_is_listed_and_the_others_go_on(structures_dir, tmp_path, capsys):
    broken = tmp_path / "broken.pdb"
    broken.write_text("nothing\n")
    out = tmp_path / "designs.fasta"
    assert run("design", structures_dir / "1ubq.bcif", broken, "-o", out) == 1
    assert "broken.pdb" in (tmp_path / "designs.fasta.failures.csv").read_text()
    assert run("design", structures_dir / "1ubq.bcif", "--chains", "Q", "-o", tmp_path / "none.fasta") == 2
    assert "no chain 'Q'" in capsys.readouterr().err
    assert run("design", broken, "--model", "gat", "-o", out) == 2
    assert "has no published weights" in capsys.readouterr().err
    assert run("score", structures_dir / "1ubq.bcif", "--mode", "all", "-o", tmp_path / "s.csv") == 2
    assert "mode='all' is none of forced" in capsys.readouterr().err
