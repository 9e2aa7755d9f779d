"""The CIF parser against gemmi's, and against the rules of CIF 1.1 where gemmi differs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.errors import StructureFileError
from protgraph.structure.io.cif_parse import parse_cif, unify_lines


def _parse(text: str) -> list[tuple[str, dict[str, list[str]]]]:
    blocks = parse_cif(unify_lines(text.encode()), "text")
    return [(b.name, {f"{c}.{n}": t.column(n).texts().tolist() for c, t in b.tables.items() for n in t.names})
            for b in blocks]  # fmt: skip


def _by_gemmi(text: str) -> list[tuple[str, dict[str, list[str]]]]:
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    blocks = []
    for block in gemmi.cif.read_string(text):
        items: dict[str, list[str]] = {}
        for item in block:
            if item.pair is not None:
                items[item.pair[0][1:]] = [gemmi.cif.as_string(item.pair[1]) if len(item.pair[1]) > 1 else item.pair[1]]
            elif item.loop is not None:
                for i, tag in enumerate(item.loop.tags):
                    column = [item.loop[row, i] for row in range(item.loop.length())]
                    items[tag[1:]] = [gemmi.cif.as_string(v) if len(v) > 1 else v for v in column]
        blocks.append((block.name.strip(), items))
    return blocks


CASES = {
    "nameless block": "data_\n_a.b 1\n",
    "upper case": "DATA_x\nLOOP_\n_a.b\n_a.c\n1 2\n3 4\n",
    "comments": "# first\ndata_x # y\n_a.b 1 # hi 'there\nloop_ # z\n_c.d #x\n1 #y\n# between\n2\n#\n",
    "save frame": "data_x\nsave_f\n_a.b 1\nsave_\n_a.c 2\n",
    "quotes": "data_x\n_a.b 'it's x'\n_a.c \"a'b\"\n_a.d 'a\"'\n_a.e ' b'\n_a.f ''\n_a.g a'b\"c\n",
    "quoted null": "data_x\nloop_\n_a.b\n'.' . '?' ? \".\"\n",
    "quoted tag and keyword": "data_x\n_a.b '_a.c'\n_a.d 'loop_'\n_a.e \"data_y\"\n",
    "text field": "data_x\n_a.b\n;hello\n world ; ' \"\n_a.z 1\n;\n_a.c ;x\n",
    "text field beside a tag": "data_x\n_a.b\n;a\n; _a.c 2\n",
    "text field in a loop": "data_x\nloop_\n_a.b\n_a.c\n1\n;two\n;\n3 4\n",
    "two blocks": "data_x\n_a.b 1\ndata_y\n_a.b 2\n",
    "stop": "data_x\nloop_\n_a.b\n1\n2\nstop_\n_c.c 3\n",
    "one line": "data_x _a.b 1 loop_ _c.d _c.e 1 2 3 4 _f.g 5",
    "rows over lines": "data_x\nloop_\n_a.b\n_a.c\n_a.d\n1 2\n3 4 5\n\n6 7 8\n9\n",
    "tabs": "data_x\n\t_a.b\t1\n \t_a.c   2\t\n",
    "hash inside": "data_x\n_a.b C#N\n_a.c 'a #b'\n",
    "no blocks inside": "data_x\ndata_y\n",
}  # fmt: skip


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_legal_forms_equal_those_of_gemmi(text, line_end):
    assert _parse(text.replace("\n", line_end)) == _by_gemmi(text)


def test_characters_beyond_ascii_and_a_byte_order_mark():
    assert _parse("\ufeffdata_x\n_a.b Å\n_a.c 'é è'\n") == [("x", {"a.b": ["Å"], "a.c": ["é è"]})]
    (block,) = parse_cif(b"data_x\n_a.b '\xc5ngstr\xf6m'\n", "text")  # Latin-1
    assert block.get("a").column("b").texts().tolist() == ["Ångström"]


def test_case_of_names_that_are_read_is_that_of_the_dictionary():
    assert _parse("data_x\n_ATOM_SITE.cartn_X 1\n_Other.Thing 2\n") == [
        ("x", {"atom_site.Cartn_x": ["1"], "Other.Thing": ["2"]})
    ]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("data_x\nloop_\n_a.b\n_a.c\n1 2 3\n", "3 values.*2 tags.*_a.b.*line 3"),
        ("data_x\n_a.b\n_a.c 3\n", "0 values.*_a.b.*line 2"),
        ("data_x\n_a.b 1 2\n", "2 values.*_a.b"),
        ("data_x\nloop_\n1 2\n", "loop_.*line 2"),
        ("data_x\n1\n", "value.*line 2"),
        ("_a.b 1\n", "line 1"),
        ("hello\ndata_x\n", "line 1"),
        ("data_x\n_a.b 1\n_a.b 2\n", "_a.b.*line 3"),
        ("data_x\n_a.b 'open\n", "'.*line 2"),
        ("data_x\n_a.b\n;open\n", ";.*line 3"),
    ],
)
def test_text_that_is_not_cif_raises_with_the_line(text, data):
    with pytest.raises(StructureFileError, match=data):
        _parse(text)
    with pytest.raises((ValueError, RuntimeError)):
        _by_gemmi(text)


VALUE = st.one_of(
    st.sampled_from(["1.5", ".", "?", "'.'", '"?"', "a'b", "'a b'", '"it\'s"', "''", "'a\"b # c'", "x#y", ";z"]),
    st.from_regex(r"[A-Za-z0-9.+-]{1,6}", fullmatch=True).filter(
        lambda t: not t.lower().startswith(("data_", "save_"))
    ),
    st.sampled_from(["\n;text\nmore 'x\n;\n", "\n;\n;\n"]),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 4), st.lists(VALUE, min_size=1, max_size=12), st.sampled_from([" ", "\n", "\t", " # c '\n", "  "])
)
def test_random_loops_equal_those_of_gemmi(width, values, blank):
    values = (values * width)[: len(values) // width * width or width]
    tags = "\n".join(f"_a.t{i}" for i in range(width))
    text = f"data_x\nloop_\n{tags}\n" + blank.join(values) + "\n"
    text = text.replace(" ;z", " z;").replace("\n;z", "\nz;").replace("\t;z", "\tz;")
    assert _parse(text) == _by_gemmi(text)
