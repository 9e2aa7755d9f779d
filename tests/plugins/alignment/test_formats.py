"""Alignment files: each format has the same rows, and damaged files name the file and the row."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest
from protgraph_plugins.alignment import read_alignment
from protgraph_plugins.alignment.matching import letters_of

from protgraph.errors import AlignmentError

# The second row has two residues between E and F, and the third none at D.
A3M = "#a comment\n>query\nACDEFGHIKL\n>two  text\nACDEkrFGHI-L\n>three\nAC-EFGHIKLw\n"
FASTA = ">query\nACDE--FGHIKL-\n>two\nACDEKRFGHI-L-\n>three\nAC-E--FGHIKLW\n"
A2M = ">query\nACDE..FGHIKL.\n>two\nACDEkrFGHI-L.\n>three\nAC-E..FGHIKLw\n"
STOCKHOLM = (
    "# STOCKHOLM 1.0\n#=GF ID test\n\nquery  ACDE..FG\ntwo    ACDEkrFG\nthree  AC.E..FG\n#=GC RF  xxxx..xx\n\n"
    "query  HIKL-\ntwo    HI-L-\nthree  HIKLW\n//\n"
)
CLUSTAL = (
    "CLUSTAL W (1.83) multiple sequence alignment\n\n\n"
    "query      ACDE--FG 6\ntwo        ACDEKRFG 8\nthree      AC-E--FG 5\n"
    "           ** *  **\n\nquery      HIKL- 10\ntwo        HI-L- 11\nthree      HIKLW 10\n           ** *\n"
)
FORMATS = {"a3m": A3M, "fasta": FASTA, "a2m": A2M, "stockholm": STOCKHOLM, "clustal": CLUSTAL}
ROWS = ["ACDEFGHIKL", "ACDEFGHI-L", "AC-EFGHIKL"]


def written(rows: np.ndarray) -> list[str]:
    return ["".join("ACDEFGHIKLMNPQRSTVWYX-"[t] for t in row) for row in rows]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_format_has_the_rows_of_the_first_sequence(tmp_path, name, packed):
    content = FORMATS[name].encode()
    path = tmp_path / f"x.{name}"
    path.write_bytes(gzip.compress(content) if packed else content)
    alignment = read_alignment(str(path))
    assert written(alignment.rows) == ROWS
    deletions = np.zeros((3, 10), int)
    deletions[1, 4] = 2
    assert np.array_equal(alignment.deletions.toarray(), deletions)


def test_dos_lines_wrapped_sequences_and_rare_letters_are_read(tmp_path):
    path = tmp_path / "x.a3m"
    path.write_bytes(b"\xef\xbb\xbf>q\r\nACDE\r\nFBU\r\n>two\r\nACDEFZO")
    assert written(read_alignment(str(path)).rows) == ["ACDEFXC", "ACDEFXK"]


def test_chains_of_a_complex_are_in_the_first_line(tmp_path):
    path = tmp_path / "x.a3m"
    path.write_text("#4,6\t1,2\n>101\t102\nACDEFGHIKL\n>two\nACDE------\n")
    assert read_alignment(str(path)).lengths == (4, 6)
    path.write_text("#4,7\t1,2\n>101\t102\nACDEFGHIKL\n")
    with pytest.raises(AlignmentError, match="4, 7"):
        read_alignment(str(path))


@pytest.mark.parametrize(
    ("content", "row"),
    [
        (">q\nACDE\n>two\nACD\n", 2),  # ragged
        (">q\nACDE\n>two\nACDE\n>three\nACkDEF\n", 3),
        (">q\nACDE\n>two\nAC1E\n", 2),  # alphabet
        (">q\nACDE--\n>two\nACDEF\n", 2),
        (f">q\n{'ACGT' * 10}\n>two\n{'ACGT' * 10}\n", 1),  # nucleotides
        (">q\n\n>two\n\n", 1),
        ("", None),
        ("\n\n", None),
        ("no alignment\n", None),
        ("# STOCKHOLM 1.0\nq ACDE\ntwo ACDE\n", 2),  # cut off
        ("CLUSTAL\n\nq ACDE\ntwo ACD\n", 2),
        ("CLUSTAL\n\nq ACDE x y\n", None),
    ],
)
def test_damaged_files_name_the_file_and_the_row(tmp_path, content, row):
    path = tmp_path / "bad.a3m"
    path.write_text(content)
    with pytest.raises(AlignmentError) as caught:
        read_alignment(str(path))
    assert (caught.value.path, caught.value.row) == (str(path), row)
    assert str(path) in str(caught.value)


def test_a_cut_gzip_stream_and_a_missing_file_are_errors(tmp_path):
    path = tmp_path / "x.a3m.gz"
    rng = np.random.default_rng(0)
    rows = [letters_of(rng.integers(0, 20, 500, np.uint8).tobytes()) for _ in range(50)]
    packed = gzip.compress("".join(f">s{i}\n{row}\n" for i, row in enumerate(rows)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(AlignmentError) as caught:
        read_alignment(str(path))
    assert 1 < caught.value.row < 50
    with pytest.raises(AlignmentError, match="No such file"):
        read_alignment(str(tmp_path / "absent.a3m"))


def test_ten_thousand_rows_take_a_second_and_twice_the_file(tmp_path):
    import tracemalloc

    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY-", np.uint8)
    path = tmp_path / "large.a3m"
    with path.open("wb") as file:
        for number in range(10_000):
            row = letters[rng.integers(0, 21 if number else 20, 1000)].tobytes()
            file.write(b">%d\n" % number + (row[:500] + b"acd" * (number > 0) + row[500:]) + b"\n")
    begin = time.process_time()
    rows = read_alignment(str(path)).rows
    assert time.process_time() - begin < 1.0
    assert rows.shape == (10_000, 1000)
    tracemalloc.start()
    read_alignment(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * path.stat().st_size
