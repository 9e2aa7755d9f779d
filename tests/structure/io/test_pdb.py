"""Models of PDB files equal those of biotite, and records that biotite rejects or misreads are read or refused."""

from __future__ import annotations

import gzip
import io
import itertools
import re
import warnings

import numpy as np
import pytest
from biotite.structure.io import pdb

from protgraph.errors import SelectionError, StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.io import elements
from protgraph.structure.io.elements import element_symbols, infer_element
from protgraph.structure.io.pdb import read_model
from protgraph.structure.io.pdb_lines import NUMBERS, PDBText, parse_numbers, parse_texts
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.residues.structure import MOLECULE

FIELDS = ["b_factor", "occupancy"]
# Files whose atoms biotite 1.6 rejects or reads differently; the reason of each is in the tests below.
_OTHERS = {
    "altloc__occupancy.pdb": "blank occupancy: an error",
    "empty__incomplete.pdb": "blank occupancy: an error",
    "models-bad__ensemble_error_2.pdb": "ENDMDL without MODEL: one model",
    "models-bad__model_mismatch.pdb": "ENDMDL without MODEL: one model",
    "numbering__pdb1tw7_step3_charmm2namd_doubled_hex.pdb": "hexadecimal residue numbers: an error",
    "real-full__pdb2nwl-opm.pdb": "blank B factors: an error",
    "truncated__cut.pdb.gz": "damaged",
    "truncated__cut_mid_record.pdb": "truncated",
}


def _text(path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("latin-1")


def _records(*lines: str) -> PDBText:
    return PDBText.of("\n".join(lines))


@pytest.mark.slow
def test_real_files_equal_those_read_by_biotite(shared_data):
    paths = [*(shared_data / "formats").glob("*.pdb"), *(shared_data / "robustness").glob("*.pdb*")]
    compared, unread = 0, set()  # biotite 2.0 raises where it infers elements
    for path in sorted(paths):
        if path.name in _OTHERS or path.stat().st_size > 4e6:
            continue
        text = _text(path)
        records = PDBText.of(text)
        for model in {1, len(records.models)} if records.is_atom.any() else ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    theirs = pdb.PDBFile.read(io.StringIO(text)).get_structure(model, altloc="all", extra_fields=FIELDS)
                except ValueError as e:
                    if "read-only" not in str(e):
                        raise
                    unread.add(path.name)
                    continue
            compared += 1
            _check_equal(records, model, theirs, path.name)
    assert compared >= 50, unread


def _check_equal(records: PDBText, model: int, theirs, name: str) -> None:
    ours, inferred = read_model(records, model).atoms, read_model(records, model).inferred_elements
    assert set(ours.get_annotation_categories()) - {MOLECULE} == set(theirs.get_annotation_categories())
    for category in theirs.get_annotation_categories():
        a, b = getattr(ours, category), getattr(theirs, category)
        if category == "altloc_id":
            b = np.char.strip(b)
        if category == "element":
            b = np.char.upper(b)
            assert inferred or (a == b).all(), name
            continue
        assert a.dtype == b.dtype and np.array_equal(a, b), f"{name} {category}"
    assert ours.coord.dtype == theirs.coord.dtype and ours.coord.tobytes() == theirs.coord.tobytes()
    assert (ours.box is None) == (theirs.box is None) and (ours.box is None or (ours.box == theirs.box).all())


@pytest.mark.parametrize("x", ["   0.000", "  -0.000", "   -.500", "    .500", "9999.999", "-999.999", "  12.345"])
def test_numbers_equal_python_floats_bit_for_bit(pdb_lines, x):
    line = pdb_lines.atom("CA", "GLY", "A", 1, 0.0)
    table, _ = _records(line[:30] + x + line[38:]).records(1)
    values, valid = parse_numbers(table)
    assert valid.all() and values[0, 0].tobytes() == np.float64(float(x)).tobytes()


def test_random_numbers_equal_python_floats_bit_for_bit():
    rng = np.random.default_rng(0)
    table = np.full((20_000, 80), ord(" "), np.uint8)
    numbers = rng.integers(-999_999, 10_000_000, (len(table), 3)) / 1000
    others = rng.integers(-9_999, 99_999, (len(table), 2)) / 100
    res_id = rng.integers(-999, 10_000, len(table))
    for row, (xyz, (occupancy, b), number) in enumerate(zip(numbers, others, res_id, strict=True)):
        text = f"{number:4d}    " + "".join(f"{v:8.3f}" for v in xyz) + f"{occupancy:6.2f}{b:6.2f}"
        table[row, 22:66] = np.frombuffer(text.encode(), np.uint8)
    values, valid = parse_numbers(table)
    assert valid.all()
    assert (np.column_stack([numbers, others, res_id]) == values.T).all()


@pytest.mark.parametrize("name", list(NUMBERS))
def test_a_number_is_valid_exactly_in_the_standard_form(name):
    """Compare with a regular expression on all fields of three characters before the point, and on random ones."""
    column, (begin, end) = list(NUMBERS).index(name), NUMBERS[name]
    whole, decimals = {8: (4, 3), 6: (3, 2), 4: (4, 0)}[end - begin]
    characters = " 019-.+A"
    heads = ["".join(head) for head in itertools.product(characters, repeat=whole)]
    tails = ["." + "5" * decimals, "." + "5" * (decimals - 1) + " ", "1" + "5" * decimals, " " * (decimals + 1)]
    fields = [head + tail for head in heads for tail in (tails if decimals else [""])]
    table = np.full((len(fields), 80), ord("0"), np.uint8)
    table[:, begin:end] = np.frombuffer("".join(fields).encode(), np.uint8).reshape(len(fields), -1)
    values, valid = parse_numbers(table)
    form = re.compile(rf" *-?\d*\.\d{{{decimals}}}" if decimals else r" *-?\d+")
    assert valid[column].tolist() == [form.fullmatch(field) is not None for field in fields]
    rows = np.flatnonzero(valid[column])
    assert len(rows) >= 50 and values[column, rows].tolist() == [float(fields[row]) for row in rows]


def test_texts_equal_stripped_strings():
    rng = np.random.default_rng(2)
    field = np.frombuffer(b" AB1", np.uint8)[rng.integers(4, size=(3000, 4))]
    for width in (1, 2, 3, 4):
        expected = [row.tobytes().decode().strip() for row in field[:, :width]]
        assert parse_texts(field[:, :width], 5).tolist() == expected


@pytest.mark.parametrize("text", ["  1 2.00", "  --1.00", "  banana", "********", "        ", "   1_0.0"])
def test_words_instead_of_coordinates_raise_with_line_and_columns(pdb_lines, write_pdb, text):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    with pytest.raises(StructureFileError, match=r"line 3, columns 31–38.*x"):
        load_structure(write_pdb(lines[:2], lines[2][:30] + text + lines[2][38:]))


@pytest.mark.parametrize(
    ("text", "x"),
    [("12.34567", 12.34567), ("   +1.00", 1.0), ("  1.0e01", 10.0), ("1       ", 1.0)],
)
def test_numbers_in_another_form_are_read(pdb_lines, text, x):
    line = pdb_lines.atom("CA", "GLY", "A", 1, 0.0)
    assert read_model(_records(line[:30] + text + line[38:]), 1).atoms.coord[0, 0] == np.float32(x)


@pytest.mark.parametrize("number", ["    ", " 1.0", "A 00", "12-3", "aB00"])
def test_words_instead_of_residue_numbers_raise(pdb_lines, number):
    line = pdb_lines.atom("CA", "GLY", "A", 1, 0.0)
    with pytest.raises(StructureFileError, match="line 1, columns 23–26"):
        read_model(_records(line[:22] + number + line[26:]), 1)


def test_serials_of_six_digits_shift_their_records(pdb_lines):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    long = [f"{line[:6]}{99999 + i:>5}{line[11:]}" for i, line in enumerate(lines)]
    assert len(long[1]) == len(lines[0]) + 1
    whole, read = read_model(_records(*lines), 1), read_model(_records(*long), 1)
    assert whole.atoms == read.atoms and read.notes[0].startswith("3 ")


def test_old_columns_73_to_80_are_not_elements(pdb_lines):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    old = [f"{line[:66]}      1VFB{i:4d}" for i, line in enumerate(lines, 98)]  # entry id and line number
    read = read_model(_records(*old), 1)
    assert read.atoms.element.tolist() == ["N", "C", "C", "O"] and read.inferred_elements == 4
    assert read.atoms.chain_id.tolist() == ["A"] * 4


def test_every_symbol_is_read_in_any_case_and_position():
    from protgraph.structure.residues.atoms import ELEMENTS

    texts = [side for s in ELEMENTS for w in (s, s.lower(), s.capitalize()) for side in (w.ljust(2), w.rjust(2))]
    columns = np.frombuffer("".join(texts).encode(), np.uint8).reshape(-1, 2)
    assert element_symbols(columns).tolist() == [s for s in ELEMENTS for _ in range(6)]
    others = ["  ", " 2", "17", "1+", "Q ", "N1", "--"]
    assert not any(element_symbols(np.frombuffer("".join(others).encode(), np.uint8).reshape(-1, 2)).tolist())


@pytest.mark.parametrize(
    ("residue", "name", "element"),
    [("GLY", " CA ", "C"), ("GLY", "CA  ", "C"), ("CA", "CA  ", "CA"), ("LEU", "HD11", "H"), ("LEU", "1HD1", "H"),
     ("MSE", "SE  ", "SE"), ("HEM", "FE  ", "FE"), ("HEM", " NA ", "N"), ("HEM", "NA  ", "N"), ("DA", " P  ", "P"),
     ("ZN", "ZN  ", "ZN"), ("HOH", " O  ", "O"), ("CYS", " SG ", "S"), ("ALA", " D  ", "D"), ("NAG", " C1 ", "C"),
     ("QQQ", "CL1 ", "CL"), ("QQQ", "C1  ", "C"), ("QQQ", "HE2A", "H"), ("QQQ", "?   ", "X"), ("NAG", "1H2 ", "H")],
)  # fmt: skip
def test_elements_are_inferred_from_names_and_residues(residue, name, element):
    assert infer_element(residue, name) == element


def test_segment_ids_are_chain_ids_if_there_are_none(pdb_lines, write_pdb):
    lines = [line for x, segment in ((0.0, "PROA"), (50.0, "PROB")) for line in
             (f"{text[:72]}{segment}{text[76:]}" for text in pdb_lines.residue("GLY", " ", 1, x))]  # fmt: skip
    residues = clean(load_structure(write_pdb(lines)))
    assert residues.ids == ["PROA:1", "PROB:1"] and "PROA" not in str(residues.report.repeated_chains)
    named = [f"{line[:21]}A{line[22:]}" for line in lines[:4]]
    assert clean(load_structure(write_pdb(named))).ids == ["A:1"]


def test_lower_case_names_of_amino_acids_are_read(pdb_lines, write_pdb):
    lines = [line[:12] + line[12:20].lower() + line[20:] for line in pdb_lines.residue("GLY", "A", 1, 0.0)]
    lines = [line.lower() if i == 1 else line for i, line in enumerate(lines)]
    residues = clean(load_structure(write_pdb(line.replace(" a ", " A ") for line in lines)))
    assert residues.sequence == "G" and residues.backbone_mask.all() and len(residues.report.warnings) == 1


def _models(pdb_lines, *parts: float | str) -> str:
    return "\n".join(p if isinstance(p, str) else "\n".join(pdb_lines.residue("GLY", "A", 1, p)) for p in parts) + "\n"


@pytest.mark.parametrize(
    ("parts", "places", "undeclared"),
    [
        ((1.0, "END"), [1.0], ()),
        (("MODEL        1", 1.0, "ENDMDL", "MODEL        2", 2.0, "ENDMDL", "END"), [1.0, 2.0], ()),
        (("MODEL        1", 1.0, "MODEL        2", 2.0), [1.0, 2.0], ()),
        ((1.0, "ENDMDL", 2.0, "ENDMDL"), [1.0, 2.0], (1, 2)),
        ((1.0, "ENDMDL", "MODEL        2", 2.0, "ENDMDL"), [1.0, 2.0], (1,)),
        (("MODEL        1", 1.0, "ENDMDL", 2.0, "END"), [1.0, 2.0], (2,)),
        ((1.0, "END", 2.0, "END   "), [1.0, 2.0], (1, 2)),
        (("REMARK MODEL", "ENDED", "MODELLER", 1.0, "END", "MASTER"), [1.0], ()),
        (("model", 1.0, "endmdl"), [1.0], ()),
    ],
)
def test_models_end_at_model_endmdl_and_end(pdb_lines, tmp_path, parts, places, undeclared):
    path = tmp_path / "x.pdb"
    for line_end in ("\n", "\r\n", "\r"):
        path.write_bytes(_models(pdb_lines, *parts).replace("\n", line_end).encode())
        for number, x in enumerate(places, 1):
            structure = load_structure(path, model_number=number)
            assert structure.atoms.coord[0, 0] == x and len(structure.atoms) == 4
            assert structure.report.models == len(places) - 1
            assert [text.rsplit(": ")[-1] for text in structure.report.warnings] == (
                [", ".join(map(str, undeclared))] if undeclared else []
            )
        with pytest.raises(SelectionError, match=str(len(places))):
            load_structure(path, model_number=len(places) + 1)


def test_short_and_long_lines_tabs_and_other_characters(pdb_lines):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    whole = read_model(_records(*lines), 1).atoms
    for change in (lambda s: s.rstrip(), lambda s: f"{s:<90}x", lambda s: s.replace("   1    ", "   1\t   ")):
        assert read_model(_records(*map(change, lines)), 1).atoms == whole
    assert read_model(_records("REMARK Å \x85 \x0c", *lines), 1).atoms == whole
    assert read_model(_records("\ufeffREMARK", *lines), 1).atoms == whole


def test_line_ends_give_the_same_atoms(shared_data, tmp_path):
    content = (shared_data / "formats" / "1l2y.pdb").read_bytes()
    whole = read_atoms(shared_data / "formats" / "1l2y.pdb", model=3).atoms
    for line_end in (b"\r\n", b"\r"):
        (tmp_path / "x.pdb").write_bytes(content.replace(b"\n", line_end))
        assert read_atoms(tmp_path / "x.pdb", model=3).atoms == whole


def test_elements_of_polymers_are_inferred_without_the_dictionary_of_atoms(monkeypatch, structures_dir):
    """1bgs has numbers instead of symbols; biotite's dictionary of atoms takes 600 MB."""
    elements.element_of_name.cache_clear()
    monkeypatch.setattr(elements, "_dictionary_element", None)
    report = clean(load_structure(structures_dir / "1bgs.bcif")).report
    assert report.to_dict() == {"inferred_elements": 4788}
