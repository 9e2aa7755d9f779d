"""FASTA files of designs: headers in the layout of ProteinMPNN, compression, atomic writing and errors."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from protgraph_plugins.design import (
    Design,
    design_records,
    read_design_sequences,
    sequences_by_protein,
    write_design_fasta,
)

import protgraph as pg
from protgraph.errors import OptionError


def test_samples_are_counted_at_each_temperature(structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    residues = residues.select(residues.res_id <= 3)
    aatype = np.array([residues.aatype, residues.aatype, [0, 0, 0]])
    numbers = np.array([0.1, 0.2, 0.3])
    design = Design(
        residues, np.array([True, True, False]), aatype, np.array([0.1, 0.1, 0.25]), numbers, numbers, 1.5, 2.5
    )
    (native, first), *others = design_records(design, model="m", seed=7)
    assert first == "MQI"
    assert native == (
        "1ubq, score=1.5000, global_score=2.5000, fixed_chains=[], designed_chains=['A'], model_name=m, "
        f"protgraph={pg.__version__}, seed=7"
    )
    assert [header for header, _ in others] == [
        "T=0.1, sample=1, score=0.1000, global_score=0.1000, seq_recovery=1.0000",
        "T=0.1, sample=2, score=0.2000, global_score=0.2000, seq_recovery=1.0000",
        "T=0.25, sample=1, score=0.3000, global_score=0.3000, seq_recovery=0.0000",
    ]
    assert others[2][1] == "AAA"


def test_sequences_belong_to_the_protein_of_the_native_header_before_them():
    native = "{}, score=1.0000, global_score=1.0000, fixed_chains=[], designed_chains=['A'], model_name=m"
    first, second = native.format("a, b"), native.format("c")
    every = [("mine", "M"), (first, "A"), ("T=0.1, sample=1", "B"), (second, "C"), ("T=0.1, sample=1", "D")]
    assert sequences_by_protein(every, ["a, b", "c"]) == {"a, b": every[:3], "c": [every[0], *every[3:]]}
    assert sequences_by_protein(every, ["c", "d"]) == {"c": [every[0], *every[3:]], "d": every[:1]}
    assert sequences_by_protein(every, ["elsewhere"]) == every
    assert sequences_by_protein(every[:1], ["c"]) == every[:1]


@pytest.mark.parametrize("name", ["designs.fasta", "designs.fasta.gz"])
def test_written_records_are_read_back(tmp_path, name):
    pairs = [("native, score=1", "MKV/LL"), ("T=0.1 -> a", "MKV/LA")]
    path = tmp_path / "new" / name
    assert write_design_fasta(path, pairs) == 2
    assert path.read_bytes().startswith(b"\x1f\x8b" if name.endswith("gz") else b">native")
    assert read_design_sequences(path) == pairs
    assert [p.name for p in path.parent.iterdir()] == [name]


def test_a_failed_or_empty_write_keeps_the_previous_file(tmp_path):
    path = tmp_path / "designs.fasta"
    path.write_text("before")

    def failing():
        yield "a", "MK"
        raise OptionError("record 2")

    with pytest.raises(OptionError, match="record 2"):
        write_design_fasta(path, failing())
    assert write_design_fasta(path, []) == 0
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_lower_case_crlf_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "windows.fasta"
    path.write_bytes(b"\xef\xbb\xbf\r\n>one two\r\nmk v\r\nll*\r\n\r\n>\r\nX/a\r\n")
    assert read_design_sequences(path) == [("one two", "MKVLL"), ("", "X/A")]


@pytest.mark.parametrize(
    "content, in_message",
    [
        pytest.param(b"", "x.fasta", id="empty"),
        pytest.param(b"\n \n", "x.fasta", id="blank"),
        pytest.param(b"MKV\n", "'>'", id="no header"),
        pytest.param(b">a\nMK-V\n", "'-'.*'a'", id="gap"),
        pytest.param(b">a\nMKB\n", "'B'.*'a'.*ACDEF", id="letter"),
        pytest.param(b">a\nMK\n>b\n", "'b'", id="empty record"),
        pytest.param(b"\x83\xff", "UTF-8", id="not text"),
        pytest.param(gzip.compress(b">a\nMK", mtime=0)[:-6], "x.fasta", id="truncated gzip"),
    ],
)
def test_invalid_files_are_errors(tmp_path, content, in_message):
    path = tmp_path / "x.fasta"
    path.write_bytes(content)
    with pytest.raises(OptionError, match=in_message):
        read_design_sequences(path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(OptionError, match="nowhere.fasta"):
        read_design_sequences(tmp_path / "nowhere.fasta")
