"""Rows of ``atom_site`` as a table of characters have the values that the same rows have word by word."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import StructureFileError
from protgraph.structure.io import cif_parse
from protgraph.structure.io.cif_parse import ParsedBlock, parse_cif, unify_lines

ENTRIES = ("1aki", "1l2y", "3o5r", "4p5j", "1k6p")
READ = ("atom_site", "cell", "ma_qa_metric", "pdbx_struct_assembly_gen", "pdbx_struct_oper_list", "absent")

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


def _parse(content: bytes, categories=None) -> list[ParsedBlock] | str:
    try:
        return parse_cif(content, "text", categories)
    except StructureFileError as e:
        return str(e)


def _values(blocks: list[ParsedBlock] | str, categories=None) -> object:
    """Return the values of all columns as texts, as numbers of the mask and as they are written."""
    if isinstance(blocks, str):
        return blocks
    values = []
    for block in blocks:
        for category in sorted(block.tables if categories is None else set(categories) & set(block.tables)):
            table = block.tables[category]
            for name in table.names:
                try:
                    column = table.column(name)
                except ValueError as e:  # another number of values
                    values.append((block.name, category, name, str(e)))
                    continue
                mask = np.zeros(table.size, int) if column.mask is None else column.mask
                written = table.characters(name).tolist()
                values.append((block.name, category, name, column.texts().tolist(), mask.tolist(), written))
    return values


def _word_by_word(content: bytes, monkeypatch, categories=None):
    with monkeypatch.context() as patch:
        patch.setattr(cif_parse, "_find_aligned_rows", lambda content: None)
        return _parse(content, categories)


@pytest.mark.parametrize("entry", ENTRIES)
def test_categories_of_entries_equal_those_of_words(shared_data, entry, monkeypatch):
    content = unify_lines((shared_data / "formats" / f"{entry}.cif").read_bytes())
    assert cif_parse._find_aligned_rows(content) is not None
    every = _word_by_word(content, monkeypatch)
    assert _values(_parse(content)) == _values(every)
    assert _values(_parse(content, READ)) == _values(every, READ)
    assert {category for block in _parse(content, READ) for category in block.tables} <= set(READ)


def test_some_rows_of_a_column(shared_data):
    (block,) = parse_cif(unify_lines((shared_data / "formats" / "4p5j.cif").read_bytes()), "", ["atom_site"])
    table = block.get("atom_site")
    rows = np.array([5, 900, 3])
    for name in ("auth_atom_id", "Cartn_x", "auth_seq_id"):
        texts = table.column(name).texts()
        assert np.array_equal(table.column(name, rows).texts(), texts[rows])
        assert np.array_equal(table.column(name, slice(7, 70)).texts(), texts[7:70])


ALIGNED_FORMS = {
    "aligned": ALIGNED,
    "rows of one length": ALIGNED.replace("1.5\n", "1.5   \n").replace(" .\n", " .     \n"),
    "no line feed at the end": ALIGNED[: ALIGNED.index("# end") - 1],
    "name in a value": ALIGNED.replace("_other.id\n1", "_other.id\n'_atom_site.id'"),
    "name in a text field": ALIGNED.replace("_cell.length_b 20.0", "_note.x\n;\nsee\n_cell.length_b 3\n;"),
    "cell in a loop": ALIGNED.replace(
        "_cell.length_a 10.0\n_cell.length_b 20.0", "loop_\n_cell.length_a\n_cell.length_b\n10.0 20.0"
    ),
    "cell in two parts": ALIGNED + "_cell.length_c 30.0\n",
    "cell on one line": ALIGNED.replace("10.0\n_cell", "10.0 _cell"),
    "cell with a comment": ALIGNED.replace("10.0\n", "10.0 # loop_\n# x\n"),
    "comment that ends in loop": ALIGNED.replace("data_x\n", "data_x\n_a.b 1 # loop_\n"),
    "two blocks": ALIGNED + "data_y\n_cell.length_c 3\n",
    "two blocks with atoms": ALIGNED + ALIGNED.replace("data_x", "data_y"),
    "save frame": ALIGNED + "save_y\n_cell.length_c 3\nsave_\n",
    "in a save frame": ALIGNED.replace("loop_\n_atom", "save_y\nloop_\n_atom", 1) + "save_\n",
    "in a text field": ALIGNED.replace("loop_\n_atom", "_note.x\n;\nloop_\n_atom", 1) + ";\n",
    "atom_site in two parts": ALIGNED + "_atom_site.note 1\n",
    "before the block": "hello\n" + ALIGNED,
}
OTHER_FORMS = {
    "not aligned": ALIGNED.replace("ATOM   1  N     1.5", "ATOM 1 N 1.5"),
    "tabs": ALIGNED.replace("ATOM   1", "ATOM\t1"),
    "rows over lines": ALIGNED.replace("1.5\n", "\n1.5\n"),
    "blank line": ALIGNED.replace("1.5\n", "1.5\n\n"),
    "indented": "\n".join(["data_x", *(f"  {line}" for line in ALIGNED.splitlines()[1:])]) + "\n",
    "loop in upper case": ALIGNED.replace("loop_", "LOOP_"),
    "blank in quotes": ALIGNED.replace('"O5\'"', "'O 5'"),
    "quotes over two columns": ALIGNED.replace("N     1.5", "'N    1.5'").replace("# end", "1 2 3 4\n# end"),
    "quote without an end": ALIGNED.replace("N     1.5", "'N    1.5"),
    "comment in a row": ALIGNED.replace("1.5\n", "1.5 # x\n"),
    "comment between rows": ALIGNED.replace("1.5\n", "1.5\n# x\n"),
    "comment in place of a value": ALIGNED.replace("N     1.5", "#     1.5").replace("# end", "ATOM 1 N\n# end"),
    "text field in a row": ALIGNED.replace('"O5\'"', "\n;O\n;\n"),
    "loop in a row": ALIGNED.replace("# end\nloop_", "ATOM 3 loop_ _b.c ATOM 3 C\n#"),
    "data in a row": ALIGNED.replace("ATOM   2  CA    -12.25", "ATOM   2  CA    data_y"),
    "pairs": "data_x\n_atom_site.id 1\n_atom_site.Cartn_x 2.0\n",
    "other tags in the loop": ALIGNED.replace("_atom_site.id\n", "_atom_site.id\n_other.x\n").replace("  1", " 1 1"),
    "mixed case": ALIGNED.replace("_atom_site.", "_Atom_site."),
    "tags on one line": ALIGNED.replace("group_PDB\n", "group_PDB "),
    "beyond ASCII": ALIGNED.replace(" N ", " Å "),
    "unfinished row": ALIGNED.replace(" .\n", "\n"),
    "in a text field": ALIGNED.replace("loop_\n_atom", "_note.x\n;\nloop_\n_atom", 1).replace("# end", ";\n_a.b 1"),
    "no rows": ALIGNED[: ALIGNED.index("ATOM ")] + "# end\n",
    "no atoms": "data_x\n_cell.length_a 1\n",
}


@pytest.fixture(params=[cif_parse._BLOCK, 1, 2])
def _rows_per_block(request, monkeypatch):
    monkeypatch.setattr(cif_parse, "_BLOCK", request.param)


@pytest.mark.usefixtures("_rows_per_block")
@pytest.mark.parametrize("text", [*ALIGNED_FORMS.values(), *OTHER_FORMS.values()])
def test_every_form_has_the_values_of_its_words(text, monkeypatch):
    content = unify_lines(text.encode())
    is_aligned = cif_parse._find_aligned_rows(content) is not None
    assert is_aligned == (text in ALIGNED_FORMS.values())
    expected = _word_by_word(content, monkeypatch)
    assert _values(_parse(content)) == _values(expected)
    chosen = _word_by_word(content, monkeypatch, READ)
    assert _values(_parse(content, READ), READ) == _values(chosen, READ)


def test_values_of_categories_that_are_not_read_are_not_checked():
    content = unify_lines(ALIGNED.encode() + b"loop_\n_b.c\n_b.d\n1 2 3\n")
    assert len(parse_cif(content, "text", READ)) == 1
    with pytest.raises(StructureFileError, match=r"_b\.c"):
        parse_cif(content, "text")


@pytest.mark.parametrize("text", [ALIGNED, OTHER_FORMS["not aligned"], OTHER_FORMS["text field in a row"]])
def test_a_file_without_its_loop_of_atoms_has_all_else(text):
    content = unify_lines(text.encode())
    (block,) = parse_cif(content, "text", ["atom_site"])
    loop = block.loops["atom_site"]
    rest = content[: loop.start] + content[loop.stop :]
    (other,) = parse_cif(rest, "text")
    assert set(other.tables) == {"cell", "other"} and b"# end" in rest


@pytest.mark.parametrize(
    "text",
    [
        ALIGNED_FORMS["atom_site in two parts"],
        OTHER_FORMS["pairs"],
        "data_x\nloop_\n_atom_site.id\n_b.x\n1 2\n",
    ],
    ids=["two parts", "pairs", "loop with another category"],
)
def test_atoms_that_are_not_one_loop_have_no_place(text):
    (block,) = parse_cif(unify_lines(text.encode()), "text")
    assert "atom_site" not in block.loops
