"""Attributions: closed forms of linear models, completeness, and a planted motif that is ranked first."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.attribution import explain, integrate_gradients

from protgraph.data.datasets.labels import ResidueLabels
from protgraph.errors import OptionError, SelectionError
from protgraph.inference import predict
from protgraph.model import ModelSpec, build_model
from protgraph.registry.component import component
from protgraph.structure import ALPHABET
from protgraph.train import FitConfig, fit

OFFSET = 2  # a residue is positive if the one two positions later is acidic
ACIDIC = [ALPHABET.index(letter) for letter in "DE"]
CHAINS = ("1crn_A 2erl_A 1d3z_A 1bo0_A 1fas_A 1hf9_A 1ubq_A 1rx4_A 1ajj_A 134l_A 1gya_A 2fvv_A 1rxz_A", "1a8o_A 1y0m_A")


@pytest.fixture(scope="module")
def planted(small, structures_dir):
    """Train on labels that depend on the type of another residue."""
    base = type(small)

    class Planted(base):
        def labels(self, task, example):
            from tests.train.conftest import read

            r = read(example.path).chains(example.chains)
            y = np.zeros(len(r), np.float32)
            y[:-OFFSET] = np.isin(r.aatype[OFFSET:], ACIDIC)
            return ResidueLabels(r.chain, r.res_id, r.ins_code, y, name=example.id)

    chains = dict(zip(("train", "val"), (tuple(names.split()) for names in CHAINS), strict=True))
    window = component("window", size=3)
    layers = [component("embed", reads=["aatype", "ca_density"], dim=16), window, component("mlp", hidden=64)]
    spec = ModelSpec("windowed", features=["ca_density"], layers=layers)
    config = FitConfig(epochs=30, lr=1e-2, patience=None, batch_residues=512, device="cpu")
    return fit(spec, Planted(structures_dir, chains), "buried", config=config)


@pytest.mark.slow
def test_a_planted_motif_is_ranked_first(planted, structures_dir) -> None:
    assert planted.metrics["val"]["auroc"] > 0.98
    file = structures_dir / "1orc.bcif"
    rows = predict(planted.checkpoint(), file, device="cpu").rows
    acidic = {i for i, row in enumerate(rows) if row[4] in ("ASP", "GLU")}
    positive = [i for i, row in enumerate(rows) if row[-2] > 0.5 and i + OFFSET in acidic]
    assert len(positive) >= 4
    first = 0
    for i in positive:
        result = explain(planted.checkpoint(), file, residue="{1}:{2}{3}".format(*rows[i]), device="cpu")
        first += int(np.argmax(result.column("attribution"))) == i + OFFSET
        assert result.incomplete == 0
    assert first == len(positive)


@pytest.fixture(scope="module")
def linear(small):
    """Return a linear model of types and densities, with one label."""
    from protgraph.data.datasets.target import Target

    spec = ModelSpec(
        "linear", features=["ca_density"], layers=[component("embed", reads=["aatype", "ca_density"], dim=1)]
    )
    return build_model(spec, Target("site", "node", "multilabel", 1, ("site",)), seed=0).double().eval()


def test_attributions_of_a_linear_model_are_weights_times_differences(linear, structures_dir) -> None:
    from protgraph.structure.io import read_residues

    graph = linear.plan.precompute(read_residues(structures_dir / "1ubq.bcif"))
    result = integrate_gradients([linear], graph, lambda z: z[10].sum())
    f = linear.fields_of(graph)
    embed = linear.layers[0]
    with torch.no_grad():
        dense, types = embed.linear(f["ca_density"]) - embed.linear.bias, embed.tables["aatype"](f["aatype"])
        one, zero = (linear.head_outputs({**f, "h": torch.full_like(types, x)})["logits"][0] for x in (1.0, 0.0))
        slope = float(one - zero)
    for name, part in (("ca_density", dense), ("aatype", types)):
        expected = torch.zeros(len(part), dtype=torch.float64)
        expected[10] = slope * (part[10] - part.mean(0)).sum()
        torch.testing.assert_close(result.parts[name], expected, atol=1e-6, rtol=1e-5)
    assert result.error < 1e-6 and result.steps == 16


def test_attributions_sum_to_the_difference_of_outputs_for_ensembles(trained, tiny, structures_dir) -> None:
    other = build_model(tiny, trained.model.target, seed=4).eval()
    checkpoint = replace(trained.checkpoint(), others=(other,))
    result = explain(checkpoint, structures_dir / "1orc.bcif", value="p_yes", device="cpu")
    assert result.incomplete == 0 and result.columns[5:] == ("attribution", "aatype", "dihedral")
    parts = result.column("aatype") + result.column("dihedral")
    np.testing.assert_allclose(result.column("attribution"), parts, atol=1e-9)
    assert np.abs(result.column("attribution")).max() > 1e-3


def test_weights_and_hooks_are_unchanged(trained, structures_dir) -> None:
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    rows = predict(trained.checkpoint(), structures_dir / "1orc.bcif", device="cpu").rows
    explain(trained.checkpoint(), structures_dir / "1orc.bcif", device="cpu")
    assert all(torch.equal(before[name], value) for name, value in trained.model.state_dict().items())
    assert all(p.grad is None for p in trained.model.parameters())
    assert predict(trained.checkpoint(), structures_dir / "1orc.bcif", device="cpu").rows == rows


def test_values_and_residues_that_do_not_exist_are_errors(trained, structures_dir) -> None:
    with pytest.raises(SelectionError, match="Z:999"):
        explain(trained.checkpoint(), structures_dir / "1orc.bcif", residue="Z:999", device="cpu")
    with pytest.raises(OptionError, match="p_maybe"):
        explain(trained.checkpoint(), structures_dir / "1orc.bcif", value="p_maybe", device="cpu")


def test_models_without_node_features_are_errors(trained, structures_dir) -> None:
    spec = ModelSpec("constant", layers=[component("constant")])
    checkpoint = replace(trained.checkpoint(), model=build_model(spec, trained.model.target, seed=0))
    with pytest.raises(OptionError, match="constant"):
        explain(checkpoint, structures_dir / "1orc.bcif", device="cpu")


@pytest.mark.slow
def test_explain_writes_attributions_and_their_sum(run, structures_dir, tmp_path) -> None:
    out, why = tmp_path / "o.csv", tmp_path / "why.csv"
    options = ("--explain", why, "--explain-residue", "A:30", "--explain-structure", tmp_path / "why.pdb")
    result = run("predict", "secondary_structure", structures_dir / "1ubq.bcif", "-o", out, "--device", "cpu", *options)
    assert result.code == 0 and "attributions sum to" in result.out, result.err
    with why.open() as file:
        rows = list(csv.DictReader(file))
    parts = [sum(float(row[name]) for name in ("aatype", "ca_density", "dihedral")) for row in rows]
    np.testing.assert_allclose([float(row["attribution"]) for row in rows], parts, atol=1e-6)
    assert len(rows) == 76 and (tmp_path / "why.pdb").is_file()
