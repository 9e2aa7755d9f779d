"""Settings change single values of a model by their path; a path that does not exist names what does."""

from __future__ import annotations

import pytest

from protgraph import models
from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, WiringError
from protgraph.model import ModelSpec, build_model, change_model, parse_settings
from protgraph.registry.component import component

TARGET = Target("site", "node", "multilabel", 1)
SPEC = ModelSpec(
    "small",
    features=[component("knn", k=4), "edge_distance"],
    layers=[
        component("embed", reads=["aatype"], dim=8),
        component("gcn", dim=8),
        component("gcn", dim=8),
        component("mlp", hidden=8),
    ],
)


def options(spec: ModelSpec, name: str) -> list[object]:
    return [layer.options.get(name) for layer in spec.layers]


def test_values_are_written_as_in_toml():
    texts = ["layers.1.dim=128", 'layers.3.act="relu"', "layers.0.scale=1e-3", "features.knn.flags=[1, 2]", "a.b=true"]
    assert parse_settings(texts) == {
        "layers.1.dim": 128,
        "layers.3.act": "relu",
        "layers.0.scale": 1e-3,
        "features.knn.flags": [1, 2],
        "a.b": True,
    }


@pytest.mark.parametrize("text", ["layers.1.dim", "=3", "layers.3.act=relu", "layers.1.dim=", "a=1\nb=2"])
def test_other_texts_are_refused(text):
    with pytest.raises(OptionError, match="--set"):
        parse_settings([text])


def test_a_repeated_path_is_refused():
    with pytest.raises(OptionError, match="layers.1.dim is given twice"):
        parse_settings(["layers.1.dim=1", "layers.1.dim=2"])


@pytest.mark.parametrize(
    "path, expected",
    [
        ("layers.1.dim", [8, 16, 8, None]),
        ("layers.1.options.dim", [8, 16, 8, None]),
        ("layers.gcn.dim", [8, 16, 16, None]),
        ("layers.*.dim", [16, 16, 16, 16]),
    ],
)
def test_a_number_a_name_and_a_star_choose_components(path, expected):
    assert options(change_model(SPEC, {path: 16}), "dim") == expected
    assert options(SPEC, "dim") == [8, 8, 8, None]


def test_tables_in_tables_are_paths():
    assert options(change_model(SPEC, {"layers": {"1": {"dim": 16}}}), "dim") == [8, 16, 8, None]


def test_an_option_that_the_model_does_not_state_is_added():
    assert change_model(SPEC, {"layers.1.bias": False}).layers[1].options == {"dim": 8, "bias": False}


def test_wiring_features_heads_and_names_can_be_changed():
    settings = {
        "features.knn.k": 7,
        "layers.1.writes.h": "g",
        "layers.2.reads.h": "g",
        "layers.0.inputs": ["aatype", "seq_pos"],
        "readout.h": "g",
        "heads.node_multilabel.dropout": 0.25,
        "node_type": "backbone",
        "name": "other",
    }
    changed = change_model(SPEC, settings)
    assert changed.features[0].options == {"k": 7} and changed.layers[0].inputs == ("aatype", "seq_pos")
    assert changed.layers[1].writes == {"h": "g"} and changed.layers[2].reads == {"h": "g"}
    assert changed.readout == {"h": "g"} and changed.heads == {"node_multilabel": {"dropout": 0.25}}
    assert (changed.node_type, changed.name) == ("backbone", "other")


@pytest.mark.parametrize(
    "path, parts",
    [
        ("layers.9.dim", ["layers.9.dim", "0 embed, 1 gcn, 2 gcn, 3 mlp"]),
        ("layers.gnc.dim", ["Did you mean 'gcn'"]),
        ("layers.1.dmi", ["'dmi'", "Did you mean 'dim'", "dim=64"]),
        ("layers.*.dmi", ["'dmi'", "0 embed"]),
        ("layers.1", ["layers.N.OPTION"]),
        ("layers.1.dim.x", ["layers.1.OPTION"]),
        ("heads.node_multilabel.dmi", ["'dmi'"]),
        ("dim", ["layers.N.OPTION"]),
    ],
)
def test_an_unknown_path_names_what_exists(path, parts):
    with pytest.raises(OptionError) as e:
        change_model(SPEC, {path: 3})
    assert all(part in str(e.value) for part in [path, *parts]), str(e.value)


def test_a_value_of_the_wrong_type_is_refused_with_its_path():
    with pytest.raises(WiringError, match=r"reads\.h = 3"):
        change_model(SPEC, {"layers.1.reads.h": 3})
    with pytest.raises(OptionError, match=r"layers\[1\] \(gcn\).*dim='x' is not int"):
        build_model(change_model(SPEC, {"layers.1.dim": "x"}), TARGET)


def test_a_wider_model_has_wider_weights():
    narrow, wide = (build_model(change_model(SPEC, {"layers.*.dim": dim}), TARGET) for dim in (8, 32))
    assert (narrow.fields["h"].irreps, wide.fields["h"].irreps) == ("8x0e", "32x0e")


@pytest.mark.parametrize("name", sorted(models))
def test_every_model_is_the_same_after_toml(name, tmp_path):
    spec = models.get(name)
    path = tmp_path / "model.toml"
    path.write_text(spec.to_toml(), encoding="utf-8")
    assert ModelSpec.from_toml(path) == spec


def test_a_file_is_accepted_where_a_name_is(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(
        'features = ["knn"]\n'
        'layers = [{ name = "embed", reads = ["aatype"], options = { dim = 4 } }, { name = "gcn" }]\n'
    )
    model = build_model(str(path), TARGET)
    assert model.spec.name == "tiny" and model.spec.layers[0] == component("embed", reads=["aatype"], dim=4)


@pytest.mark.parametrize(
    "text, error, part",
    [
        ("layers = [", OptionError, "not valid TOML"),
        ("layres = []", WiringError, "Did you mean 'layers'"),
        ('[[layers]]\nname = "gcn"\nreads = 3', WiringError, "reads = 3"),
    ],
)
def test_a_wrong_file_is_named(text, error, part, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(text)
    with pytest.raises(error) as e:
        ModelSpec.from_toml(path)
    assert str(path) in str(e.value) and part in str(e.value)


def test_a_list_replaces_all_features():
    changed = change_model(SPEC, {"features": ["dihedral", {"name": "knn", "options": {"k": 8}}]})
    assert [(c.name, dict(c.options)) for c in changed.features] == [("dihedral", {}), ("knn", {"k": 8})]
    assert changed.layers == SPEC.layers
