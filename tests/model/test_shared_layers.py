"""Layers that are repeated, and layers that share their weights, as data."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.errors import WiringError
from protgraph.model import change_model, freezable_parts, summarize_model, uncompiled_layers
from protgraph.testing.protein_fixtures import make_protein

TARGET = pg.Target("site", "node", "multilabel", 1)
EMBED = pg.component("embed", reads=["aatype"], dim=8)


def build(*layers: object, features: tuple[str, ...] = ("knn",)) -> pg.ProteinModel:
    return pg.build_model(pg.ModelSpec("m", features=features, layers=[EMBED, *layers]), TARGET, seed=0)


def graph_for(model: pg.ProteinModel) -> pg.ProteinGraph:
    return model.plan.precompute(make_protein([20]))


def layer_parameters(model: pg.ProteinModel) -> int:
    return sum(p.numel() for p in model.layers.parameters())


def test_a_shared_layer_is_one_module_that_is_called_three_times():
    model = build(pg.component("gcn", dim=8, repeat=3, shared="conv"))
    graph = graph_for(model)
    embed, conv = model.layers
    f = model.fields_of(graph)
    h = embed({"aatype": f["aatype"]})["h"]
    for _ in range(3):
        h = conv({"h": h, "edges": f["edges"]})["h"]
    assert torch.equal(model.embed(graph)["h"], h)
    assert [w.path for w in model.wires] == ["layers[0]", "layers[1][0]", "layers[1][1]", "layers[1][2]"]
    assert layer_parameters(model) == layer_parameters(build(pg.component("gcn", dim=8)))
    rows = [row.parameters for row in summarize_model(model)]
    assert sum(rows) == model.num_parameters and rows[-3:-1] == [0, 0]


def test_parts_of_a_model_with_a_shared_layer_are_its_modules():
    model = build(pg.component("gcn", dim=8, repeat=3, shared="conv"), "mlp")
    parts = [(part.path, part.component) for part in freezable_parts(model)]
    assert parts == [("layers.0", "embed"), ("layers.1", "gcn"), ("layers.2", "mlp"), ("head", "node_multilabel")]
    repeated = build(pg.component("gcn", dim=8, repeat=2))
    assert [part.path for part in freezable_parts(repeated)] == ["layers.0", "layers.1", "layers.2", "head"]


def test_gradients_of_all_calls_are_added():
    model = build(pg.component("gcn", dim=8, repeat=2, shared="conv"))
    apart = build(pg.component("gcn", dim=8, repeat=2))
    with torch.no_grad():
        apart.layers[0].load_state_dict(model.layers[0].state_dict())
        apart.head.load_state_dict(model.head.state_dict())
        for layer in apart.layers[1:]:
            layer.load_state_dict(model.layers[1].state_dict())
        for head in (model.head, apart.head):
            for p in head.parameters():
                p.fill_(0.3)
    graph = graph_for(model)
    for one in (model, apart):
        one(graph)["logits"].square().sum().backward()
    for shared, first, second in zip(
        *(layer.parameters() for layer in (model.layers[1], *apart.layers[1:])), strict=True
    ):
        assert shared.grad.abs().max() > 0
        assert torch.allclose(shared.grad, first.grad + second.grad, rtol=1e-5, atol=1e-7)


def test_repeated_layers_have_weights_of_their_own():
    model, one = build(pg.component("gcn", dim=8, repeat=3)), build(pg.component("gcn", dim=8))
    without = layer_parameters(build())
    assert layer_parameters(model) - without == 3 * (layer_parameters(one) - without)


def test_layers_that_are_not_neighbors_share_weights():
    model = build(
        pg.component("gcn", dim=8, shared="conv"), "layer_norm", pg.component("gcn", dim=8, shared="conv"), "layer_norm"
    )
    steps = [layer for _, layer in model.steps]
    assert steps[1] is steps[3] and steps[2] is not steps[4] and len(model.layers) == 4


def test_a_block_is_repeated():
    block = {"repeat": 2, "layers": [{"name": "gcn", "options": {"dim": 8}, "shared": "conv"}, "layer_norm"]}
    model = build(block)
    assert [w.component.name for w in model.wires] == ["embed", "gcn", "layer_norm", "gcn", "layer_norm"]
    assert model.steps[1][1] is model.steps[3][1] and model.steps[2][1] is not model.steps[4][1]
    with pytest.raises(WiringError, match="repeat = 0"):
        build({"repeat": 0, "layers": ["gcn"]})
    with pytest.raises(WiringError, match="'shared'"):
        build({"shared": "a", "layers": ["gcn"]})


def test_the_specification_is_the_same_after_toml_and_pickle(tmp_path):
    import copy
    import pickle

    spec = build(pg.component("gcn", dim=8, repeat=3, shared="conv")).spec
    (tmp_path / "m.toml").write_text(spec.to_toml())
    assert pg.ModelSpec.from_toml(tmp_path / "m.toml") == spec == pickle.loads(pickle.dumps(copy.deepcopy(spec)))
    assert hash(spec.layers[1]) != hash(pg.component("gcn", dim=8, repeat=2, shared="conv"))
    assert "repeat=3, shared='conv'" in repr(spec.layers[1])


def test_data_without_repeat_and_shared_is_as_before():
    assert pg.component("gcn", dim=8).to_dict() == {"name": "gcn", "options": {"dim": 8}}


def test_a_checkpoint_of_shared_layers_opens(tmp_path, structures_dir):
    from protgraph.checkpoint import load_checkpoint

    spec = pg.ModelSpec("m", features=["knn"], layers=[EMBED, pg.component("gcn", dim=8, repeat=3, shared="conv")])
    names = ("1crn", "2erl", "1ajj", "1vii")
    files = [structures_dir / f"{name}.bcif" for name in names]
    dataset = pg.load_dataset([str(file) for file in files], task="secondary_structure")
    result = pg.fit(spec, dataset, "secondary_structure", config=pg.FitConfig(epochs=1, device="cpu"))
    result.save(tmp_path / "m.safetensors")
    opened = load_checkpoint(tmp_path / "m.safetensors").model
    graph = result.model.plan.precompute(pg.clean(pg.load_structure(files[0])))
    result.model.eval()
    with torch.no_grad():
        assert torch.equal(opened(graph)["logits"], result.model(graph)["logits"])
    assert len(opened.layers) == 2 and len(opened.steps) == 4


def test_settings_change_the_depth_and_all_layers_that_share():
    spec = build(pg.component("gcn", dim=8, shared="a"), pg.component("gcn", dim=8, shared="a"), "gcn").spec
    assert change_model(spec, {"layers.3.repeat": 5}).layers[3].repeat == 5
    changed = change_model(spec, {"layers.1.norm": "none"})
    assert [layer.options.get("norm") for layer in changed.layers] == [None, "none", "none", None]


@pytest.mark.parametrize(
    "layers, part",
    [
        ([pg.component("gcn", dim=8, shared="a"), pg.component("gcn", dim=16, shared="a")], "dim=16"),
        ([pg.component("gcn", dim=8, shared="a"), pg.component("gin", dim=8, shared="a")], "'gin'"),
        ([pg.component("gcn", dim=16, repeat=2, shared="a")], "layers[1][1] (gcn)"),
        (
            [
                pg.component("mpnn", dim=8, shared="a"),
                pg.component("mpnn", dim=8, shared="a", reads={"edge_attr": "edge_dist"}),
            ],
            "edge_attr",
        ),
    ],
    ids=["options", "layer", "width", "inputs"],
)
def test_layers_that_cannot_be_one_module_are_refused(layers, part):
    with pytest.raises(WiringError) as e:
        build(*layers, features=("knn", "edge_distance"))
    assert part in str(e.value)


@pytest.mark.parametrize("key", ["repeat", "shared"])
def test_featurizers_are_not_repeated(key):
    value = {"repeat": 2, "shared": "a"}[key]
    with pytest.raises(WiringError, match="repeat and shared are for layers"):
        pg.ModelSpec("m", features=[{"name": "knn", key: value}]).plan()


@pytest.mark.parametrize("repeat", [0, -1, "two", 1.5])
def test_a_wrong_number_is_refused(repeat):
    with pytest.raises(WiringError, match="component 'gcn'.repeat"):
        pg.component("gcn", repeat=repeat)


def test_attention_of_a_shared_layer_has_a_map_per_call():
    model = build(pg.component("gat", dim=8, heads=2, repeat=2, shared="a"))
    maps = model.attention(graph_for(model))
    assert len(maps) == 2 and not torch.equal(*(found[0].weights for found in maps.values()))


def test_paths_name_each_repetition():
    model = build(pg.component("transformer", dim=8, heads=2, repeat=2))
    assert all("[" in text for text in uncompiled_layers(model))
    spec = pg.ModelSpec("m", features=["knn"], layers=[EMBED, pg.component("gcn", repeat=2, writes={"h": "unread"})])
    assert spec.dead_layers() == ["layers[1][0] (gcn)", "layers[1][1] (gcn)"]


@pg.testing.parametrize_with_checks(
    [pg.ModelSpec("shared", features=["knn"], layers=[EMBED, pg.component("gcn", dim=8, repeat=3, shared="a")])]
)
def test_conformity(component, check):
    check(component)
