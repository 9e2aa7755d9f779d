"""Verdicts: what passes, fails, is expected to fail or does not apply; and that no component can spoil another's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import protgraph as pg
from protgraph.errors import OptionError, UnknownNameError
from protgraph.testing import CHECKS, Conformity, check, subjects


class SuiteLinear(pg.GraphLayer):
    reads, writes = ("h",), ("h",)

    def __init__(self, fields, *, dim: int = 8, norm: bool = False):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), dim)
        self.norm = nn.BatchNorm1d(dim) if norm else nn.Identity()
        if norm:
            self.conformity = Conformity(expected_failures={"no_leak": "batch statistics"})
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        return {"h": self.norm(self.linear(f["h"]))}


class SuiteLeak(SuiteLinear):
    conformity = Conformity(options={"norm": True}, expected_failures={"no_leak": "batch statistics"})


class SuiteFalseAlarm(SuiteLinear):
    conformity = Conformity(expected_failures={"finite": "it may overflow"})


class SuitePoints(pg.GraphLayer):
    """Writes points, reads what no guess gives: a field of weights that are never below 0, two wide."""

    reads, writes = ("pos", "share", "edges"), ("pos",)
    conformity = Conformity(inputs={"share": pg.FieldSpec("share", "edge", "2x0e")}, nonnegative=("share",))

    def __init__(self, fields):
        super().__init__(fields)
        assert fields["share"].dim == 2
        self.declare(pos=pg.field("pos"))

    def forward(self, f):
        edges, share = f["edges"], f["share"]
        assert (share >= 0).all()
        total = edges.sum(share.sum(1, keepdim=True)) + 1
        step = edges.sum(share.sum(1, keepdim=True) * (edges.source(f["pos"]) - edges.target(f["pos"])))
        return {"pos": f["pos"] + step / total}


def verdicts(component, **how):
    (subject,) = subjects(component)
    return {result.check: result for result in check(subject, **how)}


def test_checks_come_in_the_order_of_the_design():
    names = [c.name for c in CHECKS]
    assert names[:6] == ["builds", "signature", "reads_writes", "inputs_unchanged", "finite", "non_trivial"]
    assert names.index("rotation") < names.index("node_order") < names.index("batch_equals_singles")
    assert all(c.claim.endswith(".") and len(c.claim) < 120 for c in CHECKS)


def test_an_expected_failure_is_no_failure_and_says_why():
    result = verdicts(SuiteLeak)["no_leak"]
    assert (result.status, result.message, result.ok) == ("expected", "batch statistics", True)


def test_an_expected_failure_that_passes_is_a_failure():
    result = verdicts(SuiteFalseAlarm)["finite"]
    assert result.status == "failed" and "take the expectation away" in result.message


def test_an_input_that_a_component_states_is_what_it_gets():
    assert [result for result in verdicts(SuitePoints).values() if not result.ok] == []


def test_a_model_may_expect_what_its_layers_do_with_their_options(monkeypatch):
    monkeypatch.setattr(pg.layers, "_session", dict(pg.layers._session))
    pg.layers.register("suite_linear", SuiteLinear)
    layers = [pg.component("embed", reads=["aatype"]), pg.component("suite_linear", norm=True)]
    result = verdicts(pg.ModelSpec("suite", layers=layers))["no_leak"]
    assert (result.status, result.message) == ("expected", "SuiteLinear: batch statistics")
    plain = pg.ModelSpec("suite", layers=[layers[0], pg.component("suite_linear")])
    assert verdicts(plain)["no_leak"].status == "passed"


def test_a_whole_model_is_turned_as_a_structure(monkeypatch):
    """Raw positions through a network: every layer is told relative positions, the model is not invariant."""
    network = {"local_nn": [67, 16, 16], "global_nn": None}
    conv = pg.component("pyg_conv", conv="PointNetConv", dim=16, options=network, reads={"pos": "pos"})
    graph = pg.ModelSpec("raw", features=["knn"], layers=[pg.component("embed", reads=["aatype"]), conv])
    results = verdicts(graph)
    assert results["rotation"].status == "failed"
    assert results["node_order"].status == results["batch_equals_singles"].status == "passed"


def test_a_layer_that_nothing_reads_fails_the_model():
    layers = [pg.component("embed", reads=["aatype"]), pg.component("linear", writes={"h": "spare"})]
    result = verdicts(pg.ModelSpec("dead", layers=layers))["reads_writes"]
    assert result.status == "failed" and "layers[1] (linear)" in result.message


def test_what_cannot_be_loaded_fails_its_first_check_and_nothing_else(tmp_path, monkeypatch):
    info = tmp_path / "cracked_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cracked-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.layers]\ncracked = cracked_mod:Cracked\n")
    (tmp_path / "cracked_mod.py").write_text("raise RuntimeError('no license')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    results = verdicts("cracked")
    assert list(results) == ["builds"]
    assert "no license" in results["builds"].message
    assert all(result.ok for result in verdicts("linear").values())


def test_float32_is_held_to_the_components_tolerance():
    results = verdicts(SuiteLinear, dtype="float32")
    assert all(result.ok for result in results.values())
    assert results["rotation"].error > 0  # against float64


def test_default_dtype_and_random_state_stay_as_they_were():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    verdicts(SuiteLinear)
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(before, torch.get_rng_state())


def test_unknown_names_dtypes_and_things_are_typed_errors():
    with pytest.raises(UnknownNameError, match="Did you mean .*'gat'"):
        subjects("gta")
    with pytest.raises(OptionError, match="float16"):
        list(check(subjects(SuiteLinear)[0], dtype="float16"))
    with pytest.raises(pg.ProtgraphError, match="no Featurizer, GraphLayer or Head"):
        subjects(nn.Linear)


def test_a_name_means_every_kind_and_variant_that_has_it():
    found = {str(subject) for subject in subjects("gat")}
    assert {"layer gat", "model gat.v1", "model gat.v2"} <= found
    assert [str(s) for s in subjects("gat", kind="layer")] == ["layer gat"]
    assert [str(s) for s in subjects("gat.v1")] == ["model gat.v1"]
