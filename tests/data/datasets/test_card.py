from __future__ import annotations

import copy

import pytest

from protgraph.data.datasets.card import SplitCount, load_card, parse_card
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError

TABLE = {
    "name": "toy",
    "version": "1",
    "license": "CC0-1.0",
    "citation": "nobody 2024",
    "description": "two proteins",
    "splits": {"rule": "by hand", "train": {"proteins": 1, "residues": 9}, "test": {"proteins": 1, "residues": 4}},
    "tasks": {
        "state": {
            "level": "node",
            "kind": "classification",
            "names": ["on", "off"],
            "labels": "seen",
            "examples": "all",
            "splits": {"train": {"proteins": 1, "residues": 9, "labeled": 8, "per_class": [5, 3]}},
        }
    },
}


def test_a_card_says_what_its_toml_says(tmp_path):
    path = tmp_path / "dataset.toml"
    path.write_text(
        'name="toy"\nversion="1"\nlicense="CC0-1.0"\ncitation="nobody 2024"\ndescription="two proteins"\n'
        '[splits]\nrule="by hand"\ntrain={proteins=1, residues=9}\ntest={proteins=1, residues=4}\n'
        '[tasks.state]\nlevel="node"\nkind="classification"\nnames=["on","off"]\nlabels="seen"\nexamples="all"\n'
        "splits.train={proteins=1, residues=9, labeled=8, per_class=[5, 3]}\n"
    )
    card = load_card(path)
    assert card == parse_card(TABLE)
    assert card.tasks["state"].target == Target("state", "node", "classification", 2, ("on", "off"))
    assert card.tasks["state"].counts["train"] == SplitCount(1, 9, 8, (5, 3))
    assert list(card.splits) == ["train", "test"]


def broken(path: str, value: object) -> dict:
    table = copy.deepcopy(TABLE)
    *parents, last = path.split(".")
    at = table
    for key in parents:
        at = at[key]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return table


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("license", None, "card: key 'license' is missing"),
        ("name", 3, "card: name must be a string, got 3"),
        ("color", "red", "card: unknown key 'color'"),
        ("splits.rule", None, r"card \[splits\]: key 'rule' is missing"),
        ("splits.train.proteins", "many", r"card \[splits\] train: proteins must be a whole number, got 'many'"),
        ("splits.train.proteins", True, "must be a whole number, got True"),
        ("tasks", {}, "at least one split and one task"),
        ("tasks.state.kind", "colors", r"card \[tasks.state\]: .*no head predicts 'colors'"),
        ("tasks.state.names", [1, 2], "names must be a list of strings"),
        ("tasks.state.splits.train.per_class", [1, 2, 3], "3 counts for 2 classes"),
        ("tasks.state.splits.valid", {"proteins": 1}, "unknown key 'valid'; it takes test, train"),
    ],
)
def test_each_fault_of_a_card_is_named_with_its_place(path, value, message):
    with pytest.raises(DatasetError, match=message):
        parse_card(broken(path, value))


def test_a_card_that_is_missing_or_no_toml_is_a_dataset_error(tmp_path):
    with pytest.raises(DatasetError, match="no dataset card"):
        load_card(tmp_path / "dataset.toml")
    (tmp_path / "dataset.toml").write_text("name = ")
    with pytest.raises(DatasetError, match="is not TOML"):
        load_card(tmp_path / "dataset.toml")


def test_the_sum_of_counts_knows_only_what_both_know():
    assert SplitCount(1, 5, 4, (1, 3)) + SplitCount(2, 7, 7, (7, 0)) == SplitCount(3, 12, 11, (8, 3))
    assert SplitCount(1, 5) + SplitCount(1) == SplitCount(2)
