"""Odd, broken and spreadsheet-like label tables: the kind that each is understood as, or the data of its refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["FILES", "LABEL_TABLES", "TWO_CHAINS", "LabelTableCase"]

FILES = ("1ajj", "1crn", "1vii", "2erl", "3u7t", "1bx8", "1fas")
"""Committed entries of one short protein chain that the tables name."""
TWO_CHAINS = "2d7t"
"""Committed entry of the chains H and L; H has the residues 82, 82A, 82B and 82C."""


@dataclass(frozen=True)
class LabelTableCase:
    """A label table with options, and what it must be understood as.

    Parameters
    ----------
    name : str
    content : bytes
        Of the file.
    outcome : str
        "classification", "multilabel" or "regression", or the class of the error.
    parts : tuple of str
        Texts that the description or the message contains.
    options : mapping
        ``task``, ``columns``, ``kind``, ``unknown`` of :func:`protgraph.labels.load_dataset`.
    suffix : str
        Of the file.
    """

    name: str
    content: bytes
    outcome: str
    parts: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)
    suffix: str = ".csv"

    @property
    def is_refused(self) -> bool:
        """True if the table must be refused."""
        return self.outcome.endswith("Error")

    def arguments(self) -> list[str]:
        """Return the options of the command line."""
        found: list[str] = []
        for name, option in (("task", "--task"), ("kind", "--kind"), ("columns", "--column"), ("unknown", "--unknown")):
            value = self.options.get(name, ())
            for text in [value] if isinstance(value, str) else value:
                found += [option, str(text)]
        return found


def _table(
    name: str,
    header: str,
    rows: Sequence[str],
    outcome: str,
    *parts: str,
    encoding: str = "utf-8",
    end: str = "\n",
    suffix: str = ".csv",
    **options: object,
) -> LabelTableCase:
    content = (end.join([header, *rows]) + end).encode(encoding)
    return LabelTableCase(name, content, outcome, parts, options, suffix)


def _column(name: str, values: Sequence[str], outcome: str, *parts: str, **options: object) -> LabelTableCase:
    """Return a table with one label per protein; cells with a comma are quoted."""
    cells = [f'"{value}"' if "," in value else value for value in values]
    rows = [f"{file},{cell}" for file, cell in zip(FILES, cells, strict=False)]
    return _table(name, "file,x", rows, outcome, *parts, **options)


def _rows(values: Sequence[str], separator: str = ",") -> list[str]:
    return [separator.join((file, value)) for file, value in zip(FILES, values, strict=False)]


_NUMBERS = ("1.5", "2.5", "3.25", "4", "5.5", "6.5", "7")
_STATES = ("open", "shut", "open", "shut", "shut", "open", "open")
_REFUSED = "LabelError"
_RESIDUES = [f"1crn,A,{i},{i % 2}" for i in range(1, 9)]

LABEL_TABLES = (
    # numbers
    _column("numbers", _NUMBERS, "regression", "7 rows from 1.5 to 7, mean 4.321"),
    _column("small numbers", ("1e-9", "2e-9", "3.5e-9"), "regression", "from 1e-09 to 3.5e-09"),
    _column("signs and points", ("+1.5", "-2.", ".5", "3"), "regression", "from -2 to 3"),
    _column("blank numbers", ("1.5", "", "2.5", ""), "regression", "2 blank"),
    _column("nan numbers", ("1.5", "nan", "NaN", "3"), "regression", "1 'nan'", "1 'NaN'"),
    _column("NA numbers", ("1.5", "NA", "2.5", "NA"), "regression", "2 'NA'"),
    _column("markers of spreadsheets", ("1.5", "#N/A", "n/a", "2.5", "N/A"), "regression", "1 '#N/A'", "1 'n/a'"),
    _column("null and None", ("1.5", "null", "None", "2.5", "NULL"), "regression", "1 'null'", "1 'None'"),
    _column("dash and question mark", ("1.5", "-", "?", "2.5"), "regression", "1 '-'", "1 '?'"),
    _column("other marker", ("1.5", "missing", "2.5"), _REFUSED, "row 3 is 'missing'"),
    _column("other marker named", ("1.5", "missing", "2.5"), "regression", "1 'missing'", unknown=["missing"]),
    _column("marker not named", ("1.5", "NA", "2.5"), _REFUSED, "row 3 is 'NA'", unknown=["-"]),
    _column("below a limit", ("5", "<3", "7.5"), _REFUSED, "row 3 is '<3'"),
    _column("infinity", ("1.5", "inf", "2.5"), _REFUSED, "row 3 is 'inf'"),
    _column("underscores", ("1_000", "2_500", "3_500"), _REFUSED, "own text"),
    *(
        _column(f"formatted number {text}", ("1.5", text, "2.5"), _REFUSED, "row 3 is", "plain numbers")
        for text in ("5%", "12.5 %", "40,5", "1.234,5", "1,234.5", "1,234", "1'250", "1 250", "1\u00a0250", "\u22121.5")
    ),
    *(
        _column(f"column of {texts[0]}", texts, _REFUSED, "row 2 is", "plain numbers")
        for texts in (("5%", "5%", "80%"), ("40,5", "41,25", "40,5"), ("1,234", "2,345", "1,234"), ("1'250", "1'250"))
    ),
    _column("three decimals", ("1.234", "2.345", "0.125"), "regression", "from 0.125 to 2.345"),
    _table("semicolons", "file;x", _rows(("40,5", "-1,25e1", "7"), ";"), "regression", "decimal comma", "semicolon"),
    _table("semicolons, three decimals", "file;x", _rows(("1,234", "2,5", "7"), ";"), "regression", "from 1.234 to 7"),
    _table("semicolons, points", "file;x", _rows(("1.234", "2.5", "7"), ";"), "regression", "from 1.234 to 7"),
    _table("semicolons, points and commas", "file;x", _rows(("1.234", "2,5", "7"), ";"), _REFUSED, "row 2 is '1.234'"),
    _table("semicolons, thousands", "file;x", _rows(("1.234,5", "2,5"), ";"), _REFUSED, "row 2 is '1.234,5'"),
    _table("semicolons, points in another column", "file;ph;x", _rows(("6,5;1.234", "7,5;2.345", "8;9.876"), ";"),
           "regression", "from 1.234 to 9.876", task="x"),
    _table("tabs", "file\tx", _rows(_NUMBERS, "\t"), "regression", "tab"),
    _table("tabs, decimal commas", "file\tx", _rows(("40,5", "41,25", "7"), "\t"), _REFUSED, "row 2 is '40,5'"),
    _column("constant numbers", ("2.5", "2.5", "2.5"), _REFUSED, "'2.5'", "all 3 labeled rows"),
    _column("too large for float32", ("1e148", "2e148", "3"), _REFUSED, "1e35", "unit"),
    _column("too small for float32", ("1e-40", "2e-40", "0"), _REFUSED, "1e-35", "unit"),
    _column("beyond the digits of float32", ("100000000.1", "100000000.2"), _REFUSED, "Subtract a constant"),
    _column("digits with a leading zero", ("010011001010", "110001010011"), _REFUSED, "row 2 is", "leading zero",
            "one row for each residue"),
    _column("digits with a leading zero as numbers", ("010011001010", "110001010011"), _REFUSED, "leading zero",
            kind="regression"),
    _column("more digits than a number has", ("1100011001010110", "1"), _REFUSED, "16 digits"),
    _column("digits 0 and 1 only", ("1101", "1001", "11101", "10"), _REFUSED, "row 4 is '11101'", "one digit per"),
    _column("powers of ten", ("1000", "10000", "100000", "10"), "regression", "from 10 to 1e+05"),
    _column("short numbers with a zero", ("007", "012", "03"), "regression", "from 3 to 12"),
    _column("error of a formula", ("1.5", "#DIV/0!", "2.5"), _REFUSED, "row 3 is '#DIV/0!'", "formula"),
    _column("ranges", ("6.5", "6-7", "7", "8", "7-8", "5-6", "4-5", "3"), _REFUSED, "row 3 is '6-7', row 6 is '7-8'",
            "row 7 is '5-6', …", "one number"),
    _column("not determined", ("6.5", "n.d.", "7", "8"), _REFUSED, "row 3 is 'n.d.'", "--unknown 'n.d.'"),
    _column("not determined, named", ("6.5", "n.d.", "7", "8"), "regression", "1 'n.d.'", unknown=["n.d."]),
    _column("long dash", ("6.5", "\u2014", "7", "8"), _REFUSED, "row 3 is '\u2014'", "--unknown"),
    _column("mostly text", ("high", "low", "3", "high"), _REFUSED, "row 2 is 'high'", "--kind classification"),
    # binary labels and integers
    _column("0, 1 and one 2", ("0", "1", "0", "1", "2", "1"), _REFUSED, "0, 1, 2", "--kind"),
    _column("0, 1 and one 2 as numbers", ("0", "1", "0", "1", "2", "1"), "regression", "0 to 2", kind="regression"),
    _column("binary", ("0", "1", "1", "0", ""), "multilabel", "2 of 4 rows positive", "1 blank"),
    _column("binary as floats", ("0.0", "1.0", "1.0", ""), "multilabel", "2 of 3 rows positive"),
    _column("binary as classes", ("0", "1", "1", "0"), "classification", "0 2, 1 2", kind="classification"),
    _column("only zeros", ("0", "0", "0"), _REFUSED, "'0'"),
    _column("classes 1 2 3", ("1", "2", "3", "1", "2", "3"), _REFUSED, "1, 2, 3", "--kind classification"),
    _column("classes 1 2 3 as classes", ("1", "2", "3", "1", "2", "3"), "classification", "3 classes",
            kind="classification"),
    _column("classes 1 2 3 as numbers", ("1", "2", "3", "1", "2", "3"), "regression", "1 to 3", kind="regression"),
    _column("classes as floats", ("1.0", "2.0", "1.0", "2.0"), _REFUSED, "1, 2", "--kind"),
    _column("minus one and one", ("1", "-1", "1", "-1"), _REFUSED, "-1, 1", "--kind"),
    _column("different integers", ("3", "14", "15", "92", "65"), "regression", "from 3 to 92"),
    _column("multilabel of numbers", ("0", "1", "2"), _REFUSED, "row 4 is '2'", kind="multilabel"),
    _column("unknown kind", ("0", "1"), _REFUSED, "'classificaton'", "'classification'", kind="classificaton"),
    # classes
    _column("text", _STATES, "classification", "2 classes", "open 4, shut 3"),
    _column("text with blanks", ("open", "", "shut", "open"), "classification", "1 blank"),
    *(
        _column(f"{positive} and {negative}", (positive, negative, "", positive), "multilabel",
                "2 of 3 rows positive", f"'{positive}' is 1", "1 blank")
        for positive, negative in (("TRUE", "FALSE"), ("True", "False"), ("yes", "no"), ("T", "F"), ("Y", "N"))
    ),
    _column("TRUE and FALSE as binary labels", ("TRUE", "FALSE", "TRUE"), "multilabel", "2 of 3", kind="multilabel"),
    _column("TRUE and FALSE as classes", ("TRUE", "FALSE", "TRUE"), "classification", "FALSE 1, TRUE 2",
            kind="classification"),
    _column("TRUE and FALSE as numbers", ("TRUE", "FALSE", "TRUE"), _REFUSED, "row 2 is 'TRUE'", kind="regression"),
    _column("TRUE, False and NA", ("TRUE", "False", "NA", "true"), "multilabel", "2 of 3", "1 'NA'"),
    _column("TRUE and a third word", ("TRUE", "FALSE", "TRUE", "maybe", "FALSE"), "classification", "maybe 1"),
    _column("TRUE and 0", ("TRUE", "FALSE", "0", "1"), _REFUSED, "row 2 is 'TRUE'"),
    _column("maybe", ("yes", "no", "maybe", "yes", "no", "maybe", "no"), "classification", "maybe 2, no 3, yes 2"),
    _column("one class", ("loop", "loop", "", "loop"), _REFUSED, "'loop'", "all 3 labeled rows"),
    _column("text of its own in every row", [f"note {i}" for i in range(7)], _REFUSED, "each of 7 rows", "'note 0'"),
    _column("text of its own as classes", ("a", "b", "c"), "classification", "3 classes", kind="classification"),
    _column("two spellings of yes", ("yes", "no", "Yes", "no"), "multilabel", "2 of 4 rows positive"),
    _column("two spellings as classes", ("yes", "no", "Yes", "no"), "classification", "3 classes",
            kind="classification"),
    *(
        _column(f"{text} among classes", ("open", text, "shut", "open"), "classification", "2 classes", f"1 '{text}'")
        for text in ("NA", "N/A", "nan", "<NA>", "#N/A", "null")
    ),
    *(
        _column(f"{text} among numbers", ("1.5", text, "2.5"), "regression", "2 rows", f"1 '{text}'")
        for text in ("NA", "N/A", "nan", "<NA>", "#N/A", "null")
    ),
    _column("unknown, not sodium", ("ZN", "NA", "ZN", "MG"), "classification", "2 classes", "1 'NA'", unknown=["NA"]),
    _column("sodium", ("ZN", "NA", "ZN", "MG"), "classification", "3 classes", "NA 1", unknown=[""]),
    _column("a dash is a class", ("H", "E", "-", "H"), "classification", "3 classes", "- 1"),
    _column("numbers and text", ("1.5", "high", "2.5"), _REFUSED, "row 3 is 'high'", "--unknown 'high'"),
    _column("numbers and text as classes", ("1", "1A", "2", "2"), "classification", "3 classes",
            kind="classification"),
    _column("EC numbers as classes", ("1.1", "1.10", "2.7", "1.1"), "classification", "3 classes",
            kind="classification"),
    _column("EC numbers of four levels", ("1.1.1.1", "1.1.1.10", "1.1.1.1", "2.7.1.1"), "classification",
            "3 classes", "1.1.1.10 1"),
    _column("EC numbers of two and four levels", ("1.1", "1.1.1.10", "1.1"), _REFUSED, "row 3 is '1.1.1.10'",
            "--kind classification"),
    _table("EC column as classes", "file,EC", _rows(("3.2", "1.1", "3.2")), "classification", "1.1 1, 3.2 2",
           kind="classification"),
    _column("regression of text", _STATES, _REFUSED, "row 2 is 'open'", kind="regression"),
    _column("all blank", ("", "", ""), _REFUSED, "'x'"),
    _column("all unknown", ("-", "?", "-"), _REFUSED, "'x'", "no known label"),
    # columns
    _table("empty column", "file,x,notes", _rows([f"{v}," for v in _NUMBERS]), "regression", "blank", "notes"),
    _table("trailing commas", "file,x,", _rows([f"{v}," for v in _NUMBERS]), "regression", "without a name"),
    _table("trailing commas in rows", "file,x", _rows([f"{v}," for v in _NUMBERS]), "regression", "without a name"),
    _table("column without a name", "file,x,", _rows(["1.5,a", "2.5,b"]), _REFUSED, "column 3", "row 2", "'a'"),
    _table("index of pandas", ",file,x", ["0,1ajj,1.5", "1,1crn,2.5"], _REFUSED, "column 1", "row 2 has '0'"),
    _table("repeated column", "file,x,x", _rows(["1,2", "3,4"]), _REFUSED, "'x'", "repeated"),
    _table("long row", "file,x", _rows(["1.5", "2.5,3"]), _REFUSED, "row 3 has 3 columns"),
    _table("short row", "file,x,y", _rows(["1.5,2", "2.5"]), _REFUSED, "row 3 has 2 columns"),
    _table("several columns", "file,ph,kd", _rows(["7.5,1", "8,2.5"]), _REFUSED, "ph, kd", "--column"),
    _table("one of several", "file,ph,kd", _rows(["7.5,1", "8,2.5"]), "regression", "ph", task="ph"),
    _table("several together", "file,ph,kd", _rows(["7.5,1", "8,2.5"]), "regression", "2 numbers",
           columns=["ph", "kd"]),
    _table("numbers and classes together", "file,ph,s", _rows(["7.5,a", "8,b", "9,a"]), _REFUSED, "'s'",
           columns=["ph", "s"]),
    _table("misspelled task", "file,site,ph", _rows(["0,7.5", "1,8"]), "UnknownNameError", "'siet'", "'site'",
           task="siet"),
    _table("misspelled column", "file,site,ph", _rows(["0,7.5", "1,8"]), "UnknownNameError", "'hp'", "site, ph",
           columns=["hp"]),
    _table("no label column", "file,chain", ["1ajj,A"], "DatasetError", "no label column"),
    # keys
    _table("names of any case", "File,X", _rows(_NUMBERS), "regression", "X: numbers"),
    _table("spaces around names", " file , x ", _rows(_NUMBERS), "regression"),
    _table("aliases", "PDB ID,Chain_ID,resnum,site", _RESIDUES, "multilabel", "'PDB ID' is the file",
           "'resnum' is the res_id", "one per residue"),
    _table("aliases of mmCIF", "pdb;auth_asym_id;auth_seq_id;pdbx_PDB_ins_code;x",
           [f"1crn;A;{i};;{i / 2:g}".replace(".", ",") for i in range(1, 9)], "regression"),
    _table("no insertion code in mmCIF", "pdb,auth_seq_id,pdbx_PDB_ins_code,x",
           [f"1crn,{i},{'?.'[i % 2]},{i % 2}" for i in range(1, 9)], "multilabel"),
    _table("misspelled residue column", "file,residu,x", ["1crn,1,0", "1crn,2,1"], _REFUSED, "rows 2 and 3",
           "'res_id'"),
    _table("numbering of mmCIF", "pdb,label_seq_id,x", ["1crn,1,0", "1crn,2,1"], _REFUSED, "'label_seq_id'",
           "'auth_seq_id'"),
    _table("two columns of one key", "file,pdb,x", ["1crn,1crn,1"], _REFUSED, "'file'", "'pdb'", "--column"),
    _table("alias as a label", "file,resid", _rows(_NUMBERS), "regression", "resid: numbers", columns="resid"),
    _table("no file column", "name,x", _rows(_NUMBERS), _REFUSED, "'file'", "name, x"),
    _table("no chain column", "file,res_id,site", [f"1crn,{i},{i % 2}" for i in range(1, 9)], "multilabel",
           "8 rows without a chain"),
    _table("no chain column, two chains", "file,res_id,site", [f"{TWO_CHAINS},{i},{i % 2}" for i in range(5, 9)],
           _REFUSED, "row 2", "2d7t", "H, L", "'chain'"),
    _table("no insertion codes", "file,chain,res_id,x", [f"{TWO_CHAINS},H,82,{i}.5" for i in range(4)], _REFUSED,
           "rows 2 and 3", "82, 82A", "'ins_code'"),
    _table("glued insertion codes", "file,chain,res_id,x", [f"{TWO_CHAINS},H,82{c},{i}.5" for i, c in
           enumerate(("", "A", "B", "C"))], "regression", "4 rows"),
    _table("residue numbers as floats", "file,res_id,site", [f"1crn,{i}.0,{i % 2}" for i in range(1, 9)],
           "multilabel"),
    _table("residue number as text", "file,chain,res_id,x", ["1crn,A,one,2"], _REFUSED, "row 2 has res_id 'one'"),
    _table("same residue twice", "file,res_id,x", ["1crn,1,2", "1crn.bcif,1,2"], _REFUSED, "rows 2 and 3", "same"),
    _table("two labels of a residue", "file,res_id,x", ["1crn,1,2", "1crn,1,3"], _REFUSED, "different"),
    _table("absent files", "file,x", ["1abc,1", "1crn,2.5", "9xyz,3"], "AbsentFilesError", "'1abc' (row 2)",
           "'9xyz' (row 4)"),
    _table("file names in capitals", "file,x", [f"{name.upper()},{i}.5" for i, name in enumerate(FILES)],
           "regression", "'1AJJ' is 1ajj.bcif", "6 other names"),
    _table("file names with suffix", "file,x", [f"{name}.bcif,{i}.5" for i, name in enumerate(FILES)], "regression"),
    _table("split without a name", "file,x,split", _rows(["1.5,train", "2.5,", "3,val"]), "DatasetError", "row 3"),
    # text files
    _table("byte order mark", "file,x", _rows(_NUMBERS), "regression", encoding="utf-8-sig"),
    _table("UTF-16", "file\tx", _rows(_NUMBERS, "\t"), "regression", encoding="utf-16"),
    _table("Latin-1", "file,x", _rows(("größer", "kleiner", "größer")), _REFUSED, "row 2", "CSV UTF-8",
           encoding="latin-1"),
    _table("CRLF", "file,x", _rows(_NUMBERS), "regression", end="\r\n"),
    _table("blank lines", "file,x", ["", "1crn,1.5", "", ",", "1ajj,3", ""], "regression", "2 rows"),
    _table("row number after blank lines", "file,x", ["", "1crn,1.5", "", "1ajj,<3"], _REFUSED, "row 5 is '<3'"),
    _table("separator of Excel", "sep=;", ["file;x", *_rows(("40,5", "41,25", "7"), ";")], "regression", "semicolon",
           "3 rows", "decimal comma"),
    _table("separator of Excel that the cells have not", "sep=,", ["file,x;y", "1crn,1.5", "1ajj,2.5", "1vii,<3"],
           _REFUSED, "row 5 is '<3'", end="\r\n"),
    _table("open quote", "file,x", ['1crn,"a'], _REFUSED, "comma"),
    _table("header alone", "file,x", [], _REFUSED, "no labels"),
    LabelTableCase("empty file", b"", _REFUSED, ("no labels",)),
    LabelTableCase("null characters", b"file,x\n1crn,\0\n", _REFUSED, ("null characters",)),
    LabelTableCase("old Excel", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _REFUSED, (".xls", "CSV UTF-8"), suffix=".xls"),
    LabelTableCase("zip archive", b"PK\x03\x04 no workbook", _REFUSED, (".xlsx", "CSV UTF-8"), suffix=".xlsx"),
    LabelTableCase("damaged Parquet", b"PAR1 no table PAR1", _REFUSED, ("Parquet",), suffix=".parquet"),
)  # fmt: skip
"""Each case has its own name."""
