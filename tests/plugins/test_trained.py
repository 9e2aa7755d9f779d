"""Trained models of the package: size, recorded predictions, cards, and inputs with other molecules."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from protgraph_plugins.recipes import Recipe, card_page

from protgraph import trained_models
from protgraph.errors import OptionError
from protgraph.inference import predict

#: Column, and its values at residues 10, 20, …, 60 of ubiquitin (1UBQ) or of the structure below.
RECORDED = {
    "dna_site": ("p_dna_site", [0.029124, 0.009401, 0.003468, 0.010707, 0.010703, 0.010329]),
    "ligand_site": ("p_ligand_site", [0.022438, 0.001284, 0.002267, 0.050831, 0.002754, 0.001538]),
    "model_quality": ("model_quality", [0.827519, 0.826528, 0.877571, 0.844019, 0.854892, 0.837569]),
    "paratope": ("p_paratope", [0.002325, 0.002283, 0.380052, 0.00234, 0.767107, 0.082455]),
    "ppi_site": ("p_interface", [0.239373, 0.053319, 0.02623, 0.382585, 0.051955, 0.071979]),
    "secondary_structure": ("p_H", [0.023664, 0.076778, 0.996311, 0.420083, 0.006244, 0.129011]),
    "structure_encoder": ("p_L", [0.002081, 0.009761, 0.449824, 0.037612, 0.630842, 0.007835]),
    "sugar_site": ("p_sugar_site", [0.001264, 0.002717, 0.000829, 0.014971, 0.001828, 0.003491]),
}


#: Structures of models that refuse ubiquitin.
STRUCTURES = {"paratope": "2d7t"}
#: Models whose proteins have several chains: they predict all chains of a part of a file together.
TOGETHER = {"ligand_site", "paratope", "structure_encoder"}
#: What models read that are not applied to each chain alone.
READS = {"ligand_site": "all chains", "paratope": "antibody domains", "structure_encoder": "all chains"}
#: Models whose weights have another limit than 3 MB, bytes.
LARGEST = {"structure_encoder": 12_000_000}
#: Models of tasks that hide residue types: no calibration, and no descriptors of training proteins.
OF_HIDDEN_TYPES = {"structure_encoder"}


#: Models of mutations, which have tests of their own.
OF_MUTATIONS = {"ddg", "ddg_binding"}
NAMES = sorted(set(trained_models.names()) - OF_MUTATIONS)


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture
def path(name, structures_dir) -> Path:
    return structures_dir / f"{STRUCTURES.get(name, '1ubq')}.bcif"


def test_every_trained_model_has_recorded_predictions() -> None:
    assert list(RECORDED) == NAMES


def test_predictions_are_those_that_were_recorded(name, path) -> None:
    column, values = RECORDED[name]
    predicted = predict(name, path, device="cpu").column(column)[9:60:10]
    np.testing.assert_allclose(predicted, values, atol=1e-4)


def test_the_folder_is_small_and_complete(name) -> None:
    folder = trained_models.get(name).folder
    assert (folder / "model.safetensors").stat().st_size <= LARGEST.get(name, 3_000_000)
    assert {path.name for path in folder.iterdir()} >= {"model.safetensors", "recipe.toml", "card.json", "README.md"}


def test_card_recipe_and_weights_agree(name) -> None:
    trained = trained_models.get(name)
    card, recipe, checkpoint = trained.card(), Recipe.from_toml(trained.recipe), trained.checkpoint()
    assert card.name == recipe.name == name
    assert len(card.members) == len(checkpoint.members) == len(recipe.models) * len(recipe.seeds)
    assert card.parameters == sum(member.num_parameters for member in checkpoint.members)
    assert card.reads == checkpoint.reads == READS.get(name, "one chain")
    assert card.task == checkpoint.task and card.dataset == checkpoint.trained["dataset"]
    if name in OF_HIDDEN_TYPES:
        assert card.calibration == "none" and checkpoint.calibration is None
    else:
        fitted_on = "val"
        if folds := recipe.calibration_folds:
            fitted_on = f"train and val, cross-fitted in {folds} folds"
        assert card.calibration == str(checkpoint.calibration)
        assert checkpoint.calibration.split == fitted_on
    assert (trained.folder / "README.md").read_text(encoding="utf-8") == card_page(card)
    assert card.license and card.limits and card.splits["test"].metrics


@pytest.mark.parametrize("name", sorted(OF_MUTATIONS))
def test_a_model_of_mutations_refuses_structures(name, structures_dir) -> None:
    with pytest.raises(OptionError, match="protgraph mutate"):
        predict(name, structures_dir / "1ubq.bcif", device="cpu")


def test_structures_unlike_the_training_set_are_recognized(name) -> None:
    assert (trained_models.get(name).checkpoint().training_set is None) == (name in OF_HIDDEN_TYPES)


def pdb_lines(path: Path) -> list[str]:
    import biotite.structure.io as strucio

    structure = strucio.load_structure(path)
    from biotite.structure.io.pdb import PDBFile

    file = PDBFile()
    file.set_structure(structure)
    return [line for line in file.lines if line.startswith("ATOM")]


def hetero(number: int, name: str, chain: str, xyz: tuple[float, float, float], atom: str = "C1") -> str:
    x, y, z = xyz
    element = re.sub(r"\d", "", atom)[:1]
    return (
        f"HETATM{9000 + number:5d}  {atom:<3} {name:>3} {chain}{900 + number:4d}    "
        f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00 20.00          {element:>2}"
    )


def test_other_molecules_do_not_change_predictions(name, path, tmp_path) -> None:
    lines = pdb_lines(path)
    place = tuple(float(lines[100][i : i + 8]) + 3 for i in (30, 38, 46))
    others = [
        hetero(i, residue, chain, place)
        for i, (residue, chain) in enumerate([("ATP", "A"), ("NAG", "A"), ("HOH", "W")])
    ]
    others.append(lines[100][:17] + " DA Z" + lines[100][22:])
    (tmp_path / "alone.pdb").write_text("\n".join([*lines, "END"]) + "\n")
    (tmp_path / "bound.pdb").write_text("\n".join([*lines, *others, "END"]) + "\n")
    alone, bound = (predict(name, tmp_path / f"{file}.pdb", device="cpu").rows for file in ("alone", "bound"))
    assert [row[1:] for row in alone] == [row[1:] for row in bound]


def test_models_of_single_chains_and_of_several_are_known(name) -> None:
    assert trained_models.get(name).checkpoint().one_chain == (name not in TOGETHER)


def test_the_antibody_model_refuses_other_proteins(structures_dir) -> None:
    found = predict("paratope", structures_dir / "1ubq.bcif", device="cpu")
    assert not found.rows and [failure.error_type for failure in found.failures] == ["SelectionError"]


@pytest.mark.parametrize("name", sorted(set(NAMES) - TOGETHER))
def test_another_chain_does_not_change_predictions_of_a_chain(name, structures_dir, tmp_path) -> None:
    lines = pdb_lines(structures_dir / "1ubq.bcif")
    copy = [f"{line[:21]}B{line[22:30]}{float(line[30:38]) + 25:8.3f}{line[38:]}" for line in lines]
    (tmp_path / "one.pdb").write_text("\n".join([*lines, "END"]) + "\n")
    (tmp_path / "two.pdb").write_text("\n".join([*lines, "TER", *copy, "END"]) + "\n")
    one, two = (predict(name, tmp_path / f"{file}.pdb", device="cpu").rows for file in ("one", "two"))
    assert [row[1] for row in two] == ["A"] * 76 + ["B"] * 76
    first, second = ([[x for x in row if isinstance(x, float)] for row in rows] for rows in (one, two[:76]))
    assert first[0]
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.slow
def test_sugars_in_the_files_of_the_source_do_not_change_predictions(shared_data, tmp_path) -> None:
    from biotite.structure.io.pdbx import BinaryCIFFile, get_structure, set_structure

    with tarfile.open(shared_data / "sites" / "sugar_site" / "structures.tar.xz") as archive:
        for member in [next(m for m in archive if m.name.endswith(f"{name}.bcif")) for name in ("154L_1", "1AX1_1")]:
            bound, alone = tmp_path / "bound.bcif", tmp_path / "alone.bcif"
            bound.write_bytes(archive.extractfile(member).read())
            whole = get_structure(BinaryCIFFile.read(bound), model=1, use_author_fields=True)
            assert whole.hetero.sum() > 10
            file = BinaryCIFFile()
            set_structure(file, whole[~whole.hetero])
            file.write(alone)
            rows = [predict("sugar_site", path, device="cpu").rows for path in (bound, alone)]
            assert [row[1:] for row in rows[0]] == [row[1:] for row in rows[1]]
