"""Cleaning: residues and sequences against published ones, and counts of all losses."""

from __future__ import annotations

import csv
import itertools
import tarfile

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.errors import EmptyStructureError, ProtgraphError, SelectionError, StructureFileError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.io.sniff import FileContent

ENTRIES = ("1aki", "1dix", "1igy", "1k6p", "1l2y", "1o1z", "2d0f", "3o5r", "3wip", "5h73", "5zng")

# Unusual files without a protein residue that has a CA, and files that are damaged or of another format.
REFUSED = {
    EmptyStructureError: [
        "cif-odd__1MOM_min.cif",
        "cif-odd__1SSU_mod.cif",
        "cif-odd__CAFINE.cif",
        "cif-odd__eol-test.cif",
        "cif-odd__ice_IV.cif",
        "cif-odd__non_utf8_encoded.cif",
        "empty__empty_model.pdb",
        "format__official.bcif",
        "header-only__5moo_header.pdb",
        "header-only__header.pdb",
        "ligand__hetatm_bad.pdb",
        "models-bad__ensemble_error_1.pdb",
        "models-bad__ensemble_error_2.pdb",
        "models-bad__ensemble_error_MODEL.pdb",
        "models-bad__model_mismatch.pdb",
        "modres__example_ncaa.cif",
        "nmr__ensemble_OK.cif",
        "nmr__ensemble_OK.pdb",
        "no-protein__fullerene.pdb.gz",
        "no-protein__ions.pdb",
        "no-protein__solvent.pdb",
        "nucleic__104D_v23.pdb",
        "nucleic__1bna.pdb",
        "nucleic__1rna.cif",
        "nucleic__4gxy.cif",
        "numbering__sameresid_diffresname.pdb",
        "numbering__xl_serial.pdb",
        "predicted__swiss_model_multimer.pdb",
    ],
    StructureFileError: [
        "ca-only__1stp.bb.mmtf",
        "empty__zero.cif",
        "format__empty-all0.mmtf",
        "numbering__cryst_then_model.pdb.gz",
        "truncated__cut.bcif",
        "truncated__cut.pdb.gz",
        "truncated__cut_mid_record.pdb",
    ],
}


@pytest.mark.slow
def test_sequences_of_committed_entries_equal_the_published_table(shared_data, structures_dir):
    with open(shared_data / "embedded" / "chains.tsv", newline="") as file:
        rows = sorted(csv.DictReader(file, delimiter="\t"), key=lambda row: row["entry"])
    assert len(rows) == 420
    for entry, chains in itertools.groupby(rows, key=lambda row: row["entry"]):
        residues = clean(load_structure(structures_dir / f"{entry}.bcif"))
        for row in chains:
            assert residues.chains([row["chain"]]).sequence == row["sequence"], f"{entry} {row['chain']}"


@pytest.mark.parametrize("entry", ENTRIES)
def test_residues_equal_the_polypeptide_entities_of_the_entry(shared_data, entry):
    block = pdbx.CIFFile.read(shared_data / "formats" / f"{entry}.cif").block
    polymer = block["entity_poly"]
    kinds = dict(zip(polymer["entity_id"].as_array(str), polymer["type"].as_array(str), strict=True))
    site = {name: column.as_array(str, "") for name, column in block["atom_site"].items()}
    first_model = site["pdbx_PDB_model_num"] == site["pdbx_PDB_model_num"][0]
    protein = np.array(["polypeptide" in kinds.get(entity, "") for entity in site["label_entity_id"]])
    alpha = site["label_atom_id"] == "CA"
    columns = ("auth_asym_id", "auth_seq_id", "pdbx_PDB_ins_code")
    named = zip(*(site[name][first_model & protein & alpha] for name in columns), strict=True)
    expected = list(dict.fromkeys(f"{chain}:{number}{code}" for chain, number, code in named))
    assert clean(load_structure(shared_data / "formats" / f"{entry}.cif")).ids == expected


@pytest.mark.slow
def test_unusual_files_give_residues_with_a_report_or_a_typed_error(shared_data):
    files = [path for path in sorted((shared_data / "robustness").iterdir()) if path.name != "MANIFEST.tsv"]
    assert len(files) == 92
    refused: dict[type[Exception], list[str]] = {kind: [] for kind in REFUSED}
    for path in files:
        try:
            _check(clean(load_structure(path)))
        except ProtgraphError as error:
            assert len(str(error).splitlines()) <= 3 and path.name in str(error)
            refused[type(error)].append(path.name)
    assert refused == REFUSED


def _check(r: Residues) -> None:
    """Check the invariants of residues."""
    n = len(r)
    assert n > 0 and len(set(r.ids)) == n
    assert np.isfinite(r.pos).all() and np.isfinite(r.atom_pos).all() and np.isfinite(r.b_factor).all()
    assert (r.aatype >= 0).all() and (r.aatype <= 20).all()
    assert (np.diff(r.atom_residue) >= 0).all() and len(set(r.atom_residue.tolist())) == n
    starts = np.flatnonzero(np.diff(r.chain_number, prepend=-1))
    assert len(starts) == len(r.chain_names) and not r.seq_pos[starts].any()
    assert (np.delete(np.diff(r.seq_pos, prepend=0), starts) >= 1).all()
    assert not set(r.atom_element) & {"H", "D"}
    pairs = set(zip(r.atom_residue.tolist(), r.atom_name.tolist(), strict=True))
    assert len(pairs) == len(r.atom_name)
    assert r.report.missing_backbone == (~r.backbone_mask.all(axis=1)).sum()


def test_random_damage_gives_residues_or_a_typed_error(shared_data, tmp_path):
    rng, read = np.random.default_rng(0), 0
    for suffix, trial in itertools.product(("pdb", "cif", "bcif"), range(25)):
        content = bytearray((shared_data / "formats" / f"5zng.{suffix}").read_bytes())
        kind = trial % 3
        if kind == 0:  # cut
            content = content[: rng.integers(len(content))]
        elif kind == 1:  # other bytes
            for place in rng.integers(len(content), size=20):
                content[place] = rng.integers(256)
        else:  # lines in another place
            lines = bytes(content).split(b"\n")
            i, j = rng.integers(len(lines), size=2)
            lines[i], lines[j] = lines[j], lines[i]
            lines.insert(i, lines[j])
            content = b"\n".join(lines)
        path = tmp_path / f"{trial}.{suffix}"
        path.write_bytes(content)
        try:
            _check(clean(load_structure(path)))
            read += 1
        except ProtgraphError as error:
            assert path.name in str(error)
    assert 20 < read < 75


def test_losses_are_counted(shared_data):
    report = clean(load_structure(shared_data / "robustness" / "ligand__1oky.pdb.gz")).report
    assert report.waters == 97 and report.ligands == {"GOL": 3, "SO4": 5, "STU": 1}
    assert report.modified == {"SEP": 1} and sum(report.without_ca.values()) == 1
    assert clean(load_structure(shared_data / "formats" / "1l2y.bcif")).report.to_dict() == {
        "models": 37,
        "hydrogens": 150,
    }
    assert clean(load_structure(shared_data / "robustness" / "large__4UPY.pdb")).report.nucleic == 337


def test_a_structure_without_protein_raises_with_its_content(shared_data):
    with pytest.raises(EmptyStructureError, match="24 nucleotides"):
        clean(load_structure(shared_data / "robustness" / "nucleic__1bna.pdb"))
    with pytest.raises(EmptyStructureError, match="2 water molecules"):
        clean(load_structure(shared_data / "robustness" / "no-protein__solvent.pdb"))


def test_chains_are_selected_and_unknown_ones_raise(structures_dir):
    structure = load_structure(structures_dir / "1jk9.bcif")
    assert clean(structure, chains=["D", "A"]).chain_names == ("A", "D")
    with pytest.raises(SelectionError, match="'Q'"):
        clean(structure, chains=["Q"])


def test_calcium_is_not_an_alpha_carbon(write_pdb, pdb_lines):
    atom, residue = pdb_lines
    calcium = atom("CA", "CA", "A", 101, 30.0, element="CA", record="HETATM")
    inside = [atom("N", "MSE", "A", 2, 3.9), atom("CA", "MSE", "A", 2, 5.4, element="CA")]
    residues = clean(load_structure(write_pdb(residue("GLY", "A", 1, 0.0), inside, calcium)))
    assert residues.ids == ["A:1"] and residues.report.ligands == {"CA": 1} and residues.report.without_ca == {"MSE": 1}


def test_a_modified_residue_in_atom_records_after_the_chain_is_at_its_place(write_pdb, pdb_lines):
    _, residue = pdb_lines
    chain = [residue("GLY", "A", 1, 0.0), residue("SER", "A", 3, 7.8), "TER", residue("MSE", "A", 2, 3.9)]
    for lines in (chain, [chain[-1], *chain[:-1]]):
        residues = clean(load_structure(write_pdb(*lines)))
        assert residues.sequence == "GMS" and residues.report.moved_residues == 1 and residues.report.gaps == 0


def test_a_free_amino_acid_is_a_ligand_and_a_bonded_one_a_residue(write_pdb, pdb_lines):
    _, residue = pdb_lines
    chain = [residue("GLY", "A", 1, 0.0), residue("SER", "A", 2, 3.9)]
    bonded = residue("MSE", "A", 3, 7.8, record="HETATM")
    free = residue("GLU", "A", 201, 40.0, record="HETATM")
    residues = clean(load_structure(write_pdb(*chain, bonded, free)))
    assert residues.sequence == "GSM"
    assert residues.report.modified == {"MSE": 1} and residues.report.ligands == {"GLU": 1}


def test_modified_residues_after_the_chain_are_at_their_place(write_pdb, pdb_lines):
    _, residue = pdb_lines
    names = ["GLY", "MSE", "SER", "MSE", "MSE", "THR", "VAL", "SEP"]
    lines = [residue(name, "A", i, 3.9 * i, record="HETATM" if name in ("MSE", "SEP") else "ATOM")
             for i, name in enumerate(names, 1)]  # fmt: skip
    chain_b = [line[:21] + "B" + line[22:] for line in residue("GLY", "B", 1, 100.0)]
    whole = clean(load_structure(write_pdb(*lines)))
    assert whole.sequence == "GMSMMTVS" and whole.report.moved_residues == 0
    apart = [lines[i] for i in (0, 2, 5, 6)]
    for order in ((1, 3, 4, 7), (7, 1, 3, 4), (4, 3, 7, 1)):
        made = clean(load_structure(write_pdb(*apart, chain_b, *(lines[i] for i in order))))
        assert made.sequence == "GMSMMTVSG" and made.chain_names == ("A", "B") and made.report.gaps == 0
        assert made.report.moved_residues >= 3 and made.report.ligands == {} and made.report.modified["MSE"] == 3
        np.testing.assert_array_equal(made.pos[:8], whole.pos)
    first = clean(load_structure(write_pdb(lines[1], lines[3], lines[4], lines[7], *apart)))
    assert first.sequence == "GMSMMTVS" and first.ids == whole.ids


def test_modified_residues_of_a_ca_trace_after_the_chain_are_at_their_place(write_pdb, pdb_lines):
    atom, _ = pdb_lines
    lines = [atom("CA", "MSE" if i == 2 else "GLY", "A", i, 3.8 * i, record="HETATM" if i == 2 else "ATOM")
             for i in (1, 2, 3, 4)]  # fmt: skip
    assert clean(load_structure(write_pdb(lines[0], *lines[2:], lines[1]))).sequence == "GMGG"


@pytest.mark.slow
def test_modified_residues_of_a_complex_after_its_chains_are_residues(shared_data):
    """In 1FQJ_l_u of DB5.5, all five MSE follow the ATOM records."""
    path = shared_data / "benchmark" / "db55_interfaces" / "benchmark5.5.tar.xz"
    with tarfile.open(path) as archive:
        member = next(m for m in archive if m.name.endswith("1FQJ_l_u.pdb"))
        content = archive.extractfile(member).read()
    residues = clean(load_structure(FileContent("1FQJ_l_u.pdb", content)))
    assert residues.report.modified == {"MSE": 5} and residues.report.gaps == 0
    assert (np.diff(residues.res_id) == 1).all()


def test_a_modified_residue_before_a_gap_is_a_residue(write_pdb, pdb_lines):
    _, residue = pdb_lines
    lone = residue("MSE", "A", 1, -40.0, record="HETATM")
    residues = clean(load_structure(write_pdb(lone, residue("GLY", "A", 5, 0.0))))
    assert residues.sequence == "MG" and residues.seq_pos.tolist() == [0, 4] and residues.report.gaps == 1


def test_a_residue_of_unknown_name_in_the_chain_is_x(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(residue("GLY", "A", 1, 0.0), residue("QQ9", "A", 2, 3.9), residue("GLY", "A", 3, 7.8))
    residues = clean(load_structure(path))
    assert residues.sequence == "GXG" and residues.report.unknown == {"QQ9": 1}


def test_seq_pos_increases_by_one_for_insertion_codes_and_by_the_numbering_over_gaps(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        residue("GLY", "A", 10, 0.0),
        residue("GLY", "A", 10, 3.9, ins="A"),
        residue("GLY", "A", 10, 7.8, ins="B"),
        residue("GLY", "A", 15, 40.0),  # four are not resolved
        residue("GLY", "A", 300, 43.9),  # the numbering jumps, the chain does not
        residue("GLY", "A", 7, 90.0),  # a break, numbered backwards
        residue("GLY", "B", 1, 93.9),
    )
    residues = clean(load_structure(path))
    assert residues.ids[:3] == ["A:10", "A:10A", "A:10B"]
    assert residues.seq_pos.tolist() == [0, 1, 2, 7, 8, 9, 0] and residues.report.gaps == 2


def test_missing_backbone_atoms_are_nan_and_counted(write_pdb, pdb_lines):
    _, residue = pdb_lines
    lines = residue("GLY", "A", 1, 0.0)
    residues = clean(load_structure(write_pdb(lines[:2], residue("GLY", "A", 2, 3.9))))
    assert residues.backbone_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert np.isnan(residues.backbone[0, 2:]).all() and residues.report.missing_backbone == 1


def test_a_trace_of_ca_atoms_is_a_chain(write_pdb, pdb_lines):
    atom, _ = pdb_lines
    path = write_pdb([atom("CA", "GLY", "A", i, 3.8 * i) for i in (1, 2, 3)], atom("CA", "GLY", "A", 9, 50.0))
    residues = clean(load_structure(path))
    assert residues.seq_pos.tolist() == [0, 1, 2, 8] and residues.report.gaps == 1


def test_inputs_are_not_changed(structures_dir):
    structure = load_structure(structures_dir / "1jk9.bcif")
    before = structure.atoms.copy()
    clean(structure, chains=["A"])
    assert structure.atoms == before


SAM_ATOMS = {"N": (0.0, 0, 0), "CA": (1.5, 0, 0), "C": (2.2, 1.3, 0), "O": (3.4, 1.3, 0), "OXT": (1.6, 2.3, 0),
             "CB": (2.0, -1.4, 0), "SD": (3.5, -2.5, 0)}  # fmt: skip


@pytest.mark.parametrize("record", ["ATOM", "HETATM"])
@pytest.mark.parametrize("name", ["SAM", "SAH", "MTX", "UN9"])
@pytest.mark.parametrize("number", [0, 3, 301])
@pytest.mark.parametrize("place", ["first", "last", "between"])
def test_a_molecule_with_n_ca_c_and_no_peptide_bond_is_a_ligand(write_pdb, pdb_lines, record, name, number, place):
    atom, residue = pdb_lines
    chain = [residue("GLY", "A", 1, 0.0), residue("SER", "A", 2, 3.9), residue("ALA", "A", 5, 15.6)]
    ligand = [
        atom(k, name, "A", number, (x + 5, y + 20, z), record=record, element=k[0])
        for k, (x, y, z) in SAM_ATOMS.items()
    ]
    at = {"first": 0, "between": 2, "last": 3}[place]
    lines = [*chain[:at], ligand, *chain[at:]]
    if place == "between":  # another chain follows
        lines = [*chain, ligand, residue("GLY", "B", 1, 90.0)]
    residues = clean(load_structure(write_pdb(*lines)), ligands=True)
    assert residues.sequence == "GSA" + "G" * (place == "between")
    assert residues.ligands.res_name.tolist() == [name] and len(residues.ligands.atom_name) == len(SAM_ATOMS)


def test_a_residue_without_a_known_name_that_is_bonded_is_read(write_pdb, pdb_lines):
    _, residue = pdb_lines
    for record in ("ATOM", "HETATM"):
        lines = [residue(n, "A", i, 3.9 * i, record=r)
                 for i, (n, r) in enumerate([("GLY", "ATOM"), ("UN9", record), ("SER", "ATOM")])]  # fmt: skip
        assert clean(load_structure(write_pdb(*lines))).sequence == "GXS"


@pytest.mark.parametrize("number", [301, 5])
def test_a_free_amino_acid_before_the_chain_is_a_ligand(write_pdb, pdb_lines, number):
    """Before the last residue in ATOM records, the number decides."""
    _, residue = pdb_lines
    free = residue("GLU", "A", number, 40.0, record="HETATM")
    residues = clean(load_structure(write_pdb(free, residue("GLY", "A", 1, 0.0), residue("SER", "A", 2, 3.9))))
    assert residues.sequence == "GS" and residues.report.ligands == {"GLU": 1}


@pytest.mark.parametrize(
    "names",
    [
        ("OT1", "OT2"),
        ("OT2", "OT1"),
        ("O1", "O2"),
        ("OC1", "OC2"),
        ("O'", "O''"),
        ("OT1", "OXT"),
        ("OXT", "OT1"),
        ("OT",),
    ],
)
@pytest.mark.parametrize("last", ["LEU", "MSE", "HSD"])
def test_terminal_oxygens_are_o_and_oxt(write_pdb, pdb_lines, names, last):
    atom, residue = pdb_lines
    end = residue(last, "A", 2, 3.9)[:3]
    places = [(7.1, 1.1, 0.0), (7.1, -1.1, 0.0)]
    end += [atom(name, last, "A", 2, place) for name, place in zip(names, places, strict=False)]
    residues = clean(load_structure(write_pdb(residue("GLY", "A", 1, 0.0), end)))
    assert residues.backbone_mask.all() and residues.report.missing_backbone == 0
    assert sorted(residues.atom_name[-len(names) :].tolist()) == sorted(["O", "OXT"][: len(names)])
    first = next(name for name in sorted(names) if name != "OXT")
    np.testing.assert_allclose(residues.backbone[1, 3], places[names.index(first)], atol=1e-3)
    assert f"A:2 {first}" in residues.report.warnings[0]


def test_other_oxygens_are_no_carbonyl(write_pdb, pdb_lines):
    """OG is not at C, and a single OXT has its name from the format."""
    atom, residue = pdb_lines
    for name, place in (("OG", (5.4, 2.4, 0.0)), ("OXT", (7.1, 1.1, 0.0))):
        end = [*residue("SER", "A", 2, 3.9)[:3], atom(name, "SER", "A", 2, place)]
        residues = clean(load_structure(write_pdb(residue("GLY", "A", 1, 0.0), end)))
        assert residues.report.missing_backbone == 1 and name in residues.atom_name and not residues.report.warnings


DUMMIES = [("QB", "", "ALA"), ("QQG", "", "VAL"), ("1QB", "", "ALA"), ("PS1", "PS", "VAL"), ("CEN", "PS", "VAL"),
           ("LPA", "", "SER"), ("LP1", "LP", "SER"), ("DCA", "", "ALA"), ("DO", "", "ALA"), ("MN1", "", "LYS"),
           ("QB", "Q", "MSE"), ("QB", "", "HID"), ("QE", "X", "MSE"), ("EP1", "EP", "MET")]  # fmt: skip


@pytest.mark.parametrize(("name", "element", "res_name"), DUMMIES)
def test_dummy_atoms_are_left_out_and_counted(write_pdb, pdb_lines, name, element, res_name):
    atom, residue = pdb_lines
    dummy = atom(name, res_name, "A", 1, (1.5, 1.5, 0.0))
    dummy = dummy[:76] + f"{element:>2}"
    lines = [residue(res_name, "A", 1, 0.0, record="ATOM"), dummy, residue("GLY", "A", 2, 3.9)]
    residues = clean(load_structure(write_pdb(*lines)))
    assert len(residues.atom_name) == 8 and residues.report.dummy_atoms == 1
    assert residues.report.hydrogens == 0 and set(residues.atom_element) <= {"C", "N", "O"}


def test_dummy_atoms_of_mmcif_are_left_out(tmp_path):
    names = (
        "id",
        "type_symbol",
        "label_atom_id",
        "label_comp_id",
        "label_asym_id",
        "label_seq_id",
        "Cartn_x",
        "Cartn_y",
        "Cartn_z",
    )
    atoms = [
        ("N", "N", 0.0),
        ("CA", "C", 1.5),
        ("C", "C", 2.6),
        ("O", "O", 3.1),
        ("PS1", "PS", 4.0),
        ("QB", "Q", 5.0),
        ("QG", "?", 6.0),
    ]
    rows = [f"{i} {symbol} {name} VAL A 1 {x} 0 0" for i, (name, symbol, x) in enumerate(atoms)]
    head = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
    (tmp_path / "x.cif").write_text(head + "\n".join(rows) + "\n")
    residues = clean(load_structure(tmp_path / "x.cif"))
    assert residues.atom_name.tolist() == ["N", "CA", "C", "O"] and residues.report.dummy_atoms == 3


def test_deuterium_and_phosphorus_and_amide_atoms_are_no_dummies(write_pdb, pdb_lines):
    atom, residue = pdb_lines
    lines = [residue("ASN", "A", 1, 0.0), [atom(n, "ASN", "A", 1, (1.5, y, 0.0), element=" ") for n, y in
             (("D", 1.0), ("DB2", 2.0), ("DD21", 3.0), ("AD1", 4.0))], residue("SER", "A", 2, 3.9),
             atom("P", "SER", "A", 2, (5.0, 3.0, 0.0), element=" ")]  # fmt: skip
    residues = clean(load_structure(write_pdb(*lines)))
    assert residues.report.hydrogens == 3 and residues.report.dummy_atoms == 0
    assert "AD1" in residues.atom_name and "P" in residues.atom_name
