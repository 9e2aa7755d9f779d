"""Comparison of whole structures: missing residues and atoms, chains, equivalent atoms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.similarity import compare_structures

from protgraph.errors import MissingCoordinatesError
from protgraph.structure import Residues, clean, load_structure


@pytest.fixture(scope="module")
def crambin(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


def ca_only(residues: Residues) -> Residues:
    keep = residues.atom_name == "CA"
    arrays = {name: getattr(residues, name)[keep] for name in ("atom_pos", "atom_name", "atom_element", "atom_residue")}
    return replace(residues, **arrays)


def test_a_structure_is_equal_to_itself(crambin):
    found = compare_structures(crambin, crambin)
    expected = {"lddt": 1, "lddt_ca": 1, "tm_score": 1, "gdt_ts": 1, "gdt_ha": 1, "rmsd": 0}
    assert found.scores == pytest.approx(expected, abs=1e-6)
    assert found.missing_atoms == 0 and found.distance == pytest.approx(0, abs=1e-6)


def test_residues_that_the_model_lacks_count_as_wrong(crambin):
    part = crambin.select(np.arange(46) < 36)
    found = compare_structures(part, crambin)
    assert found.scores["tm_score"] == found.scores["gdt_ts"] == pytest.approx(36 / 46)
    assert 0 < found.scores["lddt_ca"] < 36 / 46  # distances between both parts are lost too
    assert (found.lddt_ca.residue[36:] == 0).all() and np.isnan(found.distance[36:]).all()
    assert found.scores["rmsd"] == pytest.approx(0, abs=1e-6)
    assert any(line.startswith("10 of 46") for line in found.lines())


def test_residues_that_only_the_model_has_change_nothing(crambin):
    part = crambin.select(np.arange(46) < 36)
    assert compare_structures(crambin, part).scores["lddt"] == 1
    assert any(line.startswith("10 of 46") for line in compare_structures(crambin, part).lines())


def test_a_ca_model_has_no_lddt_of_all_atoms(crambin):
    found = compare_structures(ca_only(crambin), crambin)
    assert found.lddt is None and found.scores["lddt_ca"] == 1 and "lddt" not in found.scores
    assert any("only CA" in line for line in found.lines())


def test_missing_side_chain_atoms_are_counted(crambin):
    found = compare_structures(crambin.without_sidechains(np.arange(46) == 9), crambin)
    lost = int(((crambin.atom_residue == 9) & ~np.isin(crambin.atom_name, ["N", "CA", "C", "O"])).sum())
    assert found.missing_atoms == lost > 3
    assert found.scores["lddt_ca"] == 1 and found.scores["lddt"] < 1


def test_exchanged_names_of_equivalent_side_chain_atoms_do_not_matter(crambin):
    place = crambin.res_name.tolist().index("PHE")
    exchange = {"CD1": "CD2", "CD2": "CD1", "CE1": "CE2", "CE2": "CE1"}
    names = [
        exchange.get(name, name) if residue == place else name
        for name, residue in zip(crambin.atom_name.tolist(), crambin.atom_residue.tolist(), strict=True)
    ]
    assert names != crambin.atom_name.tolist()
    assert compare_structures(replace(crambin, atom_name=np.array(names)), crambin).scores["lddt"] == 1


@pytest.mark.slow
def test_given_chains_leave_out_the_others(structures_dir):
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    found = compare_structures(whole.chains("A"), whole, chains={"A": "A"})
    assert len(found.reference) == (whole.chain == "A").sum() and found.scores["tm_score"] == pytest.approx(1)
    assert compare_structures(whole.chains("A"), whole).scores["tm_score"] < 0.5


def test_a_sequence_is_refused(crambin):
    with pytest.raises(MissingCoordinatesError):
        compare_structures(crambin.hide("coordinates"), crambin)
