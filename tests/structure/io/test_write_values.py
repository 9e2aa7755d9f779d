"""Structure files with values in their B factors hold them on exactly the residues that they belong to."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from biotite.structure import AtomArray
from biotite.structure.io import load_structure as biotite_load
from biotite.structure.io import pdb, pdbx

from protgraph.errors import OptionError, StructureFileError
from protgraph.structure import ReadOptions, Residues, load_structure
from protgraph.structure.io import ResidueValues, read_residues, write_residue_values
from protgraph.structure.io.pdb_values import edit_pdb

SMALL = ("1aki", "1dix", "1l2y", "3o5r", "5zng")
LARGE = ("1igy", "1k6p", "1o1z", "2d0f", "3wip", "5h73")
#: Half a unit of the last written digit, of a value in percent.
TOLERANCE = {".pdb": 5.001e-3, ".cif": 1e-4}


def values_for(residues: Residues, **changes: object) -> ResidueValues:
    """Return random probabilities, and none for the second residue."""
    values = np.random.default_rng(1).random(len(residues))
    values[1:2] = np.nan
    r = residues
    made = ResidueValues("p_site", r.chain, r.res_id, r.ins_code, r.res_name, values, True, (), ("model gcn",))
    return replace(made, **changes)


def read_back(path) -> dict[tuple, set[float]]:
    """Return the B factors of each residue of a written file by biotite, all alternate locations."""
    options = {"model": 1, "altloc": "all", "extra_fields": ["b_factor"]}
    if path.suffix == ".pdb":
        atoms = pdb.PDBFile.read(path).get_structure(**options)
    else:
        atoms = pdbx.get_structure(pdbx.CIFFile.read(path), use_author_fields=True, **options)
    found: dict[tuple, set[float]] = {}
    columns = (atoms.chain_id, atoms.res_id, atoms.ins_code, atoms.res_name, atoms.b_factor)
    for *key, b_factor in zip(*(c.tolist() for c in columns), strict=True):
        found.setdefault(tuple(key), set()).add(b_factor)
    return found


def check(path, residues: Residues, values: ResidueValues, found: dict[tuple, set[float]]) -> None:
    tolerance = TOLERANCE[path.suffix]
    keys = zip(*(a.tolist() for a in (residues.chain, residues.res_id, residues.ins_code)), strict=True)
    expected = dict(zip(keys, np.nan_to_num(values.b_factor), strict=True))
    names = set(zip(*(a.tolist() for a in (residues.chain, residues.res_id, residues.ins_code, residues.res_name)),
                    strict=True))  # fmt: skip
    assert names <= set(found)
    for key, b_factors in found.items():
        if key in names:
            assert max(abs(b - expected[key[:3]]) for b in b_factors) <= tolerance, key
        elif key[:3] not in expected:
            assert b_factors == {0.0}, key


def check_entry(source, path) -> None:
    residues = read_residues(source)
    values = values_for(residues)
    written = write_residue_values(path, source, values)
    found = read_back(path)
    check(path, residues, values, found)
    assert written.residues == len(residues) - 1
    assert written.residues + written.without_value + written.other >= len(found)
    before, after = load_structure(source).atoms, load_structure(path).atoms  # all other columns are unchanged
    for name in ("chain_id", "res_id", "ins_code", "res_name", "atom_name", "element", "hetero", "coord", "occupancy"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name), err_msg=name)


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.parametrize("form", ["pdb", "cif", "bcif"])
@pytest.mark.parametrize("entries", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)], ids=["small", "large"])
def test_values_are_on_exactly_their_residues(shared_data, tmp_path, entries, form, suffix):
    for entry in entries:
        check_entry(shared_data / "formats" / f"{entry}.{form}", tmp_path / f"{entry}{suffix}")


@pytest.mark.slow
def test_gemmi_reads_the_same_values(shared_data, tmp_path):
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    for entry in ("1dix", "1l2y", "3o5r"):
        for form, suffix in (("pdb", ".pdb"), ("cif", ".cif"), ("bcif", ".cif"), ("cif", ".pdb"), ("pdb", ".cif")):
            source, path = shared_data / "formats" / f"{entry}.{form}", tmp_path / f"{entry}{suffix}"
            residues = read_residues(source)
            values = values_for(residues)
            write_residue_values(path, source, values)
            found: dict[tuple, set[float]] = {}
            for chain in gemmi.read_structure(str(path))[0]:
                for r in chain:
                    key = (chain.name, r.seqid.num, r.seqid.icode.strip(), r.name)
                    found.setdefault(key, set()).update(round(atom.b_iso, 5) for atom in r)
            check(path, residues, values, found)


@pytest.mark.parametrize(("name", "entries"), [("numbering__unordered_res.pdb", 70), ("altloc__dummy_altloc.pdb", 7)])
def test_a_residue_with_several_entries_is_counted_once(shared_data, tmp_path, name, entries):
    source = shared_data / "robustness" / name
    residues = read_residues(source)
    values = values_for(residues, values=np.full(len(residues), 0.5))
    written = write_residue_values(tmp_path / "a.pdb", source, values)
    assert (written.residues, written.residues + written.repeated) == (len(residues), entries)
    atoms = pdb.PDBFile.read(tmp_path / "a.pdb").get_structure(model=1, altloc="all")
    found = set(zip(atoms.chain_id.tolist(), atoms.res_id.tolist(), atoms.ins_code.tolist(), strict=True))
    assert written.residues == len(found) and written.without_value == 0


@pytest.fixture
def ubiquitin(structures_dir):
    return structures_dir / "1ubq.bcif"


def test_the_header_names_value_model_and_range(ubiquitin, tmp_path):
    values = values_for(read_residues(ubiquitin))
    write_residue_values(tmp_path / "a.pdb", ubiquitin, values)
    remarks = [line[11:].strip() for line in (tmp_path / "a.pdb").read_text().splitlines() if line[:10] == "REMARK  99"]
    assert remarks == ["", *values.details] and "percent" in remarks[1] and "model gcn" in remarks
    write_residue_values(tmp_path / "a.cif", ubiquitin, values)
    block = pdbx.CIFFile.read(tmp_path / "a.cif").block
    assert block["protgraph_b_factor"]["details"].as_array(str).tolist() == list(values.details)


def test_records_other_than_b_factors_stay(shared_data, tmp_path):
    source = shared_data / "formats" / "1dix.pdb"
    write_residue_values(tmp_path / "a.pdb", source, values_for(read_residues(source)))
    old = [line for line in source.read_text().splitlines() if not line.startswith("MASTER")]
    new = [line for line in (tmp_path / "a.pdb").read_text().splitlines() if not line.startswith("REMARK  99")]
    hide = [line[:60] + line[66:] if line.startswith(("ATOM", "HETATM")) else line for line in old]
    assert [line[:60] + line[66:] if line.startswith(("ATOM", "HETATM")) else line for line in new] == hide
    order = [line[:6] for line in (tmp_path / "a.pdb").read_text().splitlines()]
    assert order.index("REMARK") < order.index("DBREF ") < order.index("ATOM  ")


def test_only_the_model_that_was_read_is_written(shared_data, tmp_path):
    for form in ("pdb", "cif"):
        source, path = shared_data / "formats" / f"1l2y.{form}", tmp_path / f"a.{form}"
        read = ReadOptions(model_number=3)
        write_residue_values(path, source, values_for(read_residues(source, read)), read=read)
        np.testing.assert_array_equal(
            load_structure(path).atoms.coord, load_structure(source, model_number=3).atoms.coord
        )
        assert load_structure(path).report.models == 0


def test_an_assembly_has_values_on_every_copy(shared_data, tmp_path):
    source, read = shared_data / "formats" / "3o5r.cif", ReadOptions(assembly="1")
    residues = read_residues(source, read)
    values = values_for(residues)
    write_residue_values(tmp_path / "a.cif", source, values, read=read)
    check(tmp_path / "a.cif", residues, values, read_back(tmp_path / "a.cif"))


def test_repeated_chain_ids_keep_their_own_values(shared_data, tmp_path):
    source = shared_data / "robustness" / "numbering__chainIDrepeat.pdb.gz"
    residues = read_residues(source)
    assert "A-2" in residues.chain_names
    values = values_for(residues)
    write_residue_values(tmp_path / "a.pdb", source, values)
    np.testing.assert_allclose(read_residues(tmp_path / "a.pdb").b_factor, np.nan_to_num(values.b_factor), atol=6e-3)


def test_a_gzipped_file_is_the_same_each_time(ubiquitin, tmp_path):
    values = values_for(read_residues(ubiquitin))
    for name in ("a.pdb.gz", "b.pdb.gz", "c.pdb"):
        write_residue_values(tmp_path / name, ubiquitin, values)
    assert (tmp_path / "a.pdb.gz").read_bytes() == (tmp_path / "b.pdb.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.pdb.gz").read_bytes()) == (tmp_path / "c.pdb").read_bytes()
    assert len(biotite_load(tmp_path / "c.pdb")) == 602


def test_a_written_file_does_not_declare_plddt(ubiquitin, tmp_path):
    values = values_for(read_residues(ubiquitin))
    write_residue_values(tmp_path / "a.pdb", ubiquitin, values)
    title = "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR X"
    text = (tmp_path / "a.pdb").read_text()
    (tmp_path / "a.pdb").write_text(f"{title}\n{text}")
    assert not load_structure(tmp_path / "a.pdb").predicted
    (tmp_path / "a.pdb").write_text(
        "\n".join([title, *(line for line in text.splitlines() if line[:6] != "REMARK")]) + "\n"
    )
    assert load_structure(tmp_path / "a.pdb").predicted


def test_content_that_does_not_fit_into_pdb_is_refused(ubiquitin, tmp_path):
    residues = read_residues(ubiquitin)
    large = values_for(residues, values=np.full(len(residues), 1234.5), is_probability=False)
    with pytest.raises(OptionError, match="1234.5.*cif"):
        write_residue_values(tmp_path / "a.pdb", ubiquitin, large)
    assert not (tmp_path / "a.pdb").exists()
    write_residue_values(tmp_path / "a.cif", ubiquitin, large)
    assert set(read_residues(tmp_path / "a.cif").b_factor.tolist()) == {1234.5}
    block = pdbx.CIFFile.read(tmp_path / "a.cif")
    site = block.block["atom_site"]
    for column, value in (("auth_asym_id", "LONG"), ("auth_comp_id", "ABCDE"), ("auth_seq_id", "12345")):
        kept = site[column]
        texts = kept.as_array(str)
        site[column] = np.where(texts == texts[0], value, texts)  # one residue number; the only chain; one residue name
        block.write(tmp_path / "b.cif")
        own = values_for(read_residues(tmp_path / "b.cif"))
        with pytest.raises(OptionError, match=value):
            write_residue_values(tmp_path / "b.pdb", tmp_path / "b.cif", own)
        site[column] = kept
    with pytest.raises(OptionError, match="a.txt"):
        write_residue_values(tmp_path / "a.txt", ubiquitin, large)


def test_another_number_of_atoms_is_an_error():
    with pytest.raises(StructureFileError, match="0 atom records"):
        edit_pdb("END", 1, AtomArray(3), np.zeros(3), (), "x.pdb")
