"""Alignments on the command line: featurize, train, predict, and searches with MMseqs2."""

from __future__ import annotations

import os
import shutil
import stat
import sys

import pytest
from typer.testing import CliRunner

from protgraph.cli.app import app
from protgraph.data import GraphStore
from protgraph.errors import OptionError

FAKE = """#!{python}
import sys
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] == "version":
    print("18-8cc5c")
    sys.exit(0)
open(sys.argv[4], "w").write({output!r})
"""


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(structures_dir, a3m_file, tmp_path_factory):
    """Return a folder with ubiquitin and its alignment."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copy(structures_dir / "1ubq.bcif", folder)
    shutil.copy(a3m_file, folder)
    return folder


def test_featurize_reads_the_alignment_of_a_structure(folder, tmp_path):
    out = tmp_path / "graphs"
    features = ["-f", "conservation", "-f", "coupling", "-f", "pssm"]
    text = run("featurize", folder / "1ubq.bcif", "--alignment", folder, *features, "-o", out)
    assert "1 graph" in text
    graph = GraphStore(out)[0]
    assert graph.conservation.shape == (76, 1) and graph.edge_coupling.shape[1] == 1
    # other content of the alignment is not taken from the store
    shorter = tmp_path / "1ubq.a3m"
    shorter.write_text("".join((folder / "1ubq.a3m").read_text().splitlines(keepends=True)[:40]))
    run("featurize", folder / "1ubq.bcif", "--alignment", shorter, *features, "-o", out, "--overwrite")
    assert not (GraphStore(out)[0].pssm == graph.pssm).all()


def test_an_alignment_alone_is_a_protein(folder, tmp_path):
    run("featurize", folder / "1ubq.a3m", "-f", "conservation", "-f", "coupling", "-o", tmp_path / "graphs")
    assert len(GraphStore(tmp_path / "graphs")[0].conservation) == 76


def test_an_alignment_that_no_feature_reads_is_noted(folder, tmp_path):
    text = run("featurize", folder / "1ubq.bcif", "--alignment", folder, "-f", "knn", "-o", tmp_path / "graphs")
    assert "the alignment is not used" in text


def test_the_alignment_of_another_protein_is_in_the_failures(structures_dir, folder, tmp_path):
    other = structures_dir / "1ajj.bcif"
    text = run("featurize", other, "--alignment", folder / "1ubq.a3m", "-f", "pssm", "-o", tmp_path / "x", code=2)
    assert "is not of chain" in text


def test_search_makes_the_alignment(folder, tmp_path, monkeypatch):
    sequence = (folder / "1ubq.a3m").read_text().splitlines()[1]
    output = f"0\tone\t3\t{sequence[2:40]}\t{sequence[2:40].replace('K', 'R')}\n"
    log, program, database = tmp_path / "log", tmp_path / "mmseqs", tmp_path / "my.fasta"
    database.write_text(f">one\n{sequence}\n")
    program.write_text(FAKE.format(python=sys.executable, log=str(log), output=output))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    run("featurize", folder / "1ubq.bcif", "--search", database, "-f", "alignment:rows=4", "-o", tmp_path / "graphs")
    types = GraphStore(tmp_path / "graphs")[0].alignment
    assert (types[:, 2] == 22).all() and (types[:2, 1] == 21).all() and types[5, 1] == 14  # K6 is R
    run("featurize", folder / "1ubq.bcif", "--search", database, "-f", "alignment", "-o", tmp_path / "again")
    assert log.read_text().count("easy-search") == 1  # kept in the cache
    both = ["featurize", folder / "1ubq.bcif", "--search", database, "--alignment", folder, "-o", tmp_path / "x"]
    assert isinstance(CliRunner().invoke(app, list(map(str, both))).exception, OptionError)


@pytest.mark.slow
def test_a_model_is_trained_and_applied_with_alignments(structures_dir, a3m_file, tmp_path):
    for name in ("a", "b", "c"):
        shutil.copy(structures_dir / "1ubq.bcif", tmp_path / f"{name}.bcif")
    table = tmp_path / "labels.csv"
    table.write_text("file,split,y\na,train,1.0\nb,val,2.0\nc,test,1.5\n")
    features = '["conservation", "pssm", "knn"]'
    layers = '[{name = "embed", reads = ["aatype", "conservation", "pssm"]}, "gcn"]'
    options = ["--alignment", a3m_file, "--epochs", "1", "--set", f"features={features}", "--set", f"layers={layers}"]
    run("train", "gcn", "--data", tmp_path, "--labels", table, *options, "-o", tmp_path / "out.safetensors")
    run("predict", tmp_path / "out.safetensors", tmp_path / "a.bcif", "--alignment", a3m_file, "-o", tmp_path / "p.csv")
    text = run("predict", tmp_path / "out.safetensors", tmp_path / "a.bcif", "-o", tmp_path / "q.csv", code=2)
    assert "needs an alignment" in text
