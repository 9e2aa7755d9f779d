"""A training starts from trained weights: what is loaded, frozen and trained, and errors for what does not fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import LambdaCallback
from torch import nn

import protgraph as pg
from protgraph import Target
from protgraph.checkpoint import Checkpoint, load_checkpoint
from protgraph.checkpoint.checkpoint_file import load_parent, save_checkpoint
from protgraph.checkpoint.checkpoint_header import weights_digest
from protgraph.checkpoint.starting_point import StartingPoint, load_starting_point
from protgraph.errors import CheckpointError, OptionError
from protgraph.model import ModelSpec, build_model, freezable_parts
from protgraph.registry.component import component
from protgraph.train import FitConfig, cross_validate, fit
from protgraph.train.module import FitModule, ShardedStrategy
from tests.train.test_resume import one_thread

BUILT = "layers.0 (embed)", "layers.1 (gcn)", "layers.2 (residual)", "layers.3 (gcn)", "layers.4 (residual)"


@pytest.fixture(scope="module")
def parent(trained, tmp_path_factory) -> str:
    """File of a model that is trained on ``helix``."""
    return str(trained.save(tmp_path_factory.mktemp("parent") / "parent.safetensors"))


def start(network, source: str, head: str | None) -> StartingPoint:
    return load_starting_point(network, load_parent(source), head)


def head_bias(model) -> torch.Tensor:
    return model.get_parameter("head.mlp.0.bias")


def test_layers_of_the_parent_are_loaded_and_the_head_of_another_task_is_new(parent, trained, tiny, small, quick):
    frozen = replace(quick, start_from=parent, freeze=["layers"], epochs=1)
    result = fit(tiny, small, "buried", config=frozen)
    assert result.start.loaded == list(BUILT)
    assert result.start.skipped == ["head (node_multilabel): new (buried, not helix)"]
    expected = trained.model.state_dict()
    for name, value in result.model.state_dict().items():
        if name.startswith("layers"):  # weights, and the standardization of the parent's training split
            assert torch.equal(value, expected[name]), name
    assert {"layers.0.standardize.mean", "layers.0.standardize.scale"} <= expected.keys()
    assert all(parameter.requires_grad for parameter in result.model.parameters())  # after training


def test_head_of_the_same_target_is_kept_unless_a_new_one_is_asked_for(parent, trained, tiny, small):
    network = build_model(tiny, trained.model.target, seed=1)
    assert start(network, parent, None).keeps_head
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), trained.model.parameters(), strict=True))
    network = build_model(tiny, trained.model.target, seed=1)
    point = start(network, parent, "new")
    assert point.skipped == ["head (node_classifier): new (option head)"]
    assert not torch.equal(network.head.mlp[0].weight, trained.model.head.mlp[0].weight)


def test_kept_head_is_not_reset_to_the_label_frequencies(parent, trained, tiny, small, quick):
    config = replace(quick, start_from=parent, freeze=["layers", "head.mlp.0.bias"], epochs=1)
    result = fit(tiny, small, "helix", config=config)
    assert torch.equal(head_bias(result.model), head_bias(trained.model))


def test_rows_of_a_head_are_matched_by_the_names_of_classes(tiny, tmp_path):
    letters = Target("letters", "node", "classification", 4, ("a", "b", "c", "d"))
    network = build_model(tiny, letters, seed=0)
    file = save_checkpoint(tmp_path / "letters.safetensors", Checkpoint(network, "inverse_folding"))
    fewer = build_model(tiny, Target("fewer", "node", "classification", 2, ("d", "b")), seed=1)
    point = start(fewer, str(file), "keep")
    assert point.resized == ["head.mlp.0.weight (4 → 2 rows)", "head.mlp.0.bias (4 → 2 rows)"]
    assert torch.equal(fewer.head.mlp[0].weight, network.head.mlp[0].weight[[3, 1]])
    other = build_model(tiny, Target("other", "node", "classification", 2, ("d", "x")), seed=1)
    with pytest.raises(CheckpointError, match="does not predict 'x'"):
        start(other, str(file), "keep")
    one, other_one = (build_model(tiny, Target(name, "node", "multilabel", 1, (name,)), seed=2) for name in ("a", "b"))
    file_of_one = save_checkpoint(tmp_path / "one.safetensors", Checkpoint(one, "a"))
    assert start(other_one, str(file_of_one), "keep").keeps_head  # a single label of another name
    values = build_model(tiny, Target("values", "node", "regression", 4), seed=1)
    with pytest.raises(CheckpointError, match="kind 'classification', not 'regression'"):
        start(values, str(file), "keep")


class Watch(LambdaCallback):
    """Record, at the end of each epoch, what is trained."""

    def __init__(self) -> None:
        super().__init__(on_train_batch_end=self.watch)
        self.trained: list[set[str]] = []
        self.stateful: set[str] = set()
        self.training: set[str] = set()

    def watch(self, trainer, module, *_: object) -> None:
        parameters = dict(module.model.named_parameters())
        self.trained.append({name for name, p in parameters.items() if p.grad is not None})
        state = trainer.optimizers[0].state
        self.stateful = {name for name, p in parameters.items() if p in state}
        self.training = {name for name, m in module.model.named_modules() if m.training and isinstance(m, nn.Dropout)}


def test_frozen_parts_have_no_gradient_no_dropout_and_no_optimizer_state(parent, tiny, small, quick):
    watch = Watch()
    config = replace(quick, start_from=parent, freeze=["layers.[0-2]"])
    fit(tiny, small, "helix", config=config, callbacks=[watch])
    names = {name for name, _ in build_model(tiny, Target("y", "node", "multilabel", 1)).named_parameters()}
    trained = {name for name in names if not name.startswith(("layers.0", "layers.1", "layers.2"))}
    assert all(step == trained for step in watch.trained)
    assert watch.stateful == trained
    assert watch.training == {"layers.4.dropout"}  # not that of layer 2, after the first validation, too


def test_parts_are_unfrozen_after_their_epochs(parent, tiny, small, quick):
    watch = Watch()
    config = replace(quick, start_from=parent, freeze=["layers"], unfreeze_after={"layers.3": 1, "layers.1": 2})
    result = fit(tiny, small, "helix", config=config, callbacks=[watch])
    steps = len(watch.trained) // 3
    layers = [{name[:8] for name in step} for step in watch.trained]
    assert [layers[epoch * steps] for epoch in range(3)] == [
        {"head.mlp"},
        {"head.mlp", "layers.3"},
        {"head.mlp", "layers.3", "layers.1"},
    ]
    before, after = load_checkpoint(parent).model.state_dict(), result.model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before if name.startswith("layers.0"))


def test_learning_rate_of_a_part_is_scaled(parent, tiny, small, quick):
    """The first step of AdamW without weight decay changes each weight by the learning rate."""
    rate = 1e-3
    config = replace(quick, start_from=parent, epochs=1, batch_residues=10_000, schedule="constant", weight_decay=0.0)
    config = replace(config, lr=rate, lr_scale={"layers": 0.1, "layers.3": 0.5}, gradient_clip=None)
    before = load_checkpoint(parent).model.state_dict()
    after = fit(tiny, small, "helix", config=config).model.state_dict()
    for part, scale in (("layers.1", 0.1), ("layers.3", 0.5), ("head", 1.0)):
        steps = torch.cat([(after[k] - before[k]).abs().flatten() for k in before if k.startswith(part)])
        assert steps.max().item() == pytest.approx(scale * rate, rel=1e-2)


def test_interrupted_fine_tuning_is_resumed_to_the_same_bits(parent, tiny, small, quick, tmp_path):
    config = replace(
        quick, start_from=parent, freeze=["layers"], unfreeze_after={"layers.3": 1}, lr_scale={"head": 2.0}
    )

    def stop(row):
        if row["epoch"] == 2:
            raise RuntimeError("stop")

    with one_thread():
        whole = fit(tiny, small, "helix", config=config)
        for folder, interval in (("epoch", 600.0), ("step", 0.0)):
            options = {"config": config, "run_dir": tmp_path / folder, "state_interval": interval}
            with pytest.raises(RuntimeError, match="stop"):
                fit(tiny, small, "helix", on_epoch=stop, **options)
            resumed = fit(tiny, small, "helix", resume=True, **options)
            assert resumed.history == whole.history
            expected, weights = whole.model.state_dict(), resumed.model.state_dict()
            assert all(torch.equal(expected[name], weights[name]) for name in expected)


def test_run_is_not_resumed_from_another_parent(trained, tiny, small, quick, tmp_path):
    file = trained.save(tmp_path / "parent.safetensors")
    config = replace(quick, start_from=str(file), epochs=1)
    fit(tiny, small, "helix", config=config, run_dir=tmp_path / "run")
    with torch.no_grad():
        changed = replace(trained.checkpoint(), model=build_model(tiny, trained.model.target, seed=3))
    save_checkpoint(file, changed)
    with pytest.raises(CheckpointError, match="start.digest"):
        fit(tiny, small, "helix", config=replace(config, epochs=2), run_dir=tmp_path / "run", resume=True)


def test_checkpoint_names_its_parents_with_their_digests(parent, tiny, small, quick, tmp_path):
    child = fit(tiny, small, "buried", config=replace(quick, start_from=parent, epochs=1))
    file = child.save(tmp_path / "child.safetensors")
    grandchild = fit(tiny, small, "size", config=replace(quick, start_from=str(file), epochs=1))
    saved = load_checkpoint(grandchild.save(tmp_path / "grandchild.safetensors")).trained["start"]
    assert saved["source"] == str(file)
    assert saved["digest"] == weights_digest(child.model) == weights_digest(load_checkpoint(file).model)
    assert saved["parent"]["digest"] == weights_digest(load_checkpoint(parent).model)


def test_members_of_an_ensemble_are_chosen_by_number():
    first, third = load_parent("ligand_site"), load_parent("ligand_site[2]")
    members = load_checkpoint("ligand_site").members
    assert [first.digest, third.digest] == [weights_digest(members[0]), weights_digest(members[2])]
    with pytest.raises(CheckpointError, match=r"member 9. Allowed: 0 to 2"):
        load_parent("ligand_site[9]")


def test_models_that_do_not_fit_are_errors(parent, tiny, small, quick):
    buried = Target("buried", "node", "multilabel", 1)
    with pytest.raises(CheckpointError, match="another family"):
        start(build_model("egnn", buried), parent, None)
    wider = ModelSpec("tiny", tiny.features, [component("embed", reads=["aatype", "dihedral"], dim=8)])
    with pytest.raises(CheckpointError, match=r"no layer of model 'tiny'.*weight is \(21, 16\).*not \(21, 8\)"):
        start(build_model(wider, buried), parent, None)
    with pytest.raises(CheckpointError, match="no published weights"):
        load_parent("gcn")
    with pytest.raises(CheckpointError, match="absent"):
        load_parent("absent.safetensors")


def test_other_inputs_of_a_layer_are_not_loaded_and_other_features_are_noted(parent, tiny):
    layers = [component("embed", reads=["dihedral", "aatype"], dim=16), *tiny.layers[1:], component("mlp", hidden=16)]
    spec = ModelSpec("tiny.more", ["dihedral", component("knn", k=12)], layers)
    point = start(build_model(spec, Target("buried", "node", "multilabel", 1)), parent, None)
    assert point.loaded == list(BUILT[1:])
    assert point.skipped[:2] == [
        "layers.0 (embed): reads aatype, dihedral in the checkpoint",
        "layers.5 (mlp): not in the checkpoint",
    ]
    assert point.notes == ["featurizer knn(k=12): not in the checkpoint", "featurizer knn(k=8): in the checkpoint only"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"freeze": ["layer.*"]},
            "freeze: 'layer.\\*' matches no parameter.*layers.0, layers.1, layers.2, layers.3, layers.4, head",
        ),
        ({"lr_scale": {"x": 0.1}}, "lr_scale: 'x'"),
        ({"unfreeze_after": {"layers.9": 2}}, "unfreeze_after: 'layers.9'"),
        ({"freeze": ["*"]}, "all parts .* frozen in epoch 1"),
        ({"freeze": ["layers"], "unfreeze_after": {"head": 2}}, "all parts .* frozen in epoch 1"),
        ({"head": "keep"}, "without start_from"),
    ],
)
def test_options_without_effect_are_errors(options, message, tiny, small, quick):
    with pytest.raises(OptionError, match=message):
        fit(tiny, small, "helix", config=replace(quick, **options))


def test_parts_of_a_model_are_its_layers_with_parameters_and_the_head(tiny):
    parts = freezable_parts(build_model(tiny, Target("buried", "node", "multilabel", 1)))
    assert [f"{part.path} ({part.component})" for part in parts] == [*BUILT, "head (node_multilabel)"]
    assert parts[-1].parameters == 17


def test_options_of_a_recipe_are_those_of_fit():
    config = FitConfig(start_from="ligand_site", freeze=["layers.0"], lr_scale={"head": 2.0})
    assert config.to_dict()["freeze"] == ["layers.0"]
    assert config.learning_rate("head.mlp.0.bias") == 2 * config.lr


def test_shared_layers_are_loaded_and_frozen_once(small, quick, tmp_path):
    embed = component("embed", reads=["aatype"], dim=8)
    spec = ModelSpec("shared", ["knn"], [embed, component("gcn", dim=8, repeat=2, shared="conv"), "layer_norm"])
    one = replace(quick, epochs=1)
    source = str(fit(spec, small, "helix", config=one).save(tmp_path / "shared.safetensors"))
    result = fit(spec, small, "buried", config=replace(one, start_from=source, freeze=["layers.1"]))
    assert result.start.loaded == ["layers.0 (embed)", "layers.1 (gcn)", "layers.2 (layer_norm)"]
    parent, child = load_parent(source).model.state_dict(), result.model.state_dict()
    assert torch.equal(parent["layers.1.linear.weight"], child["layers.1.linear.weight"])


def test_gradual_unfreezing_needs_one_process_and_low_rank_terms_unsharded_weights(tiny):
    """DDP agrees once, at the start, which parameters have gradients."""
    task = pg.tasks.get("interface")
    model = build_model(tiny, task.target)
    module = FitModule(model, task, FitConfig(unfreeze_after={"layers": 1}))
    module._trainer = SimpleNamespace(world_size=2, strategy=None, current_epoch=0)
    with pytest.raises(OptionError, match="2 processes"):
        module.configure_model()
    module = FitModule(model, task, FitConfig(lora={"layers": 1}))
    module._trainer = SimpleNamespace(world_size=2, strategy=ShardedStrategy(), current_epoch=0)
    with pytest.raises(OptionError, match="fsdp"):
        module.configure_model()


def test_folds_start_from_the_parent_and_are_not_resumed_from_another_one(trained, tiny, small, quick, tmp_path):
    file = trained.save(tmp_path / "parent.safetensors")
    config = replace(quick, start_from=str(file), freeze=["layers"], epochs=1)
    cross_validate(tiny, small, "buried", folds=2, config=config, run_dir=tmp_path / "cv")
    fold = load_checkpoint(tmp_path / "cv" / "fold_1" / "model.safetensors")
    expected = trained.model.state_dict()
    layers = {name: x for name, x in fold.model.state_dict().items() if name.startswith("layers")}
    assert all(torch.equal(value, expected[name]) for name, value in layers.items())
    save_checkpoint(file, replace(trained.checkpoint(), model=build_model(tiny, trained.model.target, seed=3)))
    with pytest.raises(CheckpointError, match="another parent"):
        cross_validate(tiny, small, "buried", folds=2, config=config, run_dir=tmp_path / "cv", resume=True)


# The layers of ddg_binding have no weights: it has a head alone.
@pytest.mark.parametrize("name", sorted(set(pg.trained_models.names()) - {"ddg_binding"}))
def test_every_trained_model_can_be_continued(name):
    """All layers are loaded for another task of residues, and all of the model for its own one."""
    parent = load_parent(name).model
    network = build_model(parent.spec, Target("site", "node", "multilabel", 1), seed=1)
    point = start(network, name, None)
    parts = [f"{part.path} ({part.component})" for part in freezable_parts(network)]
    assert [*point.loaded, point.skipped[-1].partition(":")[0]] == parts
    again = build_model(parent.spec, parent.target, seed=1)
    assert start(again, name, None).skipped == []
    assert weights_digest(again) == weights_digest(parent)
