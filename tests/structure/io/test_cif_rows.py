"""Finding ``atom_site`` without a full parse gives the same columns, and is refused where it might not."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.structure.io import cif_rows
from protgraph.structure.io.cif_parse import TokenTable, parse_cif, unify_lines
from protgraph.structure.io.cif_rows import AlignedTable, find_atom_site

ENTRIES = ("1aki", "1l2y", "3o5r", "4p5j", "1k6p")
OTHERS = ("cell", "ma_qa_metric", "pdbx_struct_assembly_gen", "pdbx_struct_oper_list", "absent")

ALIGNED = """data_x
_cell.length_a 10.0
_cell.length_b 20.0
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.auth_atom_id
_atom_site.Cartn_x
ATOM   1  N     1.5
ATOM   2  CA    -12.25
HETATM 10 "O5'" .
# end
loop_
_other.id
1
"""


def _assert_equal(found, parsed) -> None:
    for category in ("atom_site", *OTHERS):
        ours, theirs = found.get(category), parsed.get(category)
        assert (ours is None) == (theirs is None), category
        if ours is not None:
            assert ours.names == theirs.names and ours.size == theirs.size, category
            for name in ours.names:
                a, b = ours.column(name), theirs.column(name)
                assert np.array_equal(a.texts(), b.texts()), (category, name)
                zeros = np.zeros(ours.size)
                assert np.array_equal(zeros if a.mask is None else a.mask, zeros if b.mask is None else b.mask), name


@pytest.mark.parametrize("entry", ENTRIES)
def test_categories_of_entries_equal_those_of_a_full_parse(shared_data, entry):
    content = unify_lines((shared_data / "formats" / f"{entry}.cif").read_bytes())
    found = find_atom_site(content, entry)
    assert isinstance(found.get("atom_site"), AlignedTable)
    _assert_equal(found, parse_cif(content, entry)[0])


def test_some_rows_of_a_column(shared_data):
    table = find_atom_site(unify_lines((shared_data / "formats" / "4p5j.cif").read_bytes()), "").get("atom_site")
    rows = np.array([5, 900, 3])
    for name in ("auth_atom_id", "Cartn_x", "auth_seq_id"):
        whole = table.column(name).texts()
        assert np.array_equal(table.column(name, rows).texts(), whole[rows])
        assert np.array_equal(table.column(name, slice(7, 70)).texts(), whole[7:70])


QUICK = {
    "aligned": (ALIGNED, AlignedTable),
    "rows of one length": (ALIGNED.replace("1.5\n", "1.5   \n").replace(" .\n", " .     \n"), AlignedTable),
    "no line feed at the end": (ALIGNED[: ALIGNED.index("# end") - 1], AlignedTable),
    "not aligned": (ALIGNED.replace("ATOM   1  N     1.5", "ATOM 1 N 1.5"), TokenTable),
    "tabs": (ALIGNED.replace("ATOM   1", "ATOM\t1"), TokenTable),
    "rows over lines": (ALIGNED.replace("1.5\n", "\n1.5\n"), TokenTable),
    "blank line": (ALIGNED.replace("1.5\n", "1.5\n\n"), TokenTable),
    "indented": ("\n".join(["data_x", *(f"  {line}" for line in ALIGNED.splitlines()[1:])]) + "\n", AlignedTable),
    "loop in upper case": (ALIGNED.replace("loop_", "LOOP_"), AlignedTable),
    "name in a value": (ALIGNED.replace("_other.id\n1", "_other.id\n'_atom_site.id'"), AlignedTable),
    "name in a text field": (
        ALIGNED.replace("_cell.length_b 20.0", "_note.x\n;\nsee\n_cell.length_b 3\n;"),
        AlignedTable,
    ),
    "cell in a loop": (
        ALIGNED.replace("_cell.length_a 10.0\n_cell.length_b 20.0", "loop_\n_cell.length_a\n_cell.length_b\n10.0 20.0"),
        AlignedTable,
    ),
    "cell in two parts": (ALIGNED + "_cell.length_c 30.0\n", AlignedTable),
    "cell on one line": (ALIGNED.replace("10.0\n_cell", "10.0 _cell"), AlignedTable),
    "cell with a comment": (ALIGNED.replace("10.0\n", "10.0 # loop_\n# x\n"), AlignedTable),
}


@pytest.fixture(params=[cif_rows._BLOCK, 1, 2])
def _rows_per_block(request, monkeypatch):
    monkeypatch.setattr(cif_rows, "_BLOCK", request.param)


@pytest.mark.usefixtures("_rows_per_block")
@pytest.mark.parametrize(("text", "kind"), QUICK.values(), ids=QUICK)
def test_forms_that_need_no_full_parse(text, kind):
    content = unify_lines(text.encode())
    found = find_atom_site(content, "text")
    assert type(found.get("atom_site")) is kind and found.name == "x"
    _assert_equal(found, parse_cif(content, "text")[0])


REFUSED = {
    "two blocks": ALIGNED + "data_y\n_cell.length_c 3\n",
    "two blocks with atoms": ALIGNED + ALIGNED.replace("data_x", "data_y"),
    "save frame": ALIGNED + "save_y\n_cell.length_c 3\nsave_\n",
    "in a save frame": ALIGNED.replace("loop_\n_atom", "save_y\nloop_\n_atom", 1) + "save_\n",
    "in a text field": ALIGNED.replace("loop_\n_atom", "_note.x\n;\nloop_\n_atom", 1).replace("# end", ";"),
    "blank in quotes": ALIGNED.replace('"O5\'"', "'O 5'"),
    "quotes over two columns": ALIGNED.replace("N     1.5", "'N    1.5'").replace("# end", "1 2 3 4\n# end"),
    "comment in a row": ALIGNED.replace("1.5\n", "1.5 # x\n"),
    "comment between rows": ALIGNED.replace("1.5\n", "1.5\n# x\n"),
    "comment in place of a value": ALIGNED.replace("N     1.5", "#     1.5").replace("# end", "ATOM 1 N\n# end"),
    "text field in a row": ALIGNED.replace('"O5\'"', "\n;O\n;\n"),
    "loop in a row": ALIGNED.replace("# end\nloop_", "loop_"[:0] + "ATOM 3 loop_ _b.c ATOM 3 C\n#"),
    "pairs": "data_x\n_atom_site.id 1\n_atom_site.Cartn_x 2.0\n",
    "other tags in the loop": ALIGNED.replace("_atom_site.id\n", "_atom_site.id\n_other.x\n").replace("  1", " 1 1"),
    "mixed case": ALIGNED.replace("_atom_site.", "_Atom_site."),
    "tags on one line": ALIGNED.replace("group_PDB\n", "group_PDB "),
    "atom_site in two parts": ALIGNED + "_atom_site.note 1\n",
    "beyond ASCII": ALIGNED.replace(" N ", " Å "),
    "unfinished row": ALIGNED.replace(" .\n", "\n"),
    "before the block": "hello\n" + ALIGNED,
    "no rows": ALIGNED[: ALIGNED.index("ATOM ")] + "# end\n",
}


@pytest.mark.usefixtures("_rows_per_block")
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_forms_that_need_a_full_parse(text):
    assert find_atom_site(unify_lines(text.encode()), "text") is None


def test_a_comment_that_ends_in_loop_does_not_begin_one():
    content = unify_lines(ALIGNED.replace("data_x\n", "data_x\n_a.b 1 # loop_\n").encode())
    _assert_equal(find_atom_site(content, "text"), parse_cif(content, "text")[0])
