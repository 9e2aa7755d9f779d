"""Dataset cards: reading, validation with paths, addition of counts."""

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


def test_card_is_read_from_toml(tmp_path):
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


def changed(path: str, value: object) -> dict:
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
    ("path", "value", "parts"),
    [
        ("license", None, ["card: license"]),
        ("name", 3, ["card: name = 3"]),
        ("color", "red", ["card: ", "'color'", "citation, description"]),
        ("splits.rule", None, ["card: splits.rule"]),
        ("splits.train.proteins", "many", ["splits.train.proteins = 'many'", "integer"]),
        ("splits.train.proteins", True, ["splits.train.proteins = True"]),
        ("splits.train.protein", 1, ["splits.train: ", "'protein'", "'proteins'", "per_class"]),
        ("tasks", {}, ["card: "]),
        ("tasks.state.kind", "colors", ["tasks.state.kind = 'colors'", "'classification'"]),
        ("tasks.state.kin", "colors", ["tasks.state: ", "'kin'", "'kind'"]),
        ("tasks.state.size", 3, ["tasks.state: ", "'state'", "3"]),
        ("tasks.state.names", [1, 2], ["tasks.state.names[0] = 1", "tasks.state.names[1] = 2"]),
        ("tasks.state.splits.train.per_class", [1, 2, 3], ["tasks.state.splits.train: ", "3 counts for 2 classes"]),
        ("tasks.state.splits.valid", {"proteins": 1, "residues": 2}, ["tasks.state.splits.valid", "test, train"]),
    ],
)
def test_invalid_card_raises_with_the_path_of_the_key(path, value, parts):
    with pytest.raises(DatasetError) as e:
        parse_card(changed(path, value))
    assert all(part in str(e.value) for part in parts), str(e.value)


def test_missing_or_invalid_file_raises(tmp_path):
    with pytest.raises(DatasetError, match="dataset.toml"):
        load_card(tmp_path / "dataset.toml")
    (tmp_path / "dataset.toml").write_text("name = ")
    with pytest.raises(DatasetError, match="dataset.toml"):
        load_card(tmp_path / "dataset.toml")


def test_sum_of_counts_is_none_where_either_is_none():
    assert SplitCount(1, 5, 4, (1, 3)) + SplitCount(2, 7, 7, (7, 0)) == SplitCount(3, 12, 11, (8, 3))
    assert SplitCount(1, 5) + SplitCount(1) == SplitCount(2)
