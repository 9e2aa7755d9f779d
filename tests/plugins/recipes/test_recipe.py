"""Recipes: a run on a folder of structures gives a calibrated ensemble with a card, the same bytes each time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from protgraph_plugins.recipes import Recipe, evaluate_recipe, run_recipe

from protgraph.checkpoint import TrainedModel, load_checkpoint, save_checkpoint
from protgraph.errors import OptionError
from protgraph.evaluation.calibration import fit_calibration
from protgraph.inference import predict
from protgraph.structure import clean, load_structure

PLAIN = {"name": "mine", "summary": "S.", "dataset": "data", "task": "secondary_structure", "models": ["gcn"]}
TOML = """
name = "mine"
summary = "Secondary structure."
dataset = "data"
labels = "splits.csv"
task = "secondary_structure"
models = ["gcn", "gcn.mean"]
seeds = [0, 1]
metrics = ["perplexity"]
limits = ["A test."]

[fit]
epochs = 1
device = "cpu"
"""
SPLITS = {
    "1crn": "train",
    "2erl": "train",
    "1ubq": "train",
    "1a8o": "val",
    "1y0m": "val",
    "1orc": "test",
    "5pti": "test",
}


@pytest.fixture(scope="module")
def recipe(structures_dir, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "data").mkdir()
    for name in SPLITS:
        shutil.copy(structures_dir / f"{name}.bcif", folder / "data")
    rows = [f"{name}.bcif,{split}" for name, split in SPLITS.items()]
    (folder / "splits.csv").write_text("\n".join(["file,split", *rows]) + "\n")
    (folder / "recipe.toml").write_text(TOML)
    return folder / "recipe.toml"


@pytest.fixture(scope="module")
def made(recipe) -> TrainedModel:
    return run_recipe(recipe, recipe.parent / "out")


@pytest.mark.slow
def test_the_folder_has_weights_recipe_card_page_and_figure(made) -> None:
    names = {path.name for path in made.folder.iterdir()}
    assert names == {"model.safetensors", "recipe.toml", "card.json", "README.md", "reliability.svg"}
    assert made.recipe.read_text() == TOML


@pytest.mark.slow
def test_evaluating_again_trains_nothing_and_gives_the_same_card(made, recipe, tmp_path) -> None:
    for file in made.folder.iterdir():
        shutil.copy(file, recipe.parent)  # beside the data of the recipe
    again = evaluate_recipe(TrainedModel(recipe.parent), tmp_path / "again")
    for name in ("model.safetensors", "recipe.toml", "README.md"):
        assert (again.folder / name).read_bytes() == (made.folder / name).read_bytes()
    assert again.card() == made.card()


def test_all_models_and_seeds_are_members(made) -> None:
    assert made.card().members == ["gcn seed 0", "gcn seed 1", "gcn.mean seed 0", "gcn.mean seed 1"]
    assert len(made.checkpoint().members) == 4


def test_the_card_has_the_results_of_the_written_weights(made, recipe) -> None:
    card, checkpoint = made.card(), made.checkpoint()
    value, low, high = card.splits["test"].metrics["accuracy"]
    assert low <= value <= high and card.splits["test"].proteins == 2
    assert list(card.splits["test"].metrics)[-1] == "perplexity"  # of the recipe
    assert checkpoint.calibration.split == "val" and card.calibration == str(checkpoint.calibration)
    files = [recipe.parent / "data" / f"{name}.bcif" for name, split in SPLITS.items() if split == "test"]
    predicted = predict(checkpoint, files, device="cpu")
    truth = _dssp(files)
    known = truth >= 0
    index = np.array(["HEC".index(name) for name in predicted.column("predicted")])
    assert (index == truth)[known].mean() == pytest.approx(value, abs=1e-6)


def _dssp(files: list[Path]) -> np.ndarray:
    from protgraph import tasks
    from protgraph.structure import clean, load_structure

    derive = tasks.get("secondary_structure").derive
    return np.concatenate([np.asarray(derive(clean(load_structure(file)))) for file in files])


@pytest.mark.slow
def test_a_second_run_writes_the_same_bytes(made, recipe, tmp_path) -> None:
    again = run_recipe(recipe, tmp_path / "again")
    for path in made.folder.iterdir():
        assert path.read_bytes() == (again.folder / path.name).read_bytes(), path.name


@pytest.mark.slow
def test_cross_fitting_calibrates_on_every_protein_of_train_and_val_once(recipe, tmp_path, monkeypatch) -> None:
    from protgraph_plugins.recipes import run

    fitted = []
    monkeypatch.setattr(run, "fit_calibration", lambda *a, **kw: fitted.append(a[1]) or fit_calibration(*a, **kw))
    text = TOML.replace('["gcn", "gcn.mean"]', '["gcn"]').replace("[0, 1]", "[0]\ncalibration_folds = 3")
    path = recipe.parent / "cross_fit.toml"
    path.write_text(text)
    model = run_recipe(path, tmp_path / "out").checkpoint()
    files = [recipe.parent / "data" / f"{name}.bcif" for name, split in SPLITS.items() if split != "test"]
    sizes = [len(clean(load_structure(file))) for file in files]
    assert sorted(fitted[0].protein.bincount().tolist()) == sorted(sizes)
    assert model.calibration.split == "train and val, cross-fitted in 3 folds" and model.calibration.proteins == 5

    # The members of the folds are others than the one that is written, which has seen the proteins of train.
    seen = np.sort(
        np.concatenate([predict(model, file, device="cpu", calibrated=False).column("p_H") for file in files])
    )
    assert not np.allclose(seen, np.sort(fitted[0].logits.softmax(1)[:, 0].numpy()), atol=1e-3)


@pytest.mark.slow
def test_a_calibration_is_fitted_again_without_changing_the_weights(made, recipe, tmp_path) -> None:
    folder = tmp_path / "before"
    shutil.copytree(recipe.parent / "data", folder / "data")
    shutil.copy(recipe.parent / "splits.csv", folder)
    for file in made.folder.iterdir():
        shutil.copy(file, folder)
    folds = "[0, 1]\ncalibration_folds = 3\ncalibration_seeds = [1]"
    (folder / "recipe.toml").write_text(TOML.replace("[0, 1]", folds))
    again = evaluate_recipe(TrainedModel(folder), tmp_path / "again", recalibrate=True)
    before, after = made.checkpoint(), again.checkpoint()
    assert after.calibration.split == "train and val, cross-fitted in 3 folds"
    assert after.calibration.proteins == 5
    assert after.calibration.slope != before.calibration.slope
    for old, new in zip(before.members, after.members, strict=True):
        for name, value in new.state_dict().items():
            assert torch.equal(value, old.state_dict()[name]), name
    assert after.threshold == before.threshold
    assert again.card().splits["test"].metrics == made.card().splits["test"].metrics
    assert not (tmp_path / "again.members").exists()


def test_the_page_has_metrics_and_limits(made) -> None:
    page = (made.folder / "README.md").read_text()
    assert "- A test." in page and "accuracy" in page and "reliability.svg" in page


def test_an_existing_folder_is_kept(made, recipe) -> None:
    with pytest.raises(OSError, match="out"):
        run_recipe(recipe, made.folder)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"color": 1}, "color"),
        ({"fit": {"epoch": 3}}, "epoch"),
        ({"fit": {"seed": 3}}, "seeds"),
        ({"fit": {"epochs": -1}}, "epochs"),
        ({"models": []}, "models"),
        ({"calibration_folds": 1}, "calibration_folds"),
        ({"calibration_seeds": [0]}, "calibration_seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"calibration": "plat"}, "calibration"),
        ({"metrics": ["dise"]}, "dise"),
    ],
    ids=[
        "key",
        "fit_key",
        "seed",
        "fit_value",
        "models",
        "calibration_folds",
        "calibration_seeds",
        "seeds",
        "calibration",
        "metrics",
    ],
)
def test_wrong_recipes_are_errors_with_the_key(change, part) -> None:
    with pytest.raises(OptionError, match=part):
        Recipe.from_dict(PLAIN | change, where="r.toml")


def test_a_calibration_alone_is_refused_without_evaluate(run, tmp_path) -> None:
    result = run("recipe", "dna_site", "--calibrate", "-o", tmp_path / "out")
    assert result.code != 0
    assert "--evaluate" in result.err
    assert not (tmp_path / "out").exists()


def test_a_missing_key_is_an_error() -> None:
    with pytest.raises(OptionError, match="task"):
        Recipe.from_dict({key: value for key, value in PLAIN.items() if key != "task"})


def test_a_license_without_commercial_use_is_flagged(made) -> None:
    card = made.card().model_copy(update={"license": "CC BY-NC 4.0", "non_commercial": True})
    assert "CC BY-NC 4.0" in card.license_note and made.card().license_note == ""
    assert json.loads(card.model_dump_json())["non_commercial"]
    card = made.card().model_copy(update={"weights_note": "Only for tests."})
    assert "Only for tests." in card.license_note


def _change_code(member: Path) -> None:
    """Give a checkpoint the digest of other code of its layers."""
    checkpoint = load_checkpoint(member)
    changed = [c.model_copy(update={"digest": "0" * 64}) if c.kind == "layer" else c for c in checkpoint.components]
    save_checkpoint(member, replace(checkpoint, components=changed))


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_members_of_the_installed_code(made, recipe, tmp_path, monkeypatch) -> None:
    import protgraph_plugins.recipes.run as run

    from protgraph.train import fit

    trained: list[int] = []

    def stopping(*args, config, **options):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(config.seed)
        return fit(*args, config=config, **options)

    monkeypatch.setattr(run, "fit", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists() and len(list((tmp_path / "out.members").iterdir())) == 3
    trained.clear()
    _change_code(tmp_path / "out.members" / "0-1.safetensors")
    again = run_recipe(recipe, tmp_path / "out")
    assert trained == [1, 1] and not (tmp_path / "out.members").exists()
    assert (again.folder / "model.safetensors").read_bytes() == (made.folder / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_an_interrupted_member_continues_from_its_last_state_and_gives_the_same_bytes(recipe, tmp_path, monkeypatch):
    import protgraph_plugins.recipes.run as run

    from protgraph.train import fit

    longer = recipe.with_name("longer.toml")
    longer.write_text(TOML.replace("epochs = 1", "epochs = 3"))
    expected = run_recipe(longer, tmp_path / "uninterrupted")
    finished: list[int] = []

    def stop(row) -> None:
        finished.append(int(row["epoch"]))
        if row["epoch"] == 2:  # the state is that of the first epoch
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "fit", lambda *args, **options: fit(*args, **options, on_epoch=stop))
        with pytest.raises(KeyboardInterrupt):
            run_recipe(longer, tmp_path / "out")
    continued: list[int] = []

    def record(*args, **options):
        return fit(*args, **options, on_epoch=lambda row: continued.append(int(row["epoch"])))

    monkeypatch.setattr(run, "fit", record)
    again = run_recipe(longer, tmp_path / "out")
    assert finished == [1, 2] and continued[0] == 2
    assert (again.folder / "model.safetensors").read_bytes() == (expected.folder / "model.safetensors").read_bytes()
    assert not (tmp_path / "out.members").exists()
