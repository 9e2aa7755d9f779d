"""Specs: what a TOML file may say, and what the errors say about everything else."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from protgraph import registry
from protgraph.bench.spec import BenchSpec
from protgraph.errors import OptionError, UnknownNameError
from protgraph.train.config import FitConfig

WHOLE = """
name = "mine"
dataset = "pdb_core"
tasks = ["interface", "b_factor"]
models = ["majority", "gcn"]
floors = ["majority"]
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


def test_toml_file_gives_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert (read.name, read.tasks, read.models) == ("mine", ("interface", "b_factor"), ("majority", "gcn"))
    assert (read.seeds, read.jobs, read.folder) == ((3, 4), 2, Path("somewhere/mine"))


def test_options_of_a_model_win_over_those_of_a_task(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert read.options("majority", "b_factor") == {"epochs": 5}
    assert read.options("majority", "interface") == {"epochs": 6, "batch": 2}
    assert read.options("gcn", "interface") == {"epochs": 7, "batch": 2}


def test_dict_round_trip(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert BenchSpec.from_dict(read.to_dict()) == read
    again = pickle.loads(pickle.dumps(read))  # as processes get it
    assert again == read and again.where == read.where


def test_folder_and_table_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = 'name = "own"\ndataset = "structures"\nlabels = "tables/labels.csv"\ntasks = ["t"]\nmodels = ["m"]\n'
    (tmp_path / "own.toml").write_text(told)
    read = BenchSpec.from_toml(tmp_path / "own.toml")
    assert read.is_folder and read.dataset == str(tmp_path / "structures")
    assert read.labels == tmp_path / "tables" / "labels.csv"
    assert BenchSpec.from_dict(read.to_dict()) == read
    monkeypatch.chdir(tmp_path)
    assert BenchSpec.from_toml("own.toml").dataset == "structures"


def test_a_registered_name_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    (tmp_path / "pdb_core").mkdir()
    read = BenchSpec.from_toml(tmp_path / "mine.toml")
    assert read.dataset == "pdb_core" and not read.is_folder and "labels" not in read.to_dict()


def test_default_spec_compares_two_tasks_with_two_floors() -> None:
    default = BenchSpec.default()
    assert {"secondary_structure", "ligand_binding"} <= set(default.tasks)
    assert default.floors == ("majority", "sequence_mlp")
    assert len(default.models) == 8
    assert len(default.seeds) >= 2


@pytest.mark.parametrize("name", ["pdb_core", "sequences", "contacts", "ts50"])
def test_built_in_specs_name_what_there_is(name: str) -> None:
    spec = BenchSpec.built_in(name)
    assert spec.name == name
    spec.check(FitConfig)
    assert set(spec.tasks) <= set(registry.tasks)


def test_an_unknown_built_in_spec_lists_those_there_are() -> None:
    with pytest.raises(OptionError, match="contacts, pdb_core, sequences, ts50"):
        BenchSpec.built_in("sequence")


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(OptionError, match=re.escape("tasks = ['interface']")):
        BenchSpec(name="n", dataset="pdb_core", tasks="interface", models=["gcn"])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": ["gcn"]}, OptionError, "unknown 'model'. Did you mean 'models'?"),
        ({"seeds": [True]}, OptionError, "seeds = [True] must be a list of int"),
        ({"seeds": [1, 1]}, OptionError, "names something twice"),
        ({"seeds": []}, OptionError, "seeds is empty"),
        ({"tasks": "interface"}, OptionError, "must be a list of str"),
        ({"jobs": -1}, OptionError, "jobs = -1"),
        ({"jobs": "2"}, OptionError, "must be int"),
        ({"labels": 3}, OptionError, "labels = 3 must be str"),
        ({"name": "../up"}, OptionError, "names a folder"),
        ({"floors": ["n"]}, UnknownNameError, "floors: unknown 'n'"),
        ({"fit": {"models": {"n": {}}}}, UnknownNameError, "fit.models: unknown 'n'"),
        ({"fit": {"tasks": {"t": 3}}}, OptionError, "fit.tasks.t = 3 must be a table"),
        ({"fit": 3}, OptionError, "fit = 3 must be a table"),
    ],
)
def test_error_says_where_and_what(changes: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        spec(**changes)
    assert len(str(caught.value).splitlines()) <= 3
    assert str(caught.value).startswith("bench spec: ")


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("name = ", "is no TOML"), ("name='a'", "missing")]
)
def test_unreadable_file_is_an_option_error(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "spec.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionError, match=message):
        BenchSpec.from_toml(path)


def test_check_finds_unknown_names_and_training_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.datasets, "_session", {})
    for kind, name in ((registry.datasets, "d"), (registry.models, "m")):
        monkeypatch.setattr(kind, "_session", {})
        kind.register(name, object())
    spec(fit={"epochs": 3}).check(Config)
    with pytest.raises(UnknownNameError, match="models: no model 'u'"):
        spec(models=["m", "u"]).check(Config)
    with pytest.raises(OptionError, match="fit: epochs must be positive"):
        spec(fit={"epochs": -3}).check(Config)
    with pytest.raises(OptionError, match=r"fit: unknown 'epoch'. Did you mean 'epochs'\?"):
        spec(fit={"epoch": 3}).check(Config)
    with pytest.raises(OptionError, match="fit.models.m: unknown 'seed'"):
        spec(fit={"models": {"m": {"seed": 3}}}).check(Config)
