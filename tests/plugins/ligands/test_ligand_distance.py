"""``ligand_distance``: the pocket of a ligand, which molecule is the ligand, and models that read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.ligands import LigandAtoms, join_ligand, write_complex

import protgraph as pg
from protgraph.errors import OptionError, SelectionError, WiringError
from protgraph.featurize import Failure, FeaturePlan, GraphResult, iter_graphs
from protgraph.model import as_model_spec, with_pocket
from protgraph.structure import Residues, clean, load_structure

CRAMBIN = Path(__file__).resolve().parents[3] / "datasets" / "pdb_core" / "structures" / "1crn.bcif"
ELEMENTS = np.array(["C", "C", "O", "N", "C", "C", "CL"])


def ligand_beside(
    structure: pg.Structure, atom: int, *, away: float = 3.0, elements: np.ndarray = ELEMENTS
) -> LigandAtoms:
    """Return a chain of atoms that leads away from an atom of the protein, in steps of 1.5 Å."""
    coord = structure.atoms.coord
    outwards = coord[atom] - coord.mean(0)
    outwards /= np.linalg.norm(outwards)
    steps = away + 1.5 * np.arange(len(elements))
    return LigandAtoms(elements, (coord[atom] + steps[:, None] * outwards).astype(np.float32))


@pytest.fixture
def structure() -> pg.Structure:
    return load_structure(CRAMBIN)


@pytest.fixture
def bound(structure) -> Residues:
    return clean(join_ligand(structure, ligand_beside(structure, 5)), ligands=True)


def test_pocket_has_the_residues_within_the_distance(bound):
    plan = FeaturePlan(
        [pg.component("radius", radius=5.0), pg.component("ligand_distance", pocket=6.0)], node_type="atom"
    )
    (pocket,) = plan.parts(bound)
    gaps = np.linalg.norm(bound.atom_pos[:, None] - bound.ligands.atom_pos, axis=-1).min(1)
    expected = {bound.ids[i] for i in np.unique(bound.atom_residue[gaps <= 6.0])}
    assert set(pocket.ids) == expected and 0 < len(pocket) < len(bound)
    assert sum(pocket.report.outside_parts.values()) == len(bound) - len(pocket)
    graph = plan.precompute(pocket)
    assert int(graph.is_ligand.sum()) == len(ELEMENTS)
    assert graph.num_nodes == len(pocket.atom_name) + len(ELEMENTS)
    residue_of_atom = graph.residue[~graph.is_ligand]
    nearest = np.array([gaps[bound.atom_residue == i].min() for i in range(len(bound)) if bound.ids[i] in expected])
    np.testing.assert_allclose(graph.ligand_distance[~graph.is_ligand, 0], nearest[residue_of_atom], rtol=1e-5)


def test_complex_without_ligand_is_refused(structure):
    plan = FeaturePlan([pg.component("ligand_distance", pocket=6.0)], node_type="atom")
    with pytest.raises(SelectionError, match="no ligand"):
        plan.parts(clean(structure, ligands=True))


def test_ligand_far_from_the_protein_is_refused(structure, bound):
    far = bound.copy_with(ligands=bound.ligands)
    far.ligands.atom_pos[:] += 40.0
    plan = FeaturePlan([pg.component("ligand_distance", pocket=6.0)], node_type="atom")
    with pytest.raises(SelectionError, match="from the protein"):
        plan.parts(far)
    with pytest.raises(SelectionError, match="nearest atom"):
        join_ligand(structure, ligand_beside(structure, 5, away=60.0))


def test_unknown_name_of_a_ligand_lists_the_molecules(bound):
    plan = FeaturePlan([pg.component("ligand_distance", pocket=6.0, ligand="STI")], node_type="atom")
    with pytest.raises(SelectionError, match="UNL 7"):
        plan.parts(bound)


def test_model_of_residues_is_refused():
    with pytest.raises(OptionError, match=r"schnet\.atom"):
        with_pocket(as_model_spec("schnet"))


def test_model_with_ligands_trains_on_files_and_predicts(structure, tmp_path):
    folder = tmp_path / "complexes"
    folder.mkdir()
    lines = ["file,pK,split"]
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    for i, split in enumerate(splits):
        elements = np.array(["C"] * (7 + i))
        write_complex(join_ligand(structure, ligand_beside(structure, 5, elements=elements)), folder / f"c{i}.bcif")
        lines.append(f"c{i},{4.0 + 0.4 * i},{split}")
    write_complex(structure, folder / "apo.bcif")
    lines.append("apo,3.25,train")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    data = pg.load_dataset(folder, labels=tmp_path / "labels.csv", task="pK")
    spec = with_pocket(as_model_spec("schnet.atom"))
    config = pg.FitConfig(epochs=1, device="cpu")
    result = pg.fit(spec, data, "pK", config=config, cache=tmp_path / "cache")
    assert [failure.error_type for failure in result.failures] == ["SelectionError"]
    predictions = pg.predict(result.checkpoint(), folder / "c0.bcif")
    assert len(predictions.rows) == 1


def test_labels_of_residues_are_refused_for_a_pocket(tmp_path):
    spec = with_pocket(as_model_spec("schnet.atom"))
    with pytest.raises(WiringError, match="pocket"):
        pg.fit(spec, "pdb_core", "secondary_structure", config=pg.FitConfig(epochs=1, device="cpu"), cache=tmp_path)


def test_files_without_a_ligand_are_failures_of_a_prediction(structure, tmp_path):
    write_complex(join_ligand(structure, ligand_beside(structure, 5)), tmp_path / "bound.bcif")
    write_complex(structure, tmp_path / "apo.bcif")
    plan = with_pocket(as_model_spec("schnet.atom")).plan()
    results = list(iter_graphs([tmp_path / "apo.bcif", tmp_path / "bound.bcif"], plan, select_parts=True))
    failure, graph = results
    assert isinstance(failure, Failure) and failure.error_type == "SelectionError"
    assert isinstance(graph, GraphResult) and int(graph.graph.is_ligand.sum()) == len(ELEMENTS)
