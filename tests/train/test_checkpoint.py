"""Checkpoints: round trip, file format, and errors for damaged files and missing components."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from protgraph import registry
from protgraph.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from protgraph.checkpoint.checkpoint_file import KEY
from protgraph.errors import CheckpointError
from protgraph.inference import predict
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.testing import offline_models
from protgraph.train import fit


@pytest.fixture
def saved(trained, tmp_path):
    return trained.save(tmp_path / "model.safetensors")


def header_of(path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()[KEY])


def edited(path, **changes):
    """Copy a checkpoint with other values in the header, and without the checksum."""
    other = path.with_name("edited.safetensors")
    description = {key: value for key, value in header_of(path).items() if key != "sha256"}
    save_file(load_file(path), other, metadata={KEY: json.dumps(description | changes)})
    return other


def test_a_trained_model_is_loaded_by_its_name():
    from protgraph import trained_models

    by_name = load_checkpoint("secondary_structure")
    own = trained_models.get("secondary_structure").checkpoint()
    assert by_name.task == "secondary_structure" and len(by_name.members) == len(own.members)
    for a, b in zip(by_name.members, own.members, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_a_checkpoint_round_trips(trained, saved):
    loaded = load_checkpoint(saved)
    before, after = trained.model.state_dict(), loaded.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[k], after[k]) and before[k].dtype == after[k].dtype for k in before)
    assert loaded.model.spec == trained.model.spec
    assert loaded.model.target == trained.model.target
    assert not loaded.model.training
    assert (loaded.task, loaded.hidden, loaded.one_chain) == ("helix", frozenset(), True)
    assert loaded.metrics == trained.metrics
    assert loaded.trained["config"] == trained.config.to_dict()
    assert loaded.trained["dataset"] == "small"


@pytest.mark.slow
def test_a_threshold_round_trips_exactly(small, tiny, quick, tmp_path):
    result = fit(tiny, small, "buried", config=replace(quick, epochs=1))
    loaded = load_checkpoint(result.save(tmp_path / "m.safetensors"))
    assert torch.equal(loaded.threshold, result.threshold)
    assert loaded.threshold.dtype == result.threshold.dtype


def test_nan_metrics_round_trip(trained, tmp_path):
    metrics = {"test": {"accuracy": float("nan"), "macro_f1": 0.5}}
    path = save_checkpoint(tmp_path / "m.safetensors", replace(trained.checkpoint(), metrics=metrics))
    assert str(load_checkpoint(path).metrics) == str(metrics)


@pytest.mark.slow
def test_another_process_predicts_the_same_bits(trained, saved, structures_dir, tmp_path):
    files = [structures_dir / "1orc.bcif", structures_dir / "1hf9.bcif"]
    predict(trained.checkpoint(), files, device="cpu").write(tmp_path / "here.csv")
    code = (
        "import sys; from protgraph.inference import predict; "
        "predict(sys.argv[1], sys.argv[3:], device='cpu').write(sys.argv[2])"
    )
    threads = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    subprocess.run([sys.executable, "-c", code, saved, tmp_path / "there.csv", *files], check=True, env=threads)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert len((tmp_path / "here.csv").read_text().splitlines()) == 1 + 64 + 82


def test_the_file_is_safetensors_with_json_and_no_pickle(saved):
    whole = saved.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])  # the rest of the file are the weights
    found = json.loads(header.pop("__metadata__")["protgraph"])
    assert len(whole) == 8 + length + max(entry["data_offsets"][1] for entry in header.values())
    assert {key: value for key, value in found["components"][0].items() if key != "digest"} == {
        "kind": "featurizer",
        "name": "dihedral",
        "source": registry.featurizers.entry("dihedral").source,
        "object": registry.featurizers.entry("dihedral").object,
    }
    assert {c["kind"] for c in found["components"]} == {"featurizer", "layer", "head"}
    assert "dihedral" in found["fields"]


def test_saving_again_replaces_the_file_and_leaves_no_other(trained, saved):
    trained.save(saved)
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_a_missing_plugin_is_an_error_with_the_install_command(saved):
    component = {"kind": "layer", "name": "wonder", "source": "wonder-nets 1.2", "object": "wonder_nets:Wonder"}
    with pytest.raises(CheckpointError, match="wonder-nets 1.2: pip install wonder-nets") as e:
        load_checkpoint(edited(saved, components=[component]))
    assert len(str(e.value).splitlines()) <= 3


def test_a_missing_component_of_a_session_is_an_error_with_its_module(saved):
    component = {"kind": "layer", "name": "wonder", "source": "session", "object": "my.notebook:Wonder"}
    with pytest.raises(CheckpointError, match="my.notebook:Wonder"):
        load_checkpoint(edited(saved, components=[component]))


def test_another_distribution_with_the_same_name_is_an_error(saved):
    component = {"kind": "layer", "name": "gcn", "source": "other-nets 3.0", "object": "other_nets:GCN"}
    with pytest.raises(CheckpointError, match="other-nets 3.0"):
        load_checkpoint(edited(saved, components=[component]))


def test_a_field_with_another_definition_is_an_error(saved):
    fields = header_of(saved)["fields"]
    fields["dihedral"]["irreps"] = "6x0e"
    with pytest.raises(CheckpointError, match="irreps '6x0e' of field 'dihedral'"):
        load_checkpoint(edited(saved, fields=fields))
    fields = {"unheard_of": header_of(saved)["fields"]["pos"] | {"name": "unheard_of"}}
    with pytest.raises(CheckpointError, match="'unheard_of'"):
        load_checkpoint(edited(saved, fields=fields))


@pytest.mark.parametrize("change", ["wider", "fewer", "option"])
def test_weights_that_do_not_fit_are_errors(change, saved):
    weights, description = load_file(saved), header_of(edited(saved))
    first = next(iter(weights))
    if change == "wider":
        weights[first] = torch.zeros(3, 3)
    elif change == "fewer":
        del weights[first]
    else:
        description["graph"]["layers"][0]["options"] = {"width": 16}
    path = saved.with_name("other.safetensors")
    save_file(weights, path, metadata={KEY: json.dumps(description)})
    with pytest.raises(CheckpointError, match="protgraph-pyg"):
        load_checkpoint(path)


def test_other_files_are_errors(saved, tmp_path):
    with pytest.raises(CheckpointError, match="missing.safetensors"):
        load_checkpoint(tmp_path / "missing.safetensors")
    text = tmp_path / "text.safetensors"
    text.write_text("hello")
    foreign = tmp_path / "foreign.safetensors"
    save_file({"w": torch.zeros(1)}, foreign)
    half = tmp_path / "half.safetensors"
    half.write_bytes(saved.read_bytes()[:500])
    for path in (text, foreign, half):
        with pytest.raises(CheckpointError, match=path.name):
            load_checkpoint(path)
    with pytest.raises(CheckpointError, match=re.escape(str(tmp_path))):
        load_checkpoint(tmp_path)


def test_a_model_name_is_not_a_checkpoint():
    with pytest.raises(CheckpointError, match="'gat'"):
        load_checkpoint("gat")


@pytest.mark.parametrize("part", ["description", "weights"])
def test_one_changed_bit_is_detected(saved, part):
    whole = bytearray(saved.read_bytes())
    place = len(whole) - 3 if part == "weights" else whole.index(b"helix")
    whole[place] ^= 1
    damaged = saved.with_name("damaged.safetensors")
    damaged.write_bytes(whole)
    with pytest.raises(CheckpointError, match="damaged.safetensors"):
        load_checkpoint(damaged)


def test_a_file_without_a_checksum_is_read(saved):
    assert "sha256" in header_of(saved)
    older = edited(saved)
    assert "sha256" not in header_of(older)
    load_checkpoint(older)


def test_the_file_mode_follows_the_umask(trained, tmp_path):
    (tmp_path / "other.txt").write_text("")
    trained.save(tmp_path / "m.safetensors")
    assert (tmp_path / "m.safetensors").stat().st_mode == (tmp_path / "other.txt").stat().st_mode


def test_a_later_format_version_is_an_error(saved):
    with pytest.raises(CheckpointError, match="99"):
        load_checkpoint(edited(saved, format_version=99))


def test_an_invalid_header_is_an_error_with_the_key(saved):
    with pytest.raises(CheckpointError, match="target.level"):
        load_checkpoint(edited(saved, target={"name": "helix"}))


def test_shared_weights_can_be_saved(trained, tmp_path):
    # safetensors refuses tensors that share memory; a layer may tie its weights.
    checkpoint = trained.checkpoint()
    parameters = list(checkpoint.model.parameters())
    tied = dict.fromkeys("ab", parameters[0])

    class Tied:
        spec, target, fields = checkpoint.model.spec, checkpoint.model.target, checkpoint.model.fields
        state_dict = staticmethod(lambda: tied)

    path = save_checkpoint(tmp_path / "m.safetensors", Checkpoint(model=Tied(), task="helix"))
    assert torch.equal(load_file(path)["a"], load_file(path)["b"])


@pytest.mark.slow
def test_checkpoints_of_all_model_families_round_trip(small, quick, tmp_path):
    for name in registry.models.names():
        spec = offline_models(registry.models.get(name))
        if any(registry.featurizers.get(c.name).needs_alignment for c in spec.features):
            continue  # the proteins have no alignments
        result = fit(spec, small, "helix", config=replace(quick, epochs=1))
        loaded = load_checkpoint(result.save(tmp_path / f"{name}.safetensors"))
        assert all(torch.equal(v, loaded.model.state_dict()[k]) for k, v in result.model.state_dict().items())


@pytest.mark.slow
def test_a_checkpoint_of_a_model_without_edges_round_trips(small, quick, tmp_path):
    graph = ModelSpec("flat", layers=[component("embed", reads=["aatype"], dim=8)])
    result = fit(graph, small, "helix", config=replace(quick, epochs=1))
    assert load_checkpoint(result.save(tmp_path / "m.safetensors")).model.spec == graph


@pytest.mark.parametrize(
    ("name", "is_name"),
    [("zzzzqqqq", True), ("ligand_sit", True), ("zzzzqqqq.safetensors", False), ("runs/zzzzqqqq", False)],
)
def test_an_unknown_name_of_a_trained_model_has_the_command_that_lists_them(name, is_name):
    with pytest.raises(CheckpointError) as e:
        load_checkpoint(name)
    assert ("'protgraph list trained_models' prints the names" in str(e.value)) == is_name


def test_a_scorer_of_mutations_is_no_checkpoint_and_its_commands_are_named():
    with pytest.raises(CheckpointError, match="protgraph mutate"):
        load_checkpoint("esm2")
