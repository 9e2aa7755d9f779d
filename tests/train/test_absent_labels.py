"""Labels of the whole sequence: unresolved residues are left out and counted; shifted numbers get a proposal."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from protgraph.errors import LabelError
from protgraph.labels import inspect_dataset, load_dataset, prepare
from protgraph.labels.loading import resolve_task
from protgraph.model import build_model
from protgraph.structure import clean, load_structure

NAMES = ("1crn", "1ajj", "1vii", "2erl", "1bx8")
THREE = {"A": "ALA", "R": "ARG", "N": "ASN", "D": "ASP", "C": "CYS", "Q": "GLN", "E": "GLU", "G": "GLY", "H": "HIS",
         "I": "ILE", "L": "LEU", "K": "LYS", "M": "MET", "F": "PHE", "P": "PRO", "S": "SER", "T": "THR", "W": "TRP",
         "Y": "TYR", "V": "VAL", "X": "UNK"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, structures_dir) -> Path:
    made = tmp_path_factory.mktemp("absent") / "structures"
    made.mkdir()
    for name in NAMES:
        shutil.copy(structures_dir / f"{name}.bcif", made)
    return made


@pytest.fixture(scope="module")
def proteins(folder):
    return {name: clean(load_structure(folder / f"{name}.bcif")) for name in NAMES}


def write(path, proteins, *, shift=0, extra=(), missing=(), letters=None, wrong=()):
    """Write a label of each residue; ``extra`` are numbers before the first (negative) or after the last residue."""
    rows = []
    for name, r in proteins.items():
        keys = list(zip(r.chain.tolist(), r.res_id.tolist(), r.sequence, strict=True))
        first, last = int(r.res_id.min()), int(r.res_id.max())
        keys += [(r.chain[0], (first if e < 0 else last) + e, "G") for e in extra]
        for chain, number, letter in keys:
            if number - first not in missing:
                shown = ("W" if letter != "W" else "A") if number - first in wrong else letter
                shown = {None: "", 1: shown, 3: THREE[shown]}[letters]
                rows.append(f"{name},{chain},{number + shift},{shown},{number % 2}")
    path.write_text("\n".join(["file,chain,res_id,aa,site", *rows]) + "\n")
    return path


def graphs(folder, table, tiny, cache, **options):
    """Return all graphs of a table, and the notes."""
    data = load_dataset(folder, labels=table, task="site", cache=cache, **options)
    task = resolve_task("site", data)
    prepared = prepare(data, task, build_model(tiny, task.target).plan, cache=cache)
    return [graph for store in prepared.splits.values() for graph in store], prepared.notes


def labels(found):
    return {graph.name: graph.y[:, 0].tolist() for graph in found}


@pytest.mark.slow
def test_labels_of_the_whole_sequence_leave_out_unresolved_residues_and_count_them(folder, proteins, tiny, tmp_path):
    plain = labels(graphs(folder, write(tmp_path / "a.csv", proteins), tiny, tmp_path)[0])
    table = write(tmp_path / "b.csv", proteins, extra=(-2, -1, 1))
    for _ in range(2):  # the second time from prepared graphs
        found, notes = graphs(folder, table, tiny, tmp_path)
        assert labels(found) == plain
        (note,) = (note for note in notes if "without coordinates" in note)
        assert note.startswith(f"{3 * len(NAMES)} labels of residues without coordinates left out: 1crn.bcif A:-1")


def test_an_unresolved_loop_is_left_out(folder, proteins, tiny, tmp_path):
    table = write(tmp_path / "t.csv", proteins)
    kept = {name: r.select(~np.isin(np.arange(len(r)), range(10, 14))) for name, r in proteins.items()}
    own = load_dataset(folder, labels=table, task="site", cache=tmp_path)
    for example in own.examples("site"):
        given, part = own.labels("site", example), kept[example.id]
        assert given.absent(part).sum() == 4 and given.is_whole_sequence(part)
        assert given.align(part, strict=False)[:, 0].tolist() == (part.res_id % 2).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("case", [{"extra": (40,)}, {"extra": (1,), "missing": (5,)}], ids=["far", "incomplete"])
def test_other_absent_residues_are_an_error_unless_they_are_left_out(folder, proteins, tiny, tmp_path, case):
    table = write(tmp_path / "t.csv", proteins, **case)
    with pytest.raises(LabelError, match=rf"^{len(NAMES)} labels.*\n.*--leave-out-absent"):
        graphs(folder, table, tiny, tmp_path)
    found, notes = graphs(folder, table, tiny, tmp_path, leave_out_absent=True)
    assert len(found) == len(NAMES) and any(f"{len(NAMES)} labels of residues" in note for note in notes)
    assert inspect_dataset(folder, labels=table, cache=tmp_path).has_faults


@pytest.mark.parametrize("shift", [1, -3, 26, 1000])
@pytest.mark.parametrize("letters", [None, 1, 3])
def test_shifted_numbers_are_an_error_with_the_shift(folder, proteins, tiny, tmp_path, shift, letters):
    table = write(tmp_path / "t.csv", proteins, shift=shift, letters=letters)
    with pytest.raises(LabelError, match=rf"fit with {-shift:+d}:".replace("+", r"\+")):
        graphs(folder, table, tiny, tmp_path)


@pytest.mark.slow
def test_letters_of_residues_are_compared_with_the_structure(folder, proteins, tiny, tmp_path):
    good = write(tmp_path / "a.csv", proteins, letters=1)
    found, _ = graphs(folder, good, tiny, tmp_path)
    assert labels(found) == labels(graphs(folder, write(tmp_path / "b.csv", proteins), tiny, tmp_path)[0])
    assert "column 'aa' is compared" in str(load_dataset(folder, labels=good, task="site", cache=tmp_path).describe())
    wrong = write(tmp_path / "c.csv", proteins, letters=3, wrong=(2,))
    with pytest.raises(LabelError, match=rf"^{len(NAMES)} labels are for residues of another type: 1crn.bcif A:3 is C"):
        graphs(folder, wrong, tiny, tmp_path)
    assert len(inspect_dataset(folder, labels=wrong, task="site", cache=tmp_path).unusable) == len(NAMES)


def test_letters_show_a_shift_that_the_numbers_hide(folder, proteins, tiny, tmp_path):
    """All residues have a label, so that only the types show that each label is one residue off."""
    table = write(tmp_path / "t.csv", proteins, shift=1, extra=(-1,), letters=1)
    with pytest.raises(LabelError, match=r"another type(.|\n)*fit with -1:"):
        graphs(folder, table, tiny, tmp_path)


def test_a_column_of_letters_can_be_the_label(folder, proteins, tiny, tmp_path):
    table = write(tmp_path / "t.csv", proteins, letters=1)
    data = load_dataset(folder, labels=table, task="aa", cache=tmp_path)
    assert data.target("aa").kind == "classification" and not any("compared" in note for note in data.notes)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "NA", "null", "-"])
def test_rows_without_a_residue_number_are_left_out_and_counted(folder, proteins, tiny, tmp_path, text):
    table = write(tmp_path / "t.csv", proteins)
    table.write_text(table.read_text() + f"1crn,A,{text},,1\n" * 3)
    found, _ = graphs(folder, table, tiny, tmp_path)
    assert labels(found) == labels(graphs(folder, write(tmp_path / "b.csv", proteins), tiny, tmp_path)[0])
    notes = load_dataset(folder, labels=table, task="site", cache=tmp_path).notes
    assert any(note.startswith("3 rows have no residue number") for note in notes)


def test_inspection_lists_labels_without_coordinates_as_a_note(folder, proteins, tmp_path):
    table = write(tmp_path / "t.csv", proteins, extra=(-1, 1))
    found = inspect_dataset(folder, labels=table, task="site", cache=tmp_path)
    assert not found.has_faults
    assert any(f"{2 * len(NAMES)} labels of residues" in note for note in found.description.notes)
