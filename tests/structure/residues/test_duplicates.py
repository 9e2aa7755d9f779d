"""Repeated residue identities are renamed, joined or left out, and counted."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER
from protgraph.structure.residues.duplicates import _is_first


@pytest.mark.parametrize("names", [["N", "CA", "C", "O"], [f"C{i}" for i in range(90)], ["CA"]])
def test_only_the_first_atom_of_each_name_is_kept(names):
    """Residues of 0 to 100 atoms with repeated names, against a set per residue."""
    rng, name, start, expected = np.random.default_rng(0), [], [], []
    for size in (1, 3, 100, 2, 64, 65):
        start.append(len(name))
        own = rng.choice(names, size).tolist() if size > len(names) else rng.permutation(names)[:size].tolist()
        expected += [text not in own[:i] for i, text in enumerate(own)]
        name += own
    assert _is_first(np.array(start), np.array(name)).tolist() == expected
    assert _is_first(np.zeros(0, np.int64), np.zeros(0, "U4")).tolist() == []


def test_a_reused_chain_id_becomes_a_second_chain(shared_data):
    residues = clean(load_structure(shared_data / "robustness" / "numbering__chainIDrepeat.pdb.gz"))
    assert residues.ids == ["A:1", "B:2", "C:3", "D:3", "A-2:1", "B-2:2"]
    assert residues.report.repeated_chains == {"A-2": 1, "B-2": 1}


def test_residues_after_a_restart_stay_in_the_second_chain(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        *[residue("GLY", "A", i, 3.9 * i) for i in (1, 2)], *[residue("ALA", "A", i, 99 + 3.9 * i) for i in (1, 2, 3)]
    )
    residues = clean(load_structure(path))
    assert residues.ids == ["A:1", "A:2", "A-2:1", "A-2:2", "A-2:3"] and residues.report.repeated_chains == {"A-2": 3}
    assert residues.seq_pos.tolist() == [0, 1, 0, 1, 2]


def test_a_new_chain_id_differs_from_the_existing_ones(tmp_path):
    names = ("id", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z")
    rows = [f"{i} CA GLY {chain} 1 {20 * i} 0 0" for i, chain in enumerate(("A", "A-2", "A"), start=1)]
    head = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
    (tmp_path / "x.cif").write_text(head + "\n".join(rows) + "\n")
    residues = clean(load_structure(tmp_path / "x.cif"))
    assert residues.chain_names == ("A", "A-2", "A-3") and residues.pos[:, 0].tolist() == [20, 40, 60]


def test_blank_chain_ids_stay_blank(shared_data):
    """TER separates two pieces; gemmi, the witness with its option to split at TER, has them too."""
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    path = shared_data / "robustness" / "numbering__noChainNameTerRecords.pdb"
    residues = clean(load_structure(path))
    assert residues.chain_names == ("", "-2") and residues.ids[0].startswith(":")
    chains = gemmi.read_pdb(str(path), split_chain_on_ter=True)[0]
    assert [len(chain) for chain in chains][:2] == [2, 2] == [int((residues.chain == c).sum()) for c in ("", "-2")]


def test_fragments_of_a_residue_are_joined(shared_data, pdb_lines, write_pdb):
    atom, residue = pdb_lines
    side_chain = [atom("CB", "ALA", "A", i, (3.9 * i + 1.5, -1.5, 0.0)) for i in (1, 2)]
    residues = clean(load_structure(write_pdb(*[residue("ALA", "A", i, 3.9 * i) for i in (1, 2)], side_chain)))
    assert residues.atom_name.tolist() == ["N", "CA", "C", "O", "CB"] * 2
    assert residues.atom_residue.tolist() == [0] * 5 + [1] * 5
    assert "repeated_chains" not in residues.report.to_dict()
    assert len(clean(load_structure(shared_data / "robustness" / "numbering__unordered_res.pdb"))) == 35


def test_the_first_of_two_atoms_of_one_name_is_kept(write_pdb, pdb_lines):
    atom, residue = pdb_lines
    lines = residue("ALA", "A", 1, 0.0)
    residues = clean(load_structure(write_pdb(lines, atom("CA", "ALA", "A", 1, 7.0))))
    np.testing.assert_array_equal(residues.pos, [[1.5, 0, 0]])
    assert residues.report.duplicate_atoms == 1 and len(residues.atom_name) == 4


def test_a_second_residue_of_the_same_number_directly_after_is_left_out(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(residue("SER", "A", 1, 0.0), residue("PRO", "A", 1, 0.5), residue("GLY", "A", 2, 3.9))
    residues = clean(load_structure(path))
    assert residues.sequence == "SG" and residues.report.duplicate_atoms == 4


def test_residues_of_a_chain_become_consecutive(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        residue("GLY", "A", 1, 0.0),
        residue("SER", "B", 1, 30.0),
        residue("ALA", "A", 2, 3.9),
        residue("TRP", "B", 2, 33.9),
    )
    residues = clean(load_structure(path))
    assert residues.ids == ["A:1", "A:2", "B:1", "B:2"] and residues.seq_pos.tolist() == [0, 1, 0, 1]


def test_identities_are_unique_in_every_committed_entry(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::7]:
        ids = clean(load_structure(path)).ids
        assert len(set(ids)) == len(ids), path.name


def _chain(residue, chain, numbers, x, names="GASTVLIFYW", **options):
    """Return bonded residues with these numbers from ``x``."""
    return [residue(_NAMES[names[i % len(names)]], chain, n, x + 3.9 * i, **options) for i, n in enumerate(numbers)]


_NAMES = dict(zip(ALPHABET, THREE_LETTER, strict=True))


def _parts(residues):
    """Return the sequence and the ids of each chain."""
    return [(c.sequence, c.ids) for c in map(residues.chains, residues.chain_names)]


@pytest.mark.parametrize("ter", [[], ["TER"]])
@pytest.mark.parametrize("chain", ["A", "B", " "])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (range(3, 9), range(1, 8)),  # begins at numbers that the first one lacks
        (range(19, 25), range(1, 21)),
        (range(1, 6), range(5, 9)),  # begins with the number with which the first one ends
        (range(1, 4), range(1, 4)),
        (range(-3, 2), range(-5, 0)),
    ],
)
def test_two_chains_of_one_id_are_apart(write_pdb, pdb_lines, chain, ter, first, second):
    """The truth is made: bonded inside, 60 Å apart."""
    _, residue = pdb_lines
    path = write_pdb(
        *_chain(residue, chain, first, 0.0), *ter, *_chain(residue, chain, second, 150.0, names="WYFILVTSAG"), *ter
    )
    residues = clean(load_structure(path))
    assert [len(c.sequence) for c in map(residues.chains, residues.chain_names)] == [len(first), len(second)]
    assert residues.res_id.tolist() == [*first, *second] and residues.report.gaps == 0
    name = chain.strip()
    assert residues.chain_names == (name, f"{name}-2") and residues.report.repeated_chains == {f"{name}-2": len(second)}
    assert "duplicate_atoms" not in residues.report.to_dict()


def test_a_piece_with_the_number_and_name_of_the_last_residue_is_another_chain(write_pdb, pdb_lines):
    _, residue = pdb_lines
    first, second = (
        [residue("GLY", "A", i, 3.9 * i) for i in (1, 2)],
        [residue("GLY", "A", i, 99 + 3.9 * i) for i in (2, 3)],
    )
    residues = clean(load_structure(write_pdb(*first, *second)))
    assert residues.ids == ["A:1", "A:2", "A-2:2", "A-2:3"] and residues.report.gaps == 0


def test_a_second_chain_with_a_gap_is_one_chain(write_pdb, pdb_lines):
    _, residue = pdb_lines
    second = [*_chain(residue, "A", (1, 2), 150.0), *_chain(residue, "A", (5, 6), 170.0)]
    residues = clean(load_structure(write_pdb(*_chain(residue, "A", range(4, 9), 0.0), *second)))
    assert residues.ids[5:] == ["A-2:1", "A-2:2", "A-2:5", "A-2:6"] and residues.report.gaps == 1


def test_three_overlapping_pieces_between_other_chains_are_apart(write_pdb, pdb_lines):
    _, residue = pdb_lines
    pieces = [("C", range(1, 6)), ("B", range(1, 3)), ("C", range(2, 5)), ("C", range(3, 7)), ("B", range(2, 4))]
    path = write_pdb(*(line for i, (c, n) in enumerate(pieces) for line in _chain(residue, c, n, 100.0 * i)))
    residues = clean(load_structure(path))
    assert {c: residues.chains(c).res_id.tolist() for c in residues.chain_names} == {
        "C": [1, 2, 3, 4, 5], "B": [1, 2], "C-2": [2, 3, 4], "C-3": [3, 4, 5, 6], "B-2": [2, 3]
    }  # fmt: skip


def test_two_ca_traces_of_one_id_are_apart(write_pdb, pdb_lines):
    atom, _ = pdb_lines
    traces = [atom("CA", "ALA", "A", i, x + 3.8 * i) for x, n in ((0.0, range(3, 9)), (99.0, range(1, 8))) for i in n]
    residues = clean(load_structure(write_pdb(traces)))
    assert residues.res_id.tolist() == [*range(3, 9), *range(1, 8)] and residues.chain_names == ("A", "A-2")


@pytest.mark.parametrize("wrong", [1, 2, 6, 7, 8, 12])
@pytest.mark.parametrize(("name", "record"), [("MSE", "HETATM"), ("SER", "ATOM"), ("MSE", "ATOM")])
def test_a_wrong_number_inside_a_bonded_chain_does_not_split_it(write_pdb, pdb_lines, wrong, name, record):
    _, residue = pdb_lines
    lines = _chain(residue, "A", range(1, 10), 0.0, names="GA")
    lines[3] = residue(name, "A", wrong, 3.9 * 3, record=record)
    residues = clean(load_structure(write_pdb(*lines)))
    letter = "M" if name == "MSE" else "S"
    assert residues.sequence == f"GAG{letter}GAGAG" and residues.chain_names == ("A",)
    assert residues.seq_pos.tolist() == list(range(9)) and len(set(residues.ids)) == 9
    if wrong != 12:
        assert f"A:{wrong}A" in residues.ids and f"{wrong} (read as {wrong}" in residues.report.warnings[0]
        assert residues.ids.index(f"A:{wrong}A") == 3, "the residue whose number fits keeps it"


def test_a_wrong_number_between_residues_that_are_not_bonded_does_not_split_the_chain(write_pdb, pdb_lines):
    """As isoaspartate 115 between residues 96 and 97 of 2FTL in SKEMPI: no peptide bond leads to the next residue."""
    _, residue = pdb_lines
    before = [residue("GLY", "A", number, 3.9 * number) for number in range(1, 5)]
    after = [residue("ALA", "A", number, 3.9 * number + 3.9 + 0.6) for number in range(5, 10)]
    residues = clean(load_structure(write_pdb(*before, residue("SER", "A", 7, 3.9 * 5), *after)))
    assert residues.sequence == "GGGGSAAAAA" and residues.chain_names == ("A",)
    assert residues.ids[3:8] == ["A:4", "A:7A", "A:5", "A:6", "A:7"]
    assert "7 (read as 7A, 7)" in residues.report.warnings[0]


@pytest.mark.parametrize("names", [("PHE", "GLY", "ARG"), ("GLY", "GLY", "GLY"), ("GLY", "GLY", "ALA")])
@pytest.mark.parametrize("hydrogens", [False, True])
def test_bonded_residues_of_one_number_are_all_read(write_pdb, pdb_lines, names, hydrogens):
    """The witness is gemmi where the names differ; it joins residues of one number and name."""
    atom, residue = pdb_lines
    numbers = [1, 2, 3, 3, 3, 4]
    lines = []
    for i, (number, name) in enumerate(zip(numbers, ("LYS", "VAL", *names, "CYS"), strict=True)):
        lines += residue(name, "A", number, 3.9 * i)
        lines += [atom("H", name, "A", number, (3.9 * i, 1.0, 0.0))] * hydrogens
    path = write_pdb(lines)
    residues = clean(load_structure(path))
    assert residues.res_name.tolist() == ["LYS", "VAL", *names, "CYS"]
    assert residues.ids == ["A:1", "A:2", "A:3", "A:3A", "A:3B", "A:4"] and residues.seq_pos.tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    assert residues.report.gaps == 0 and "A:" not in residues.report.warnings[0]
    if len(set(names)) == 3 and (gemmi := pytest.importorskip("gemmi", reason="gemmi is not installed")):
        assert [r.name for r in gemmi.read_structure(str(path))[0]["A"]] == residues.res_name.tolist()


def test_a_chain_of_one_number_is_refused(write_pdb, pdb_lines):
    _, residue = pdb_lines
    with pytest.raises(StructureFileError, match=r"made\.pdb: chain 'A': 30 residues of one chain have the number 1\."):
        clean(load_structure(write_pdb(*_chain(residue, "A", [1] * 30, 0.0))))


def test_alternate_locations_without_ids_stay_one_residue(write_pdb, pdb_lines):
    """Blocks and alternating atoms, 0.4 Å apart."""
    _, residue = pdb_lines
    whole, moved = residue("SER", "A", 2, 3.9), residue("SER", "A", 2, 4.3)
    ends = residue("GLY", "A", 1, 0.0), residue("ALA", "A", 3, 7.8)
    for lines in ([*whole, *moved], [line for pair in zip(whole, moved, strict=True) for line in pair]):
        residues = clean(load_structure(write_pdb(ends[0], lines, ends[1])))
        assert residues.ids == ["A:1", "A:2", "A:3"] and residues.report.duplicate_atoms == 4


def test_a_ter_record_without_chain_ids_separates_chains(write_pdb, pdb_lines):
    _, residue = pdb_lines
    first, second = _chain(residue, " ", range(1, 7), 0.0), _chain(residue, " ", range(7, 14), 150.0)
    residues = clean(load_structure(write_pdb(*first, "TER", *second, "TER      54      GLY")))
    assert residues.chain_names == ("", "-2") and residues.seq_pos.tolist() == [*range(6), *range(7)]
    bonded = _chain(residue, " ", range(1, 7), 0.0)
    assert clean(load_structure(write_pdb(*bonded[:3], "TER", *bonded[3:]))).chain_names == ("",)


def test_ter_inside_a_named_chain_splits_it_where_no_chain_is_long_enough(write_pdb, pdb_lines):
    _, residue = pdb_lines
    first = _chain(residue, "A", range(1, 7), 0.0)
    far, near = _chain(residue, "A", range(7, 10), 150.0), _chain(residue, "A", range(10, 13), 3.9 * 9)
    apart = clean(load_structure(write_pdb(*first, "TER", *far)))
    assert apart.chain_names == ("A", "A-2") and apart.report.repeated_chains == {"A-2": 3}
    gap = clean(load_structure(write_pdb(*first, "TER", *near)))
    assert gap.chain_names == ("A",) and "TER or another label_asym_id is between 6 and 10" in gap.report.warnings[0]


def test_falling_numbers_without_a_bond_are_reported(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(*_chain(residue, "A", range(50, 53), 0.0), *_chain(residue, "A", range(1, 4), 99.0))
    residues = clean(load_structure(path))
    assert residues.chain_names == ("A",) and "numbers fall between 52 and 1" in residues.report.warnings[0]


@pytest.mark.parametrize("located", ["first", "second", "both"])
@pytest.mark.parametrize("atoms", ["all", "CB"])
def test_alternate_locations_of_one_copy_leave_the_other_whole(write_pdb, pdb_lines, located, atoms):
    atom, residue = pdb_lines
    lines = []
    for copy, (numbers, x) in {"first": (range(3, 8), 0.0), "second": (range(1, 7), 150.0)}.items():
        for i, n in enumerate(numbers):
            options = [{"alt": "A", "occ": 0.6}, {"alt": "B", "occ": 0.4}]
            if n != 5 or located not in (copy, "both"):
                options = [{}]
            for own in options if atoms == "all" else [{}]:
                lines += residue("ALA", "A", n, x + 3.9 * i, **own)
            for own in options:
                lines.append(atom("CB", "ALA", "A", n, (x + 3.9 * i + 1.5, 1.5, 0.0), **own))
    residues = clean(load_structure(write_pdb(lines)))
    assert residues.res_id.tolist() == [*range(3, 8), *range(1, 7)] and residues.chain_names == ("A", "A-2")
    assert len(residues.atom_name) == 5 * 11 and residues.report.moved_residues == 0


@pytest.mark.parametrize("auth", ["A", ".", "?"])
@pytest.mark.parametrize("shift", [150.0, 0.0])
def test_label_asym_id_separates_chains_that_are_not_bonded(tmp_path, auth, shift):
    """mmCIF has no TER; the chain id of the database is the same mark."""
    names = "id label_atom_id label_comp_id label_asym_id label_seq_id Cartn_x Cartn_y Cartn_z auth_seq_id auth_asym_id"
    rows = [
        f"1 {name} GLY {'AB'[i > 6]} {i} {3.9 * i + shift * (i > 6) + x} 0 0 {i} {auth}"
        for i in range(1, 13)
        for name, x in (("N", 0.0), ("CA", 1.5), ("C", 2.6))
    ]
    head = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names.split())
    (tmp_path / "x.cif").write_text(head + "\n".join(rows) + "\n")
    residues = clean(load_structure(tmp_path / "x.cif"))
    expected = {("A", True): ("A", "A-2"), ("A", False): ("A",)}.get((auth, shift > 0), ("A", "B"))
    assert residues.chain_names == expected and residues.report.gaps == 0
