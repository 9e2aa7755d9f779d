"""The antibody model reads variable domains alone in files as they are deposited: Fab, IgG, complexes, copies."""

from __future__ import annotations

import csv
import gzip
import tarfile
from pathlib import Path

import biotite.structure as struc
import biotite.structure.io as strucio
import numpy as np
import pytest
from protgraph_plugins.view import view

from protgraph.inference import Predictions, predict
from protgraph.structure.io import read_residues

#: Entry, and for each fragment the author numbers of its domains in the file, by chain: heavy ones end before ASTKGP
#: or AKTTAP, light ones before AAPSVF or AAPTVS.
FABS = {
    "1ncw": [{"L": (1, 110), "H": (1, 113)}],
    "1ngx": [{"A": (1, 110), "B": (1, 114)}, {"L": (1, 110), "H": (1, 114)}],
}


def cut(source: Path, chains: dict[str, tuple[int, int]], path: Path) -> Path:
    """Write the residues of some numbers by biotite, as a user would cut domains out of a file."""
    atoms = strucio.load_structure(source)
    keep = np.zeros(len(atoms), bool)
    for chain, (first, last) in chains.items():
        keep |= (atoms.chain_id == chain) & (atoms.res_id >= first) & (atoms.res_id <= last)
    strucio.save_structure(path, atoms[keep & struc.filter_amino_acids(atoms)])
    return path


def values(result: Predictions) -> dict[tuple, float]:
    """Return the probability of each residue by chain, number and insertion code."""
    assert not result.failures
    column = result.columns.index("p_paratope")
    return {row[1:4]: row[column] for row in result.rows}


@pytest.mark.slow
@pytest.mark.parametrize("entry", FABS)
def test_a_fab_is_predicted_like_its_variable_domains_alone(entry, structures_dir, tmp_path):
    """Also two copies of it: each fragment is predicted without the other."""
    source = structures_dir / f"{entry}.bcif"
    whole = predict("paratope", source, device="cpu")
    expected = {}
    for number, chains in enumerate(FABS[entry]):
        expected |= values(predict("paratope", cut(source, chains, tmp_path / f"{number}.cif"), device="cpu"))
    assert list(values(whole)) == list(expected)
    np.testing.assert_allclose(list(values(whole).values()), list(expected.values()), atol=2e-6)


@pytest.mark.slow
def test_an_fv_is_predicted_as_a_whole(structures_dir):
    path = structures_dir / "2d7t.bcif"
    result = predict("paratope", path, device="cpu")
    r = read_residues(path)
    expected = zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), strict=True)
    assert [row[1:4] for row in result.rows] == list(expected)
    assert not any("antibody domains" in note for note in result.notes)


@pytest.mark.slow
def test_the_antigen_is_left_out_and_named(structures_dir, tmp_path):
    """A complex, made of a Fab and another protein at its loops, is predicted like the Fab."""
    fab, other = (strucio.load_structure(structures_dir / f"{name}.bcif") for name in ("1ncw", "1ubq"))
    fab, other = fab[struc.filter_amino_acids(fab)], other[struc.filter_amino_acids(other)]
    loop = fab[(fab.chain_id == "H") & (fab.res_id == 100)].coord.mean(0)
    other.coord += loop - other.coord.mean(0)
    other.chain_id[:] = "C"
    strucio.save_structure(tmp_path / "complex.cif", fab + other)
    alone = values(predict("paratope", structures_dir / "1ncw.bcif", device="cpu"))
    result = predict("paratope", tmp_path / "complex.cif", device="cpu")
    assert values(result) == pytest.approx(alone, abs=2e-6)
    (note,) = [note for note in result.notes if "antibody domains" in note]
    assert "C 76" in note and "H:1 to" in note
    assert not any(warning.kind == "unlike_training" for warning in result.warnings)


@pytest.mark.slow
def test_a_single_chain_fv_is_predicted_like_its_domains_in_two_chains(structures_dir, tmp_path):
    atoms = strucio.load_structure(structures_dir / "2d7t.bcif")
    atoms = atoms[struc.filter_amino_acids(atoms)]
    joined = atoms.copy()
    joined.res_id[joined.chain_id == "L"] += 200
    joined.chain_id[:] = "A"
    heavy_first = np.concatenate([joined[atoms.chain_id == c].coord for c in "HL"])
    joined = joined[atoms.chain_id == "H"] + joined[atoms.chain_id == "L"]
    assert np.array_equal(joined.coord, heavy_first)
    strucio.save_structure(tmp_path / "scfv.cif", joined)
    strucio.save_structure(tmp_path / "fv.cif", atoms[atoms.chain_id == "H"] + atoms[atoms.chain_id == "L"])
    scfv, fv = (values(predict("paratope", tmp_path / f"{name}.cif", device="cpu")) for name in ("scfv", "fv"))
    assert len(scfv) == len(fv) == 226
    same = {("A", number + 200 * (chain == "L"), code): p for (chain, number, code), p in fv.items()}
    assert list(scfv) == list(same)
    best = [sorted(found, key=lambda key: -found[key])[:20] for found in (scfv, same)]
    assert len(set(best[0]) & set(best[1])) >= 18


def test_a_heavy_domain_alone_is_predicted(structures_dir, tmp_path):
    heavy = cut(structures_dir / "1ncw.bcif", {"H": (1, 230)}, tmp_path / "heavy.cif")
    found = values(predict("paratope", heavy, device="cpu"))
    assert {key[0] for key in found} == {"H"} and 110 <= len(found) <= 125


def test_a_file_without_an_antibody_is_refused_and_the_domains_are_named(structures_dir):
    (failure,) = predict("paratope", structures_dir / "1ubq.bcif", device="cpu").failures
    assert failure.error_type == "SelectionError"
    assert "VH, VHH" in failure.reason and "VL" in failure.reason


@pytest.mark.slow
def test_pictures_show_the_same_part(structures_dir):
    path = structures_dir / "1ncw.bcif"
    predicted = [row[1:4] for row in predict("paratope", path, device="cpu").rows]
    scene = view(path, prediction="paratope")
    assert (~np.isnan(scene.color.values)).sum() == len(predicted) < len(scene.residues)
    assert any("antibody domains" in note for note in scene.notes)


@pytest.mark.slow
def test_each_copy_of_an_intact_antibody_has_its_paratope_in_the_loops(shared_data):
    """Chains A and C are light, B and D heavy; constant domains begin at Kabat L108 and H114."""
    result = predict("paratope", shared_data / "formats" / "1igy.cif", device="cpu")
    found = values(result)
    assert len(found) == 446
    assert all(number <= (110 if chain in "AC" else 113) for chain, number, _ in found)
    positive = [row[1:4] for row in result.rows if row[result.columns.index("predicted_paratope")] == 1]
    # Kabat numbers of the loops, by light and heavy chain
    loops = {"AC": [(24, 34), (50, 56), (89, 97)], "BD": [(26, 35), (50, 65), (95, 102)]}
    inside = [
        any(first <= number <= last for chains, ranges in loops.items() if chain in chains for first, last in ranges)
        for chain, number, _ in positive
    ]
    assert len(positive) > 40 and np.mean(inside) > 0.9
    assert not any(warning.kind == "unlike_training" for warning in result.warnings)


@pytest.mark.slow
def test_a_complex_with_lysozyme_gives_the_labeled_residues_of_the_antibody(shared_data, tmp_path):
    folder = shared_data / "sites" / "paratope"
    with tarfile.open(folder / "structures.tar.xz") as archive:
        (tmp_path / "2eiz.bcif").write_bytes(archive.extractfile("2EIZ_1.bcif").read())
    with gzip.open(folder / "labels.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["file"] == "2EIZ_1.bcif"]
    labels = {(row["chain"], int(row["res_id"]), row["ins_code"]): int(row["label"]) for row in rows}
    result = predict("paratope", tmp_path / "2eiz.bcif", device="cpu")
    column = result.columns.index("predicted_paratope")
    positive = [row[1:4] for row in result.rows if row[column] == 1]
    assert {row[1:4] for row in result.rows} == set(labels)
    assert sum(labels[key] for key in positive) == 22 and sum(labels.values()) == 24 and len(positive) == 28
