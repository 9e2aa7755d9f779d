"""pLDDT and occupancy: files that declare a prediction, and their values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.featurize.residue_features import Occupancy, Plddt
from protgraph.structure import clean, load_structure

ALPHAFOLD = "TITLE     ALPHAFOLD MONOMER V2.0 PREDICTION FOR HEMOGLOBIN SUBUNIT ALPHA (P69905)"


def atom(serial: int, name: str, x: float, b: float, *, occupancy: float = 1.0, alt: str = " ") -> str:
    place = f"{x:8.3f}{0:8.3f}{0:8.3f}{occupancy:6.2f}{b:6.2f}"
    return f"ATOM  {serial:5d}  {name:<3}{alt}ALA A   1    {place}          {name[0]:>2}"


@pytest.fixture
def residue(tmp_path):
    """Return the residues of a PDB file with this header and one alanine."""

    def read(*header: str):
        path = tmp_path / "made.pdb"
        atoms = [atom(1, "N", 0, 91.5), atom(2, "CA", 1.5, 91.5, occupancy=0.7, alt="A")]
        atoms += [atom(3, "CA", 1.6, 40, occupancy=0.3, alt="B"), atom(4, "C", 2.6, 91.5)]
        path.write_text("\n".join([*header, *atoms, "END\n"]))
        return clean(load_structure(path))

    return read


def test_files_of_the_alphafold_database_are_predictions(residue):
    features = Plddt()(residue(ALPHAFOLD))
    assert features["plddt"].item() == pytest.approx(0.915)
    assert features["plddt_mask"].all()


def test_b_factors_are_not_a_confidence_unless_requested(residue):
    for header in ((), ("TITLE     AN ALPHAFOLD MODEL SOLVED THIS CRYSTAL",)):
        features = Plddt()(residue(*header))
        assert not features["plddt"].any() and not features["plddt_mask"].any()
    assert Plddt(always=True)(residue())["plddt"].item() == pytest.approx(0.915)


def test_model_cif_declares_a_prediction_by_its_metric(shared_data):
    predicted = clean(load_structure(shared_data / "robustness" / "predicted__7ubd_from_af3.cif"))
    features = Plddt()(predicted)
    assert features["plddt_mask"].all() and 0.2 < features["plddt"].min() <= features["plddt"].max() <= 1
    assert not clean(load_structure(shared_data / "formats" / "1aki.cif")).predicted
    assert not Plddt()(predicted.hide("b_factor"))["plddt_mask"].any()


def test_occupancy_belongs_to_the_selected_conformation(residue):
    one = residue()
    assert Occupancy()(one)["occupancy"].item() == pytest.approx(0.7)
    assert Occupancy()(replace(one, occupancy=None))["occupancy"].item() == 1
    assert Occupancy()(one.hide("b_factor"))["occupancy"].item() == 1


def test_occupancies_are_selected_with_their_residues(structures_dir):
    residues = clean(load_structure(structures_dir / "1crn.bcif"))
    marked = replace(residues, occupancy=np.arange(len(residues), dtype=np.float32))
    assert marked.select(np.arange(len(residues)) % 3 == 0).occupancy.tolist() == list(range(0, len(residues), 3))
