"""Rows of mutated residues: exact identity, the wild type, and the hints of errors."""

from __future__ import annotations

import csv
import gzip
import io
import re
import tarfile

import numpy as np
import pytest
from protgraph_plugins.mutations import Mutation, ResidueIndex, find_residues, parse_mutations

from protgraph.errors import MutationError
from protgraph.structure import Residues, clean, load_structure


@pytest.fixture
def residues(write_pdb, pdb_lines) -> Residues:
    """A:  GLY -1, ALA 0, SER 52, TYR 52A, TYR 52B, MSE 60; B: GLY -1, LEU 0."""
    of_a = [("GLY", -1, " "), ("ALA", 0, " "), ("SER", 52, " "), ("TYR", 52, "A"), ("TYR", 52, "B"), ("MSE", 60, " ")]
    of_b = [("GLY", -1, " "), ("LEU", 0, " ")]
    chains = [("A", 0.0, of_a), ("B", 60.0, of_b)]
    lines = [
        pdb_lines.residue(name, chain, number, start + 3.9 * k, ins=code)
        for chain, start, members in chains
        for k, (name, number, code) in enumerate(members)
    ]
    return clean(load_structure(write_pdb(*lines)))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A:G-1D", [0]),
        ("A:A0D", [1]),
        ("A:S52D", [2]),
        ("A:Y52[A]D", [3]),
        ("A:Y52[B]D", [4]),
        ("A:M60D", [5]),
        ("B:L0D+A:Y52[B]D+B:G-1A", [7, 4, 6]),
        ("WT", []),
    ],
)
def test_rows_are_exact_in_chain_number_and_insertion_code(residues, text, rows):
    found = find_residues(residues, parse_mutations(text))
    assert found.dtype == np.int64 and found.tolist() == rows


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("A:G0D", "wild_type", ["ALA at A:0", "not GLY", "GLY is at A:-1", "shifted by -1"]),
        ("A:L60D", "wild_type", ["MSE (read as MET) at A:60", "not LEU", "shifted by -60"]),
        ("B:Y0D", "wild_type", ["LEU at B:0", "not TYR"]),
        ("A:L0D", "wild_type", ["ALA at A:0", "LEU is at B:0", "another chain"]),
        ("A:S52[A]D", "wild_type", ["TYR at A:52A", "not SER", "SER is at A:52: A:S52D?"]),
        ("A:Y52D", "wild_type", ["SER at A:52", "TYR is at A:52[A]: A:Y52[A]D?"]),
        ("A:Y53D", "unknown_residue", ["The nearest TYR is at A:52[A]"]),
        ("A:Y52[C]D", "unknown_residue", ["SER A:52", "TYR A:52A", "TYR A:52B"]),
        ("A:Y30D", "unknown_residue", ["ALA A:0", "SER A:52", "unresolved or absent between"]),
        ("A:Y99D", "unknown_residue", ["outside of the chain", "MSE A:60"]),
        ("A:Y-9D", "unknown_residue", ["outside of the chain", "GLY A:-1"]),
        ("C:G-1D", "unknown_chain", ["'A', 'B'", "GLY is at A:-1, B:-1"]),
        ("a:G-1D", "unknown_chain", ["'A', 'B'"]),
    ],
)
def test_errors_name_what_the_structure_has(residues, text, kind, parts):
    if text == "A:L60D":
        parts = parts[:2]  # LEU is in chain B only
    with pytest.raises(MutationError) as caught:
        find_residues(residues, parse_mutations(text))
    assert caught.value.kind == kind and caught.value.mutation == text
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_shift_is_suggested_only_if_all_mutations_of_the_chain_fit(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    rows = np.flatnonzero(residues.chain == "A")[[10, 40, 90]]
    letters = [residues.sequence[row] for row in rows]
    shifted = [
        Mutation("A", int(residues.res_id[row]) - 7, "", letter, "A" if letter != "A" else "G")
        for row, letter in zip(rows, letters, strict=True)
    ]
    with pytest.raises(MutationError) as caught:
        find_residues(residues, shifted)
    assert "numbering shifted by +7?" in str(caught.value)


def test_the_nearest_fit_is_suggested_if_other_mutations_of_the_chain_fit(residues):
    with pytest.raises(MutationError) as caught:
        find_residues(residues, parse_mutations("A:S52D+A:G0D"))
    assert "nearest GLY is at A:-1" in str(caught.value) and "shifted" not in str(caught.value)


@pytest.mark.parametrize("number", [37, 38, 60, 61, 100, 151, 152, 153, 500])
def test_the_nearest_place_is_that_of_a_slow_search(structures_dir, number):
    """Every residue of the chain with the wild type is a candidate: PRO is at 37A, 60A, 152, 152A and 152B."""
    residues = clean(load_structure(structures_dir / "2bm2.bcif", chains=["A"]))
    with pytest.raises(MutationError) as caught:
        find_residues(residues, [Mutation("A", number, "X", "P", "A")])
    places = zip(residues.res_id.tolist(), residues.ins_code.tolist(), residues.sequence, strict=True)
    distance = {f"A:{n}[{c}]" if c else f"A:{n}": abs(n - number) for n, c, letter in places if letter == "P"}
    nearest = [place for place in distance if distance[place] == min(distance.values()) <= 200]
    named = [place for place in distance if re.search(rf"PRO is at {re.escape(place)}[.:](?!\[)", str(caught.value))]
    assert len(named) == bool(nearest) and set(named) <= set(nearest)


def renumbered(residues, shift: int) -> list[list[Mutation]]:
    """Return a mutation of every third residue of chain A to glycine or alanine, with shifted numbers."""
    rows = np.flatnonzero(residues.chain == "A")[::3].tolist()
    letters = [residues.sequence[row] for row in rows]
    numbers = [int(residues.res_id[row]) + shift for row in rows]
    return [[Mutation("A", n, "", x, "A" if x != "A" else "G")] for n, x in zip(numbers, letters, strict=True)]


@pytest.mark.parametrize("shift", [-40, -1, 1, 7])
def test_a_table_with_the_numbers_of_another_sequence_is_refused_with_its_shift(structures_dir, shift):
    """One row in twenty fits by chance, and would be scored at the wrong residue."""
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    index, variants = ResidueIndex(residues), renumbered(residues, shift)
    errors = index.numbering_errors(variants)
    assert list(errors) == ["A"] and errors["A"].kind == "numbering"
    assert f"With {-shift:+d} added to the numbers" in str(errors["A"])
    assert not index.numbering_errors(renumbered(residues, 0))
    assert not index.numbering_errors(variants[:5])  # too few to conclude


def test_a_table_of_another_protein_is_refused(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    variants = [[Mutation("A", m.res_id, "", "ARND"[k % 4], "G")] for k, (m,) in enumerate(renumbered(residues, 0))]
    (error,) = ResidueIndex(residues).numbering_errors(variants).values()
    assert error.kind == "numbering" and "added" not in str(error)


@pytest.mark.slow
def test_every_mutation_of_skempi_is_found(shared_data):
    """All 12,324 wild types equal the structure, by the table's own check; here for every tenth structure."""
    folder = shared_data / "mutations/skempi_v2"
    with gzip.open(folder / "mutations.tsv.gz", "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    names = sorted({row["file"] for row in rows})[::25]
    found = 0
    with tarfile.open(folder / "structures.tar.xz") as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if name in names:
                index = ResidueIndex(_read(archive.extractfile(member).read()))
                variants = [
                    parse_mutations(row["Mutation(s)_cleaned"], join_commas=True) for row in rows if row["file"] == name
                ]
                found += sum(len(index.rows(variant)) for variant in variants)
    assert found == sum(int(row["n_mutations"]) for row in rows if row["file"] in names) > 100


def _read(content: bytes) -> Residues:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.bcif"
        path.write_bytes(io.BytesIO(content).getvalue())
        return clean(load_structure(path))
