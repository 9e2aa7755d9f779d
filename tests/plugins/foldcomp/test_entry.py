"""Foldcomp entries against the foldcomp package and their source structures; damaged and refused entries."""

from __future__ import annotations

import gzip
import os
import struct

import foldcomp
import numpy as np
import psutil
import pytest
from protgraph_plugins.foldcomp import decoder
from protgraph_plugins.foldcomp.decoder import decompress
from protgraph_plugins.foldcomp.entry import foldcomp_text, parse_foldcomp_header

from protgraph import load_structure
from protgraph.errors import MissingExtraError, StructureFileError
from protgraph.structure.io import FileContent, read_atoms, read_residues
from tests.plugins.foldcomp.files import CHAINS, atom_lines, chain_atoms, compress


@pytest.fixture(scope="module")
def chain(structures_dir):
    return chain_atoms(structures_dir / "1aki.bcif")


@pytest.fixture(scope="module")
def entry(chain):
    return compress(atom_lines(chain), "1aki")


def edited(lines: str, edit) -> str:
    return "".join(new for line in lines.splitlines() if (new := edit(f"{line}\n", int(line[22:26]))))


def with_stop_codon(entry: bytes) -> bytes:
    """Return an entry whose tenth residue is "*": foldcomp ends the process."""
    damaged = bytearray(entry)
    place = parse_foldcomp_header(entry).backbone_start + 8 * 10
    damaged[place] = damaged[place] & 0b111 | 22 << 3
    return bytes(damaged)


@pytest.mark.parametrize("name", CHAINS)
def test_chain_equals_the_package_and_its_source(structures_dir, name):
    source = chain_atoms(structures_dir / f"{name}.bcif")
    stored = compress(atom_lines(source), name)
    own = read_atoms(FileContent("x.fcz", stored))
    package = read_atoms(FileContent("x.pdb", foldcomp.decompress(stored)[1].encode())).atoms
    assert own.format == "foldcomp" and len(own.atoms) == len(package)
    package.res_id[package.atom_name == "OXT"] = source.res_id[-1]  # the package writes the number of residues
    for column in ("chain_id", "res_id", "ins_code", "res_name", "atom_name", "element", "b_factor", "occupancy"):
        assert (own.atoms.get_annotation(column) == package.get_annotation(column)).all()
    assert (own.atoms.coord == package.coord).all()
    first, second = source[source.atom_name == "CA"], own.atoms[own.atoms.atom_name == "CA"]
    assert first.res_id.tolist() == second.res_id.tolist()
    assert first.res_name.tolist() == second.res_name.tolist()
    assert np.linalg.norm(first.coord - second.coord, axis=1).mean() <= 0.1
    assert np.abs(first.b_factor - second.b_factor).max() <= np.ptp(first.b_factor) / 255 + 0.006


def test_file_is_recognized_by_content(entry, tmp_path):
    (tmp_path / "a.fcz").write_bytes(entry)
    (tmp_path / "b.bin").write_bytes(gzip.compress(entry))
    first, second = load_structure(tmp_path / "a.fcz"), load_structure(tmp_path / "b.bin")
    assert first.name == "a" and (first.atoms.coord == second.atoms.coord).all()


@pytest.mark.parametrize("first", [-12, 0, 9870])
def test_any_residue_number_is_kept(chain, first):
    moved = chain.copy()
    moved.res_id = moved.res_id - moved.res_id[0] + first
    own = read_atoms(FileContent("x.fcz", compress(atom_lines(moved)))).atoms
    assert np.unique(own.res_id).tolist() == np.unique(moved.res_id).tolist()
    assert len(own) == len(read_atoms(FileContent("x.fcz", compress(atom_lines(chain)))).atoms)


@pytest.mark.parametrize(
    ("title", "predicted"),
    [
        ("AF-P69905-F1", True),
        ("AF-P69905-F1-model_v4", True),
        ("ALPHAFOLD MONOMER V2.0 PREDICTION FOR HEMOGLOBIN SUBUNIT ALPHA (P69905)", True),
        ("1aki", False),
        ("AFTER-F1", False),
        ("", False),
        ("caf\xe9 \n ATOM  " * 20, False),
    ],
)
def test_title_decides_if_b_factors_are_plddt(chain, title, predicted):
    stored = compress(atom_lines(chain), title)
    assert parse_foldcomp_header(stored).title.encode("latin-1") == title.encode("utf-8")
    assert read_atoms(FileContent("x.fcz", stored)).predicted is predicted


def test_unknown_residue_is_x(chain):
    lines = edited(atom_lines(chain), lambda line, n: f"{line[:17]}UNK{line[20:]}" if n == 10 else line)
    residues = read_residues(FileContent("x.fcz", compress(lines)))
    assert residues.sequence[10 - chain.res_id[0]] == "X" and len(residues) == len(np.unique(chain.res_id))


def test_atoms_that_foldcomp_makes_up_are_reported(chain):
    lines = edited(atom_lines(chain), lambda line, n: None if n == 10 and line[13:15] in ("O ", "CB") else line)
    assert "2 atoms" in read_atoms(FileContent("x.fcz", compress(lines))).warnings[0]
    assert read_atoms(FileContent("x.fcz", compress(atom_lines(chain)))).warnings == ()


@pytest.mark.parametrize(
    "edit",
    [
        lambda line, n: None if n == 30 else line,  # a gap of one residue
        lambda line, n: f"{line[:22]}{29:4d}A{line[27:]}" if n == 30 else line,  # insertion code
    ],
)
def test_chains_that_foldcomp_distorts_are_refused(chain, edit):
    stored = compress(edited(atom_lines(chain), edit))
    with pytest.raises(StructureFileError, match="x.fcz"):
        read_atoms(FileContent("x.fcz", stored))


@pytest.mark.parametrize(
    ("place", "layout", "value", "extra"),
    [
        (16, "<I", 1, b"\0"),  # one more torsion than the residues have
        (12, "<B", 1, b""),  # one anchor
        (4, "<H", 1, b""),  # one residue, on which the package crashes
        (28, "<f", np.nan, b""),  # scale of an angle
        (76, "<i", 5, b""),  # first anchor
    ],
)
def test_numbers_that_do_not_fit_are_refused(entry, place, layout, value, extra):
    damaged = bytearray(entry)
    present = struct.unpack_from(layout, entry, place)[0] if extra else 0
    struct.pack_into(layout, damaged, place, present + value)
    with pytest.raises(StructureFileError, match="foldcomp entry"):
        foldcomp_text(bytes(damaged) + extra)


def test_every_cut_and_most_flips_are_refused_and_none_ends_this_process(entry):
    for length in range(0, len(entry), 7):
        with pytest.raises(StructureFileError):
            foldcomp_text(entry[:length])
    random = np.random.default_rng(0)
    for place in random.integers(4, 200, 40).tolist():
        damaged = bytearray(entry)
        damaged[place] ^= int(random.integers(1, 256))
        try:
            text, _ = foldcomp_text(bytes(damaged))
        except StructureFileError:
            continue
        assert text.count(" CA ") == parse_foldcomp_header(bytes(damaged)).residues


def test_crash_and_time_limit_lose_one_entry(entry):
    text = decompress(entry)
    with pytest.raises(StructureFileError, match="SIGABRT"):
        decompress(with_stop_codon(entry), "crash")
    with pytest.raises(StructureFileError, match="1e-06 s"):
        decompress(entry, "slow", time_limit=1e-6)
    assert decompress(entry) == text


@pytest.mark.slow
def test_memory_does_not_grow_with_entries(entry):
    size = len(decompress(entry))
    process = psutil.Process(decoder._process(os.getpid())[0]._process.pid)
    for _ in range(50):
        decompress(entry)
    before = process.memory_info().rss
    for _ in range(400):
        decompress(entry)
    assert process.memory_info().rss - before < 100 * size


def test_a_fork_has_a_process_of_its_own(entry):
    expected = decompress(entry)
    assert decoder._process(os.getpid()) is not decoder._process(-1)
    assert decompress(entry) == expected


def test_missing_package_is_named(entry, monkeypatch):
    monkeypatch.setattr(decoder, "_is_installed", lambda: False)
    with pytest.raises(MissingExtraError, match="foldcomp"):
        foldcomp_text(entry)
