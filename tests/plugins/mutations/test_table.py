"""Tables of mutations: both forms, every format, and every row that is not valid in the failures."""

from __future__ import annotations

import gzip
import io

import pytest
from protgraph_plugins.mutations import format_variant, read_mutation_table

from protgraph.errors import LabelError

TEXT = "file,mutations,score\n1abc.cif,A:G42D,1\n1abc.cif,A:G42D;A:L45P,2\n2abc.cif,WT,3\n1abc.cif,A:Y52[A]F,4\n"
COLUMNS = (
    "file,chain,res_id,ins_code,wild_type,mutant,n_mutations,score\n"
    "1abc.cif,A,42,,G,D,1,1\n1abc.cif,A;A,42;45,,G;L,D;P,2,2\n2abc.cif,,,,,,0,3\n1abc.cif,A,52,A,Y,F,1,4\n"
)
EXPECTED = [
    (2, "1abc.cif", "A:G42D", "1"),
    (3, "1abc.cif", "A:G42D+A:L45P", "2"),
    (4, "2abc.cif", "WT", "3"),
    (5, "1abc.cif", "A:Y52[A]F", "4"),
]


def rows_of(source, **options) -> list[tuple[int, str, str, str]]:
    table = read_mutation_table(source, **options)
    assert not table.failures
    return [(r.row, r.file, format_variant(r.variant), r.cells["score"]) for r in table.rows]


@pytest.mark.parametrize("content", [TEXT, COLUMNS, TEXT.replace(";", "/").replace(",", "\t").replace("/", ";")])
def test_both_forms_and_separators(tmp_path, content):
    (tmp_path / "m.csv").write_text(content)
    assert rows_of(tmp_path / "m.csv") == EXPECTED


def test_workbook_parquet_and_frame_give_the_same(tmp_path):
    pd = pytest.importorskip("pandas")
    (tmp_path / "m.csv").write_text(COLUMNS)
    frame = pd.read_csv(tmp_path / "m.csv")
    frame.to_parquet(tmp_path / "m.parquet")
    frame.to_excel(tmp_path / "m.xlsx", index=False)
    from_zero = [(row - 2, *rest) for row, *rest in EXPECTED]
    assert rows_of(tmp_path / "m.xlsx") == EXPECTED
    assert rows_of(tmp_path / "m.parquet") == rows_of(frame) == from_zero


def test_default_chain(tmp_path):
    (tmp_path / "m.csv").write_text("mutation,score\nG42D,1\np.Leu45Pro,2\nB:G42D,3\n")
    found = [text for _, _, text, _ in rows_of(tmp_path / "m.csv", default_chain="A")]
    assert found == ["A:G42D", "A:L45P", "B:G42D"]


PROTEINGYM = """mutant,mutated_sequence,DMS_score,DMS_score_bin
K1A,AVLG,0.5,1
K1A:V2G,AGLG,-1.25,0
L3L,KVLG,0.0,1
WT,KVLG,0.1,1
"""


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_tables_of_proteingym_are_read_as_they_are(tmp_path, separator, index):
    lines = [f"{k - 1 if k else ''},{line}" if index else line for k, line in enumerate(PROTEINGYM.splitlines())]
    (tmp_path / "dms.csv").write_text("\n".join(lines).replace(",", separator))
    table = read_mutation_table(tmp_path / "dms.csv", default_chain="A")
    assert not table.failures and table.rows_with_commas == 0
    assert [format_variant(r.variant) for r in table.rows] == ["A:K1A", "A:K1A+A:V2G", "A:L3L", "WT"]
    assert [r.cells["DMS_score"] for r in table.rows] == ["0.5", "-1.25", "0.0", "0.1"]
    assert table.rows[1].cells["mutated_sequence"] == "AGLG"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("MKTAYIAKQRQISFVKSHFSRQ", "whole sequence"),  # of insertions and deletions
        ("K1A:V2*", "stop"),
        ("K1*:V2A", "stop"),
        ("K1-:V2A", "deletion"),
        ("k1a", "lower case"),
        ("k1a:v2g", "lower case"),
        ("K1A/V2G", "Join the mutations"),
        ("K1A V2G", "Join the mutations"),
        ("K1A_V2G", "Join the mutations"),
        ("K1A:K1G", "two mutations of residue A:1"),
        ("K1X", "20 amino acids"),
        ("K1_V2insA", "insertion"),
        ("", "no mutation"),
        ("_wt", "not one mutation"),
        ("K1A:", "empty"),
    ],
)
def test_a_row_of_proteingym_that_is_no_substitution_is_a_failure(tmp_path, text, part):
    (tmp_path / "dms.csv").write_text(f"mutant,DMS_score\nK1A,1\n{text},2\nV2G,3\n")
    table = read_mutation_table(tmp_path / "dms.csv", default_chain="A")
    assert [format_variant(r.variant) for r in table.rows] == ["A:K1A", "A:V2G"]
    (failure,) = table.failures
    assert failure.source.endswith("row 3") and failure.error_type == "MutationError" and part in failure.message


@pytest.mark.parametrize("text", ["K1A;V2G", "K1A+V2G", "K1A:V2G", "K1A,V2G", " K1A : V2G "])
def test_a_row_is_one_variant_with_any_separator_and_commas_are_counted(tmp_path, text):
    (tmp_path / "m.csv").write_text(f'mutations,score\n"{text}",1\n')
    table = read_mutation_table(tmp_path / "m.csv", default_chain="A")
    assert [format_variant(r.variant) for r in table.rows] == ["A:K1A+A:V2G"]
    assert table.rows_with_commas == ("," in text)


def test_the_column_chain_is_the_chain_of_texts_without_one(tmp_path):
    (tmp_path / "m.csv").write_text("chain,mutant,score\nB,K1A:V2G,1\nB,A:K1A,2\n,K1A,3\nH;L,K1A,4\n")
    table = read_mutation_table(tmp_path / "m.csv", default_chain="A")
    assert [format_variant(r.variant) for r in table.rows] == ["B:K1A+B:V2G", "A:K1A", "A:K1A", "A:K1A"]
    assert len(read_mutation_table(tmp_path / "m.csv").failures) == 2


@pytest.mark.parametrize(
    ("row", "error_type", "part"),
    [
        ("A,42,,G,*,1,A:G42D", "MutationError", "G42*"),
        ("A,42.5,,G,D,1,", "MutationError", "42.5"),
        ("A;A,42,,G,D,1,", "LabelError", "chain 2"),
        ("A,42;43,A,G;G,D;D,,", "LabelError", "ins_code 1"),
        ("A;A,42;42,,G;G,D;E,2,", "MutationError", "two mutations of residue A:42"),
        ("A,42,,G,D,2,", "MutationError", "n_mutations is 2"),
        ("A,42,,G,D,1,A:G43D", "MutationError", "two different"),
        (",,,,,,", "MutationError", "no mutation"),
        ("A,42,,G,,1,", "MutationError", "no mutation"),
        ("A,42,,G,D,0,", "MutationError", "n_mutations is 0"),
        ("A,42,,G,D,1,,extra", "LabelError", "8 cells"),
        (",,,,,1,A:G42del", "MutationError", "deletion"),
    ],
)
def test_a_bad_row_is_a_failure_and_the_others_keep_their_numbers(tmp_path, row, error_type, part):
    header = "chain,res_id,ins_code,wild_type,mutant,n_mutations,mutations"
    if row.startswith(",,,,,,"):
        row = "x" + row[1:]  # blank rows are not rows
    (tmp_path / "m.csv").write_text(f"{header}\nA,41,,G,D,1,\n{row}\nA,43,,G,D,1,A:G43D\n")
    table = read_mutation_table(tmp_path / "m.csv")
    assert [r.row for r in table.rows] == [2, 4]
    (failure,) = table.failures
    assert failure.source.endswith("m.csv row 3") and failure.error_type == error_type and part in failure.message


@pytest.mark.parametrize("header", ["chain,res_id,mutant", "variant,score", "mutation,mutation", "label_seq_id,wt,mut"])
def test_a_table_without_mutations_is_refused(tmp_path, header):
    (tmp_path / "m.csv").write_text(f"{header}\n{','.join('1' * len(header.split(',')))}\n")
    with pytest.raises(LabelError):
        read_mutation_table(tmp_path / "m.csv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "wild_types", "twice"), [("skempi_v2", 7085, 0, 2), ("megascale_subset", 364, 95, 0)]
)
def test_public_tables_are_read_whole(shared_data, name, rows, wild_types, twice):
    """Two rows of SKEMPI name one mutation twice."""
    pd = pytest.importorskip("pandas")
    content = gzip.decompress((shared_data / "mutations" / name / "mutations.tsv.gz").read_bytes()).decode()
    table = read_mutation_table(pd.read_csv(io.StringIO(content), sep="\t", dtype=str, keep_default_na=False))
    assert len(table.rows) == rows - twice and len(table.failures) == twice
    assert all("two mutations of residue" in failure.message for failure in table.failures)
    assert sum(not r.variant for r in table.rows) == wild_types
    assert all(len(r.variant) == int(r.cells["n_mutations"]) for r in table.rows)
