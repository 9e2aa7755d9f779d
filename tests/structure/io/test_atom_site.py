"""``atom_site`` in every legal form gives the same atoms; values that are missing are NaN or defaults, and counted."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.errors import EmptyStructureError, StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.readers import read_atoms

NAMES = ("group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
         "label_seq_id", "pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv",
         "auth_seq_id", "auth_comp_id", "auth_asym_id", "auth_atom_id", "pdbx_PDB_model_num")  # fmt: skip
ATOMS = (("N", 0.0), ("CA", 1.5), ("C", 2.625), ("O", 3.125))
ROWS = [
    ["ATOM", str(4 * r + i + 1), name[0], name, ".", "GLY", chain, str(r + 1), "?", f"{x + 3.9 * r:.3f}", "-1.250",
     f"{i}.0", "1.00", "10.5", str(r + 1), "GLY", chain, name, "1"]
    for chain in "AB" for r in range(2) for i, (name, x) in enumerate(ATOMS)
]  # fmt: skip


def _cif(rows=ROWS, names=NAMES, *, head="data_x\n", tail="", loop="loop_", sep=" ") -> str:
    tags = "".join(f"_atom_site.{name}\n" for name in names)
    return f"{head}{loop}\n{tags}" + "\n".join(sep.join(row) for row in rows) + f"\n{tail}"


def _changed(column: str, values: dict[int, str]) -> list[list[str]]:
    rows = [list(row) for row in ROWS]
    for i, value in values.items():
        rows[i][NAMES.index(column)] = value
    return rows


def _without(*columns: str) -> tuple[list[list[str]], list[str]]:
    kept = [i for i, name in enumerate(NAMES) if name not in columns]
    return [[row[i] for i in kept] for row in ROWS], [NAMES[i] for i in kept]


def _models(order: str) -> list[list[str]]:
    """Return two models, chain by chain (A₁A₂B₁B₂) or interleaved by atom; x is 100 Å larger in the second."""
    x, model = NAMES.index("Cartn_x"), NAMES.index("pdbx_PDB_model_num")
    second = [[*row] for row in ROWS]
    for row in second:
        row[x], row[model] = f"{float(row[x]) + 100:.3f}", "2"
    if order == "chains":
        return [*ROWS[:8], *second[:8], *ROWS[8:], *second[8:]]
    return [row for pair in zip(ROWS, second, strict=True) for row in pair]


@pytest.fixture
def read(tmp_path):
    def read_text(text: str | bytes, **options):
        path = tmp_path / "x.cif"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_atoms(path, **options)

    return read_text


SAME = {
    "nameless block": _cif(head="data_\n"),
    "upper-case words": _cif(head="DATA_X\n", loop="LOOP_"),
    "mixed-case tags": _cif(names=[name.swapcase() for name in NAMES]),
    "mixed-case category": _cif().replace("_atom_site", "_Atom_Site"),
    "comments after values": _cif().replace("-1.250 0.0", "-1.250 0.0 # remark\n", 1),
    "comments after rows": _cif(sep=" ").replace(" 1\n", " 1 # 'x\n"),
    "comment lines between rows": _cif().replace(" 1\n", " 1\n# x\n", 2),
    "uncertainties": _cif(_changed("Cartn_y", dict.fromkeys(range(16), "-1.250(5)"))),
    "exponents": _cif(_changed("Cartn_y", {0: "-1.25e0", 1: "-125.E-2", 2: "-0.125e+1"})),
    "numbers without digits on one side": _cif(_changed("occupancy", {0: "1.", 1: "+1"})),
    "quoted values": _cif(_changed("label_comp_id", {0: "'GLY'", 1: '"GLY"'})),
    "quoted numbers": _cif(_changed("Cartn_y", {0: "'-1.250'"})),
    "text field as a value": _cif(_changed("auth_comp_id", {3: "\n;GLY\n;\n"})),
    "rows over lines": _cif().replace(" -1.250", "\n-1.250"),
    "all on one line": " ".join(_cif().split()),
    "tabs": _cif(sep="\t"),
    "Windows lines": _cif().replace("\n", "\r\n"),
    "old Macintosh lines": _cif().replace("\n", "\r"),
    "byte order mark": "\ufeff" + _cif(),
    "Latin-1 elsewhere": _cif(head="data_x\n_citation.title 'Å'\n").encode("latin-1"),
    "partial cell": _cif(head="data_x\n_cell.length_a 10.0\n"),
    "cell without values": _cif(head="data_x\n_cell.length_a ?\n_cell.length_b 10\n"),
    "text field beside a tag": _cif(head="data_x\n_a.b\n;text\n; _a.c 2\n"),
    "quote inside a value": _cif(head="data_x\n_a.b 'it's x'\n"),
    "name in a text field": _cif(head="data_x\n_a.b\n;\nloop_\n_atom_site.id\n1\n;\n"),
    "save frame": _cif(head="data_x\nsave_y\n_atom_site.id 1\nsave_\n"),
    "columns in another order": _cif([row[::-1] for row in ROWS], NAMES[::-1]),
    "author columns only": _cif(*_without("label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id")),
    "label columns only": _cif(*_without("auth_atom_id", "auth_comp_id", "auth_asym_id", "auth_seq_id")),
    "no optional columns": _cif(*_without("group_PDB", "id", "label_alt_id", "pdbx_PDB_ins_code", "occupancy",
                                          "pdbx_PDB_model_num", "type_symbol")),
    "unknown occupancy": _cif(_changed("occupancy", {0: "?", 5: "."})),
    "author numbers unknown": _cif(_changed("auth_seq_id", dict.fromkeys(range(4), "?"))),
    "models chain by chain": _cif(_models("chains")),
    "models atom by atom": _cif(_models("atoms")),
}  # fmt: skip


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_legal_forms_give_the_same_atoms(read, text):
    assert read(text).atoms == read(_cif()).atoms


@pytest.mark.parametrize("order", ["chains", "atoms"])
def test_models_need_not_be_adjacent(read, order):
    first, second = (read(_cif(_models(order)), model=model) for model in (1, 2))
    assert first.models == second.models == 2
    assert first.atoms == read(_cif()).atoms
    np.testing.assert_array_equal(second.atoms.coord, first.atoms.coord + np.array([100, 0, 0], np.float32))


def test_gemmi_reads_the_same_models(tmp_path):
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    for order in ("chains", "atoms"):
        (tmp_path / "x.cif").write_text(_cif(_models(order)))
        for i, model in enumerate(gemmi.read_structure(str(tmp_path / "x.cif")), 1):
            theirs = [(c.chain.name, c.residue.seqid.num, c.atom.name, *c.atom.pos.tolist()) for c in model.all()]
            atoms = read_atoms(tmp_path / "x.cif", model=i).atoms
            columns = (atoms.chain_id, atoms.res_id, atoms.atom_name, *atoms.coord.T)
            ours = list(zip(*(c.tolist() for c in columns), strict=True))
            assert [o[:3] for o in ours] == [t[:3] for t in theirs]
            np.testing.assert_allclose([o[3:] for o in ours], [t[3:] for t in theirs], atol=1e-5)


@pytest.mark.parametrize("null", ["?", "."])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_coordinates_without_a_value_are_left_out_and_counted(tmp_path, null, axis):
    path = tmp_path / "x.cif"
    path.write_text(_cif(_changed(f"Cartn_{'xyz'[axis]}", {3: null, 7: null})))
    atoms = read_atoms(path).atoms
    assert np.argwhere(np.isnan(atoms.coord)).tolist() == [[3, axis], [7, axis]]
    residues = clean(load_structure(path))
    assert residues.report.invalid_atoms == 2 and residues.report.missing_backbone == 2
    assert np.flatnonzero(~residues.backbone_mask[:, 3]).tolist() == [0, 1]


def test_values_that_were_read_in_place_of_others_are_noted(read):
    assert read(_cif()).warnings == ()
    notes = read(_cif(_changed("occupancy", {0: "?", 5: "."}))).warnings
    assert len(notes) == 1 and notes[0].startswith("2 occupancies")
    notes = read(_cif(_changed("auth_seq_id", dict.fromkeys(range(4), "?")))).warnings
    assert len(notes) == 1 and "4 atoms" in notes[0] and "label_seq_id" in notes[0]
    notes = read(_cif(*_without("auth_asym_id", "auth_seq_id", "occupancy", "B_iso_or_equiv"))).warnings
    missing = ("auth_asym_id", "auth_seq_id", "16 occupancies", "B_iso_or_equiv")
    assert [name in " ".join(notes) for name in missing] == [True] * 4


def test_one_atom_as_pairs_of_tag_and_value(read):
    pairs = "data_x\n" + "".join(f"_atom_site.{name} {value}\n" for name, value in zip(NAMES, ROWS[1], strict=True))
    assert read(pairs).atoms == read(_cif(ROWS[1:2])).atoms


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        (_changed("Cartn_x", {5: "1.2.3"}), "Cartn_x.*'1.2.3'.*row 6"),
        (_changed("auth_seq_id", {5: "12A"}), "auth_seq_id.*'12A'.*row 6"),
        (_changed("auth_seq_id", {5: "1.5"}), "auth_seq_id.*'1.5'.*row 6"),
        ([*ROWS[:-1], ROWS[-1][:-1]], "303 values.*19 tags"),
    ],
)
def test_damaged_values_raise_with_column_and_row(read, rows, data):
    with pytest.raises(StructureFileError, match=data):
        read(_cif(rows))


@pytest.mark.parametrize(
    "columns", [("Cartn_y",), ("auth_asym_id", "label_asym_id"), ("auth_atom_id", "label_atom_id")]
)
def test_required_columns(read, columns):
    with pytest.raises(StructureFileError, match=columns[0]):
        read(_cif(*_without(*columns)))


def test_a_loop_without_rows_raises(read):
    with pytest.raises(EmptyStructureError):
        read(_cif([]))


def test_assemblies_refer_to_label_asym_id(read, shared_data):
    text = (shared_data / "formats" / "3wip.cif").read_text()
    assert len(read(text, assembly="1").atoms) > 0
    with pytest.raises(StructureFileError, match="label_asym_id"):
        read(text.replace("_atom_site.label_asym_id", "_atom_site.other"), assembly="1")


@pytest.mark.parametrize("suffix", ["cif", "bcif"])
def test_assemblies_equal_those_of_biotite(shared_data, suffix):
    path = shared_data / "formats" / f"3o5r.{suffix}"
    file = (pdbx.CIFFile if suffix == "cif" else pdbx.BinaryCIFFile).read(path)
    options = {"extra_fields": ["b_factor", "occupancy"], "use_author_fields": True}
    theirs = pdbx.get_assembly(file, "1", model=1, altloc="all", **options)
    ours = read_atoms(path, assembly="1").atoms
    np.testing.assert_array_equal(ours.coord, theirs.coord)
    for name in ("res_id", "res_name", "atom_name", "element", "hetero", "b_factor", "occupancy"):
        np.testing.assert_array_equal(ours.get_annotation(name), theirs.get_annotation(name))


@pytest.mark.slow
def test_symbols_that_are_not_elements_are_inferred_and_counted(read, structures_dir, tmp_path):
    columns = {"type_symbol": "17", "auth_comp_id": "CA", "auth_atom_id": "CA"}
    rows = [list(row) for row in ROWS]
    rows[1][NAMES.index("type_symbol")] = "?"
    rows[2][NAMES.index("type_symbol")] = "Carbon"
    for name, value in columns.items():
        rows[3][NAMES.index(name)] = value
    parsed = read(_cif(rows))
    assert parsed.atoms.element[:5].tolist() == ["N", "C", "C", "CA", "N"] and parsed.inferred_elements == 3
    barnase = load_structure(structures_dir / "1bgs.bcif")  # line numbers of an old PDB file in type_symbol
    letters = {name[0] for name in np.unique(barnase.atoms.atom_name).tolist()}
    assert set(barnase.atoms.element.tolist()) == letters - set("123456789") and barnase.report.inferred_elements > 4000


@pytest.mark.parametrize("null", ["?", "."])
def test_values_that_are_missing_are_noted(read, null):
    parsed = read(_cif(_changed("B_iso_or_equiv", {1: null, 2: null})))
    assert parsed.warnings == ("2 B factors without a value, read as 0",)
    rows = _changed("auth_seq_id", {1: null})
    rows[1][NAMES.index("label_seq_id")] = null
    assert read(_cif(rows)).warnings == ("1 atoms have neither auth_seq_id nor label_seq_id",)


def test_a_repeated_column_raises(read):
    names = [*NAMES[:-1], "Cartn_X"]
    with pytest.raises(StructureFileError, match=r"_atom_site\.Cartn_X is repeated"):
        read(_cif(names=names))


@pytest.mark.parametrize("symbol", ["CA", "Ca", "X"])
def test_an_element_that_the_amino_acid_cannot_have_is_inferred(read, symbol):
    parsed = read(_cif(_changed("type_symbol", {1: symbol})))
    assert parsed.atoms.element[1] == "C" and parsed.inferred_elements == 1
