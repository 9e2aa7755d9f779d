"""Bench specs: reading TOML, and errors with the path of the key."""

from __future__ import annotations

import pickle
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from protgraph import registry
from protgraph.bench.spec import BenchSpec
from protgraph.data import Dataset
from protgraph.errors import OptionError, UnknownNameError
from protgraph.model import ModelSpec
from protgraph.train.config import FitConfig

WHOLE = """
name = "mine"
dataset = "pdb_core"
tasks = ["interface", "b_factor"]
models = ["majority", "gcn"]
baselines = ["majority"]
seeds = [3, 4]
jobs = 2
out = "somewhere"
[fit]
epochs = 5
[fit.tasks.interface]
epochs = 6
batch = 2
[fit.models.gcn]
epochs = 7
"""


@dataclass
class Config:
    epochs: int = 1
    batch: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise OptionError("epochs must be positive")


def spec(**changes: object) -> BenchSpec:
    data = {"name": "a", "dataset": "d", "tasks": ["t"], "models": ["m"], "seeds": [0]}
    return BenchSpec.from_dict(data | changes)


def test_models_may_be_specifications() -> None:
    graph = ModelSpec("mine", layers=[{"name": "embed", "options": {"dim": 8}}])
    for given in (graph, graph.to_dict()):
        read = spec(models=["gcn", given], optional=["mine"])
        assert read.models == ("gcn", "mine") and read.graphs == {"mine": graph}
        assert BenchSpec.from_dict(read.to_dict()) == read and BenchSpec.from_dict(read.to_dict()).graphs == read.graphs
        assert (
            read.replace(seeds=[5]).graphs == {"mine": graph} and read.replace(models=["gcn"], optional=()).graphs == {}
        )
    direct = BenchSpec(name="a", dataset="pdb_core", tasks=["interface"], models=[graph, "gcn"])
    direct.check(FitConfig)
    with pytest.raises(OptionError, match="without repeated"):
        spec(models=[graph, "mine"])


@pytest.mark.parametrize(
    ("out", "folder"), [("runs", "runs/a"), ("runs/a", "runs/a"), ("a", "a"), ("runs/b", "runs/b/a"), (".", "a")]
)
def test_the_name_is_not_twice_in_the_folder(out: str, folder: str) -> None:
    assert spec(out=out).folder == Path(folder)


def test_values_of_the_toml_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert (read.name, read.tasks, read.models) == ("mine", ("interface", "b_factor"), ("majority", "gcn"))
    assert (read.seeds, read.jobs, read.folder) == ((3, 4), 2, Path("somewhere/mine"))


def test_options_of_a_model_override_those_of_a_task(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert read.options("majority", "b_factor") == {"epochs": 5}
    assert read.options("majority", "interface") == {"epochs": 6, "batch": 2}
    assert read.options("gcn", "interface") == {"epochs": 7, "batch": 2}


def test_dict_round_trip(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert BenchSpec.from_dict(read.to_dict()) == read
    again = pickle.loads(pickle.dumps(read))  # as worker processes receive it
    assert again == read and again.where == read.where


def test_folder_and_table_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'name = "own"\ndataset = "structures"\nlabels = "tables/labels.csv"\ntasks = ["t"]\nmodels = ["m"]\n'
    (tmp_path / "own.toml").write_text(text)
    read = BenchSpec.from_toml(tmp_path / "own.toml")
    assert read.is_folder("t") and read.dataset == str(tmp_path / "structures")
    assert read.labels == tmp_path / "tables" / "labels.csv"
    assert BenchSpec.from_dict(read.to_dict()) == read
    monkeypatch.chdir(tmp_path)
    assert BenchSpec.from_toml("own.toml").dataset == "structures"


def test_a_registered_name_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    (tmp_path / "pdb_core").mkdir()
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert read.dataset == "pdb_core" and not read.is_folder("interface") and "labels" not in read.to_dict()


def test_default_spec_has_two_tasks_and_two_baselines() -> None:
    default = BenchSpec.default()
    assert {"secondary_structure", "ligand_binding"} <= set(default.tasks)
    assert default.baselines == ("majority", "sequence_mlp")
    assert len(default.models) == 8
    assert len(default.seeds) >= 2


@pytest.mark.parametrize("name", ["pdb_core", "sequences", "contacts", "ts50"])
def test_built_in_specs_name_registered_components(name: str) -> None:
    spec = BenchSpec.built_in(name)
    assert spec.name == name
    spec.check(FitConfig)
    assert set(spec.tasks) <= set(registry.tasks)


@pytest.mark.parametrize("name", ["pdb_core", "sequences", "contacts", "complexes", "ts50", "sites"])
def test_built_in_specs_name_registered_trained_models(name: str) -> None:
    spec = BenchSpec.built_in(name)
    missing = {model for names in spec.trained.values() for model in names} - set(registry.trained_models.names())
    assert missing == set() and set(spec.optional) <= set(spec.models)
    assert bool(spec.trained) == (name == "sites")


def test_trained_models_of_a_file_are_relative_to_it(tmp_path: Path) -> None:
    text = """
        name = "t"
        dataset = "pdb_core"
        tasks = ["ligand_binding"]
        models = ["gcn", "esm_hybrid"]
        optional = ["esm_hybrid"]
        [trained]
        ligand_binding = ["ligand_site", "mine/model.safetensors", "other/best.safetensors"]
        """
    path = tmp_path / "spec.toml"
    path.write_text(textwrap.dedent(text))
    spec = BenchSpec.from_toml(path)
    expected = ("ligand_site", str(tmp_path / "mine/model.safetensors"), str(tmp_path / "other/best.safetensors"))
    assert spec.trained == {"ligand_binding": expected}
    labels = ("trained:ligand_site", "trained:mine", "trained:best")
    assert spec.rows_of("ligand_binding") == ("gcn", "esm_hybrid", *labels)
    assert BenchSpec.from_dict(spec.to_dict()) == spec
    with pytest.raises(UnknownNameError, match="optional: .*'gin'"):
        spec.replace(optional=("gin",))


def test_an_unknown_built_in_spec_is_an_error_with_the_allowed_ones() -> None:
    with pytest.raises(OptionError, match="contacts, pdb_core, sequences, sites, ts50"):
        BenchSpec.built_in("sequence")


def test_a_string_is_not_a_list_of_names() -> None:
    with pytest.raises(OptionError, match="tasks = 'interface'"):
        BenchSpec(name="n", dataset="pdb_core", tasks="interface", models=["gcn"])


@pytest.mark.parametrize(
    ("changes", "error", "parts"),
    [
        ({"model": ["gcn"]}, OptionError, ["'model'", "'models'"]),
        ({"seeds": [0, True]}, OptionError, ["seeds[1] = True", "integer"]),
        ({"seeds": [1, 1]}, OptionError, ["seeds = [1, 1]"]),
        ({"seeds": []}, OptionError, ["seeds = []"]),
        ({"tasks": "interface"}, OptionError, ["tasks = 'interface'", "list"]),
        ({"jobs": -1}, OptionError, ["jobs = -1", "0"]),
        ({"jobs": "2"}, OptionError, ["jobs = '2'", "integer"]),
        ({"labels": 3}, OptionError, ["labels = 3", "path"]),
        ({"name": "../up"}, OptionError, ["name = '../up'"]),
        ({"baselines": ["n"]}, UnknownNameError, ["baselines", "'n'", "m"]),
        ({"fit": {"models": {"n": {}}}}, UnknownNameError, ["fit.models", "'n'", "m"]),
        ({"fit": {"tasks": {"t": 3}}}, OptionError, ["fit.tasks.t = 3", "table"]),
        ({"fit": 3}, OptionError, ["fit = 3", "table"]),
        ({"fit_tasks": {}}, OptionError, ["'fit_tasks'"]),
    ],
)
def test_an_error_names_the_key_its_value_and_the_allowed_ones(changes: dict, error: type, parts: list[str]) -> None:
    with pytest.raises(error) as caught:
        spec(**changes)
    assert all(part in str(caught.value) for part in parts)
    assert str(caught.value).startswith("bench spec: ") and "\n" not in str(caught.value)


def test_all_wrong_keys_are_reported_together() -> None:
    with pytest.raises(OptionError) as caught:
        BenchSpec.from_dict({"name": 3, "dataset": "d", "tasks": ["t"]})
    assert ["name = 3" in line or "models" in line for line in str(caught.value).splitlines()] == [True, True]


@pytest.mark.parametrize(
    ("text", "part"),
    [(None, "No such file"), ("name = ", "spec.toml"), ("name='a'", "tasks, models are missing")],
)
def test_an_unreadable_file_is_an_option_error(tmp_path: Path, text: str | None, part: str) -> None:
    path = tmp_path / "spec.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionError, match=part) as caught:
        BenchSpec.from_toml(path)
    assert str(path) in str(caught.value)


def test_check_finds_unknown_names_and_training_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.datasets, "_session", {})
    dataset = type("Empty", (Dataset,), {"examples": None, "labels": None})
    for kind, name, component in ((registry.datasets, "d", dataset), (registry.models, "m", ModelSpec("m"))):
        monkeypatch.setattr(kind, "_session", {})
        kind.register(name, component)
    spec(fit={"epochs": 3}).check(Config)
    with pytest.raises(UnknownNameError, match="models: .*'u'"):
        spec(models=["m", "u"]).check(Config)
    with pytest.raises(OptionError, match="bench spec: fit: "):
        spec(fit={"epochs": -3}).check(Config)
    with pytest.raises(OptionError, match="fit: .*'epoch'.*'epochs'"):
        spec(fit={"epoch": 3}).check(Config)
    with pytest.raises(OptionError, match="fit.models.m: .*'seed'"):
        spec(fit={"models": {"m": {"seed": 3}}}).check(Config)
    with pytest.raises(OptionError, match="fit.models.m: epochs = 'three'.*integer"):
        spec(fit={"models": {"m": {"epochs": "three"}}}).check(Config)


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        ({"epochs": "three"}, ["fit.tasks.interface", "epochs = 'three'", "integer"]),
        ({"schedule": "linear"}, ["fit.tasks.interface", "'linear'", "cosine", "constant"]),
        ({"pos_weight": "even"}, ["fit.tasks.interface", "'even'", "balanced"]),
        ({"epochs": 0}, ["fit.tasks.interface", "epochs", "0"]),
    ],
)
def test_a_training_option_of_the_wrong_type_is_reported_with_its_path(option: dict, parts: list[str]) -> None:
    fit = {"tasks": {"interface": option}}
    with pytest.raises(OptionError) as caught:
        spec(dataset="pdb_core", tasks=["interface"], models=["gcn"], fit=fit).check(FitConfig)
    assert all(part in str(caught.value) for part in parts)


def test_tasks_may_be_on_several_datasets(tmp_path: Path) -> None:
    (tmp_path / "several.toml").write_text(
        'name = "several"\ntasks = ["interface", "site"]\nmodels = ["gcn"]\n'
        '[datasets]\ninterface = "pdb_core"\nsite = "mine"\n'
        '[[published]]\ntask = "site"\nmethod = "other"\nmetric = "auprc"\nvalue = 0.5\ntrained_on = "its own"\n'
    )
    spec = BenchSpec.from_toml(tmp_path / "several.toml")
    assert spec.dataset_of("interface") == "pdb_core" and not spec.is_folder("interface")
    assert spec.dataset_of("site") == str(tmp_path / "mine") and spec.is_folder("site")
    assert spec.published[0].value == 0.5 and spec.published[0].split == "test"
    assert BenchSpec.from_dict(spec.to_dict()) == spec


def test_a_task_without_a_dataset_is_an_error() -> None:
    with pytest.raises(OptionError, match="'site'"):
        BenchSpec.from_dict(
            {"name": "a", "tasks": ["interface", "site"], "models": ["gcn"], "datasets": {"interface": "pdb_core"}}
        )
