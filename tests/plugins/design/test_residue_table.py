"""Tables of one number per residue and type, and errors with file, line and column."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.design import read_residue_table

from protgraph.errors import OptionError, SelectionError


def test_rows_select_residues_ranges_or_chains_and_empty_cells_are_nan(two_chains, tmp_path):
    path = tmp_path / "table.csv"
    rows = "chain,res_id,ins_code,note,A,X,C\nA,5,A,x,0.25,1,0.75\nA,8-,,,2,,\nB,,,,,,-3\n"
    path.write_text("\ufeff" + rows, encoding="utf-8")
    table = read_residue_table(path).values(two_chains, 20)
    want = np.full((19, 20), np.nan)
    want[5, :2] = 0.25, 0.75
    want[8:10, 0] = 2
    want[10:, 1] = -3
    np.testing.assert_array_equal(table, want)
    assert read_residue_table(path).values(two_chains, 21)[5, 20] == 1


@pytest.mark.parametrize(
    "text, error, in_message",
    [
        ("chain,A\nA,1\n", OptionError, "table.csv"),
        ("chain,res_id,a\nA,1,1\n", OptionError, "table.csv"),
        ("chain,res_id,A\n", OptionError, "table.csv"),
        ("chain,res_id,A\nA,99,1\n", SelectionError, r"table.csv, line 2: .*'A:99'"),
        ("chain,res_id,A\nA,1,1\nQ,1,1\n", SelectionError, r"line 3: .*'Q:1'"),
        ("chain,res_id,A\nA,1,much\n", OptionError, "'much'.*line 2, column A"),
        ("chain,res_id,A\nA,1,nan\n", OptionError, "'nan'.*line 2, column A"),
        ("chain,res_id,A\nA,1,inf\n", OptionError, "'inf'"),
        ("chain,res_id,A\nA,5,1\nB,1,2\nA,1-7,1\n", OptionError, "A:5.*lines 2 and 4"),
    ],
)
def test_invalid_tables_are_errors_with_file_line_and_column(two_chains, tmp_path, text, error, in_message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(error, match=in_message):
        read_residue_table(path).values(two_chains, 21)


def test_missing_and_binary_files_are_errors(tmp_path):
    with pytest.raises(OptionError, match="nowhere.csv"):
        read_residue_table(tmp_path / "nowhere.csv")
    (tmp_path / "binary").write_bytes(b"\x83\xff\x00")
    with pytest.raises(OptionError, match="binary"):
        read_residue_table(tmp_path / "binary")
