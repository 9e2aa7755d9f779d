"""MMseqs2: what it is called with and how its output is read (a program that writes the same format), and itself."""

from __future__ import annotations

import json
import stat
import sys

import numpy as np
import pytest
from protgraph_plugins.similarity import HomologyRule, cluster_homologs, find_homologs, homologs, mmseqs_search
from protgraph_plugins.similarity.mmseqs_search import find_mmseqs, mmseqs_version, search_with_mmseqs

from protgraph.errors import ExternalProgramError, MissingExtraError

FAKE = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "version":
    print({version!r})
    sys.exit(0)
print("Input database is damaged")
if {code}:
    sys.exit({code})
open(sys.argv[4], "w").write({output!r})
"""
# of MMseqs2 18-8cc5c, with the columns that are asked for; rows of each query, itself first
OUTPUT = (
    "0\t0\t98\t98\t1\t98\t1\t98\t1E-60\n"
    "0\t1\t60\t100\t1\t98\t1\t100\t1.5E-30\n"
    "1\t0\t57\t95\t6\t100\t1\t93\t4.060E-31\n"
    "1\t1\t100\t100\t1\t100\t1\t100\t1E-60\n"
    "2\t2\t150\t150\t1\t150\t1\t150\t1E-90\n"
)
SEQUENCES = ["A" * 98, "C" * 100, "D" * 150]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Return a function that puts a program ``mmseqs`` on the search path; its calls are in a file."""
    log = tmp_path / "calls.jsonl"

    def install(output: str = OUTPUT, *, version: str = "18-8cc5c", code: int = 0):
        program = tmp_path / "mmseqs"
        text = FAKE.format(python=sys.executable, log=str(log), version=version, code=code, output=output)
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return log

    return install


def test_pairs_have_the_best_alignment_of_both_directions(fake):
    fake()
    found = search_with_mmseqs(SEQUENCES, HomologyRule())
    assert found.shape == (1, 6)
    assert found[0].tolist() == [0, 1, 57 / 95, 93 / 98, 95 / 100, 4.06e-31]


def test_command_line_has_the_rule(fake):
    log = fake()
    search_with_mmseqs(SEQUENCES, HomologyRule(identity=0.25, coverage=0.6, max_evalue=0.01), threads=2)
    version, search = map(json.loads, log.read_text().splitlines())
    assert version == ["version"]
    assert search[0] == "easy-search"
    assert search[1] == search[2]
    for option, value in {
        "--min-seq-id": "0.25", "-c": "0.6", "--cov-mode": "0", "-e": "0.01", "--threads": "2", "--max-seqs": "300",
    }.items():  # fmt: skip
        assert search[search.index(option) + 1] == value
    log.unlink()
    search_with_mmseqs(SEQUENCES, HomologyRule(coverage_of="shorter"))
    assert "--cov-mode" not in json.loads(log.read_text().splitlines()[1])  # filtered by the rule afterwards


def test_pairs_that_do_not_meet_the_rule_and_pairs_of_a_group_are_dropped(fake):
    fake()
    assert find_homologs(SEQUENCES, engine="mmseqs").engine == "mmseqs"
    assert len(find_homologs(SEQUENCES, engine="mmseqs")) == 1
    assert len(find_homologs(SEQUENCES, HomologyRule(identity=0.61), engine="mmseqs")) == 0
    assert len(find_homologs(SEQUENCES, engine="mmseqs", groups=[0, 0, 1])) == 0
    assert len(find_homologs(SEQUENCES, engine="mmseqs", groups=[0, 1, 1])) == 1


def test_finished_search_is_kept(fake, tmp_path):
    log = fake()
    for _ in range(2):
        assert len(find_homologs(SEQUENCES, engine="mmseqs", cache=tmp_path / "cache")) == 1
    assert [json.loads(line)[0] for line in log.read_text().splitlines()] == ["version", "easy-search"]


def test_failure_has_what_the_program_printed(fake):
    fake(code=3)
    with pytest.raises(ExternalProgramError, match=r"easy-search.*3(.|\n)*Input database is damaged"):
        search_with_mmseqs(SEQUENCES, HomologyRule())


@pytest.mark.parametrize("line", ["0\t1\t60", "0\t1\t60\t100\t1\t100\t1\t98\tnone"])
def test_unexpected_output_names_the_line(fake, line):
    fake(f"{OUTPUT}{line}\n")
    with pytest.raises(ExternalProgramError, match="line 6"):
        search_with_mmseqs(SEQUENCES, HomologyRule())


@pytest.mark.parametrize("version", ["18-8cc5c", "13-45111", "8cc5ce367b5638c4306c2d7cfc652dd099a4643f"])
def test_version_of_a_release_or_a_commit_is_accepted(fake, version):
    fake(version=version)
    assert mmseqs_version(find_mmseqs()) == version


def test_old_release_is_refused(fake):
    fake(version="12-113e3")
    with pytest.raises(ExternalProgramError, match=r"12-113e3.*protgraph-pyg\[mmseqs\]"):
        search_with_mmseqs(SEQUENCES, HomologyRule())


def test_absent_program_names_the_extra(monkeypatch):
    monkeypatch.setattr(mmseqs_search, "find_mmseqs", lambda: None)
    with pytest.raises(MissingExtraError, match=r"protgraph-pyg\[mmseqs\]"):
        search_with_mmseqs(SEQUENCES, HomologyRule())


def test_large_sets_are_searched_by_mmseqs_where_it_is_installed(fake, monkeypatch):
    fake()
    assert find_homologs(SEQUENCES).engine != "mmseqs"
    monkeypatch.setattr(homologs, "_EXHAUSTIVE", 2)
    assert find_homologs(SEQUENCES).engine == "mmseqs"
    monkeypatch.setattr(homologs, "find_mmseqs", lambda: None)
    assert find_homologs(SEQUENCES).engine != "mmseqs"


@pytest.mark.slow
@pytest.mark.skipif(find_mmseqs() is None, reason="MMseqs2 is not installed")
def test_mmseqs_finds_the_planted_homologs_of_the_alignments():
    rng = np.random.default_rng(6)
    parents = ["".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 150)) for _ in range(4)]
    family = [
        "".join(c if rng.random() > 0.25 else rng.choice(list("ACDEFGHIKLMNPQRSTVWY")) for c in parents[i % 4])
        for i in range(16)
    ]
    ours, theirs = find_homologs(family, engine="biotite"), find_homologs(family, engine="mmseqs")
    assert len(ours) == len(theirs) == 24
    assert cluster_homologs(ours).tolist() == cluster_homologs(theirs).tolist()
    assert np.abs(ours.identity - theirs.identity).max() < 0.05
