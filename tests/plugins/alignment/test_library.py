"""Alignments are found by the sequences of chains, whatever part of them the structure has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.alignment import AlignmentReader, align_protein
from protgraph_plugins.alignment.matching import letters_of

from protgraph.errors import AlignmentError
from protgraph.structure import GAP, load_fasta
from protgraph.structure.io import read_residues

QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV"
OTHER = "GSHWWLPEECCNNMDDTTYRPGKLAVHHIIEEFFQQSSTTRRVVLLMMPPAACCDDWWYYKKGGHHNNEE"


@pytest.fixture
def sequence(tmp_path):
    """Return ``sequence(text, …)``: a protein with a chain of each sequence."""

    def make(*texts: str):
        file = tmp_path / "made.fasta"
        file.write_text(f">made\n{''.join(texts)}\n")
        (residues,) = load_fasta(file)
        lengths = [len(text) for text in texts]
        chain = np.repeat(np.array(list("ABC"[: len(texts)])), lengths)
        return replace(residues, chain=chain, seq_pos=np.concatenate([np.arange(n) for n in lengths]))

    return make


def write(path, *rows: str, header: str = ""):
    path.write_text(header + "".join(f">s{i}\n{row}\n" for i, row in enumerate(rows)))
    return str(path)


def test_gaps_insertions_and_tags_of_the_structure_are_handled(tmp_path, sequence):
    file = write(tmp_path / "x.a3m", QUERY, QUERY[:10] + "k" + QUERY[10:], QUERY.replace("R", "K"))
    model = QUERY[2:20] + QUERY[29:50] + "WW" + QUERY[50:]  # N-terminus, a loop, and an insertion
    alignment = align_protein(sequence("GSHHHHHH" + model), [file])
    assert letters_of(alignment.rows[0].tobytes()) == "GSHHHHHH" + model
    expected = ("-" * 8 + QUERY[2:20] + QUERY[29:50] + "--" + QUERY[50:]).replace("R", "K")
    assert "".join("ACDEFGHIKLMNPQRSTVWYX-"[t] for t in alignment.rows[2]) == expected
    assert alignment.deletions.toarray()[1].nonzero()[0].tolist() == [16]  # QUERY[10]
    assert alignment.notes == ()


def test_a_substitution_is_used_and_noted(tmp_path, sequence):
    file = write(tmp_path / "x.a3m", QUERY, QUERY)
    alignment = align_protein(sequence(QUERY[:20] + "W" + QUERY[21:]), [file])
    assert alignment.notes == (f"A:21 differs from the first sequence of {file}",)


def test_another_protein_is_refused_with_both_sequences(tmp_path, sequence):
    file = write(tmp_path / "x.a3m", OTHER, OTHER)
    with pytest.raises(AlignmentError) as caught:
        align_protein(sequence(QUERY), [file])
    text = str(caught.value)
    assert (caught.value.path, caught.value.row) == (file, 1)
    assert "A:1 " in text and f"[{QUERY[0]}]{QUERY[1:10]}" in text and f"[{OTHER[0]}]{OTHER[1:10]}" in text


def test_many_substitutions_are_refused_at_the_first_one(tmp_path, sequence):
    file = write(tmp_path / "x.a3m", QUERY, QUERY)
    varied = "".join("W" if i >= 30 and i % 4 == 0 else letter for i, letter in enumerate(QUERY))
    with pytest.raises(AlignmentError, match=r"A:33 is the first difference"):
        align_protein(sequence(varied), [file])


def test_rows_of_one_file_stay_together_and_those_of_two_files_apart(tmp_path, sequence):
    protein = sequence(QUERY, OTHER, QUERY)
    first = write(tmp_path / "first.a3m", QUERY, QUERY.replace("K", "R"))
    second = write(tmp_path / "second.a3m", OTHER, OTHER.replace("C", "S"))
    rows = align_protein(protein, [first, second]).rows
    n = len(QUERY)
    assert rows.shape == (3, 3 * n)
    assert np.array_equal(rows[1, :n], rows[1, 2 * n :]) and (rows[1, n : 2 * n] == GAP).all()
    assert (rows[2, :n] == GAP).all() and (rows[2, n : 2 * n] != GAP).all()


def test_chains_of_a_complex_file_are_paired(tmp_path, sequence):
    header = f"#{len(QUERY)},{len(OTHER)}\t1,1\n"
    both = QUERY.replace("K", "R") + OTHER.replace("C", "S")
    file = write(tmp_path / "x.a3m", QUERY + OTHER, both, header=header)
    rows = align_protein(sequence(OTHER, QUERY), [file]).rows
    assert letters_of(rows[1].tobytes()) == OTHER.replace("C", "S") + QUERY.replace("K", "R")


def test_a_folder_has_the_alignment_of_each_chain(tmp_path, sequence):
    write(tmp_path / "one.a3m", QUERY, QUERY)
    write(tmp_path / "two.sto.a3m", OTHER, OTHER)
    (tmp_path / "one_env").mkdir()
    write(tmp_path / "one_env" / "uniref.a3m", QUERY, QUERY)  # a part of one.a3m
    reader = AlignmentReader()
    assert len(reader.alignment_files(str(tmp_path))) == 2
    assert len(reader.align(sequence(OTHER), str(tmp_path))) == 2
    write(tmp_path / "again.a3m", QUERY, QUERY)
    with pytest.raises(AlignmentError, match="several alignments"):
        reader.align(sequence(QUERY), str(tmp_path))
    write(tmp_path / "made.a3m", QUERY, QUERY)  # the name of the protein decides
    assert reader.align(sequence(QUERY), str(tmp_path)).path.endswith("made.a3m")
    with pytest.raises(AlignmentError, match="no such file"):
        reader.align(sequence(QUERY), str(tmp_path / "absent"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(AlignmentError, match="has no file"):
        reader.align(sequence(QUERY), str(tmp_path / "empty"))


def test_an_alignment_alone_is_its_first_sequence(a3m_file, protein):
    residues = read_residues(a3m_file)
    assert (residues.name, residues.sequence) == ("1ubq", protein.sequence)
    assert not residues.has_coordinates
    assert len(residues.alignment) == 61


def test_what_a_task_hides_is_not_in_the_alignment(a3m_file, protein):
    aligned = replace(protein, alignment=align_protein(protein, [str(a3m_file)]))
    assert aligned.hide("residue_type").alignment is None
    hidden = np.arange(len(protein)) == 3
    assert letters_of(aligned.without_types(hidden).alignment.rows[0, 2:5].tobytes()) == "IXV"
    half = aligned.select(np.arange(len(protein)) < 30).alignment
    assert half.rows.shape[1] == half.deletions.shape[1] == 30
    assert (half.rows != GAP).any(1).all()
