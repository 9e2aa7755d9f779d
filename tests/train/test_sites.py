"""Sites of called residues: contacts by brute force, ranks, and selections that name exactly their residues."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from biotite.structure import get_residue_starts
from biotite.structure.io.pdb import PDBFile

from protgraph.data.datasets import Target
from protgraph.errors import OptionError
from protgraph.inference import Predictions, find_sites
from protgraph.structure.io import ResidueValues, read_residues, write_residue_values

SITE = Target("dna_site", "node", "multilabel", 1, ("dna_site",))
COLUMNS = ("file", "chain", "res_id", "ins_code", "res_name", "p_dna_site", "predicted_dna_site")


def predictions_of(file, called, probability=0.5):
    """Return predictions of a file in which the residues of a mask are called."""
    r = read_residues(file)
    keys = zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), r.res_name.tolist(), strict=True)
    values = np.broadcast_to(probability, len(r)).tolist()
    rows = [(str(file), *key, p, int(c)) for key, p, c in zip(keys, values, called, strict=True)]
    return r, Predictions(COLUMNS, rows, [], SITE)


def residues_of_text(text: str, order: list[str]) -> list[str]:
    """Return the residues that "A:45-47,52; B:7" names, for residue ids in file order."""
    ids = []
    for part in text.split("; "):
        chain, numbers = part.split(":")
        for number in numbers.split(","):
            ends = re.fullmatch(r"(-?\d+[A-Z]?)(?:-(\d+))?", number)
            first, last = f"{chain}:{ends[1]}", f"{chain}:{ends[2] or ends[1]}"
            ids += order[order.index(first) : order.index(last) + 1]
    return ids


def parts_by_brute_force(file: Path, called: np.ndarray) -> set[frozenset[int]]:
    """Return the connected parts of called residues from all distances of heavy atoms that biotite reads."""
    atoms = PDBFile.read(file).get_structure(model=1)
    atoms = atoms[(atoms.element != "H") & ~atoms.hetero]
    starts = get_residue_starts(atoms, add_exclusive_stop=True)
    coordinates = [atoms.coord[a:b].astype(float) for a, b in pairwise(starts)]
    parts = [{i} for i in np.flatnonzero(called).tolist()]
    joined = True
    while joined:
        joined = False
        for a in range(len(parts)):
            for b in range(a + 1, len(parts)):
                distance = min(
                    np.linalg.norm(coordinates[i][:, None] - coordinates[j][None], axis=-1).min()
                    for i in parts[a]
                    for j in parts[b]
                )
                if distance <= 5.0:
                    parts[a] |= parts.pop(b)
                    joined = True
                    break
            if joined:
                break
    return {frozenset(part) for part in parts}


def test_sites_are_the_connected_parts_of_heavy_atom_contacts(structures_dir, tmp_path) -> None:
    source = structures_dir / "1ubq.bcif"
    residues = read_residues(source)
    called = np.random.default_rng(0).random(len(residues)) < 0.2
    _, predictions = predictions_of(source, called)
    r = residues
    values = ResidueValues("p", r.chain, r.res_id, r.ins_code, r.res_name, np.zeros(len(r)))
    write_residue_values(tmp_path / "plain.pdb", source, values)
    expected = parts_by_brute_force(tmp_path / "plain.pdb", called)
    sites = find_sites(predictions)
    found = {
        frozenset(residues.ids.index(i) for i in residues_of_text(str(text), residues.ids))
        for text in sites.column("residues")
    }
    assert found == expected and 1 < len(expected) < called.sum()
    sizes = [len(residues_of_text(str(text), r.ids)) for text in sites.column("residues")]
    assert sizes == sites.column("size").tolist()


def test_sites_are_ranked_by_the_sum_of_their_probabilities(structures_dir) -> None:
    file = structures_dir / "1ubq.bcif"
    r = read_residues(file)
    called, probability = np.zeros(len(r), bool), np.full(len(r), 0.9)
    called[[0, 1]] = True  # two residues: 1.8
    called[35:40] = True  # five residues: 2.0
    probability[35:40] = 0.4
    sites = find_sites(predictions_of(file, called, probability)[1])
    assert sites.column("size").tolist() == [5, 2] and sites.column("rank").tolist() == [1, 2]
    np.testing.assert_allclose(sites.column("expected_residues"), [2.0, 1.8])
    np.testing.assert_allclose(sites.column("mean_probability"), [0.4, 0.9])
    assert sites.column("pymol")[0] == "select dna_site_1, (chain 'A' and resi 36-40)"
    assert sites.column("chimerax")[0] == "select /A:36-40"


def test_insertion_codes_and_negative_numbers_are_no_part_of_a_range(structures_dir, tmp_path) -> None:
    numbers = [(-2, ""), (-1, ""), (0, ""), (1, ""), (2, ""), (3, ""), (3, "A"), (4, ""), (5, ""), (7, "")]
    source = structures_dir / "1ubq.bcif"
    residues = read_residues(source)
    first = residues.select(np.arange(len(residues)) < len(numbers))
    file = tmp_path / "codes.pdb"
    lines = []
    for i, (number, code) in enumerate(numbers):
        x, y, z = first.pos[i]
        lines.append(
            f"ATOM  {i + 1:5d}  CA  ALA A{number:4d}{code or ' '}   {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           C"
        )
    file.write_text("\n".join(lines) + "\n")
    r, predictions = predictions_of(file, np.ones(len(numbers), bool))
    assert r.ids == [f"A:{number}{code}" for number, code in numbers]
    sites = find_sites(predictions)
    assert sites.column("residues").tolist() == ["A:-2,-1,0,1-3,3A,4-5,7"]
    assert sites.column("pymol")[0] == r"select dna_site_1, (chain 'A' and resi \-2+\-1+0+1-3+3A+4-5+7)"


def test_a_file_without_called_residues_has_no_site_and_other_models_have_none(structures_dir) -> None:
    file = structures_dir / "1ubq.bcif"
    assert len(find_sites(predictions_of(file, np.zeros(76, bool))[1])) == 0
    helices = Target("ss", "node", "classification", 3, ("C", "E", "H"))
    with pytest.raises(OptionError, match="classification per node"):
        find_sites(Predictions(COLUMNS, [], [], helices))
