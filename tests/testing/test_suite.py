"""Reports: passed, failed, expected and skipped checks; one component does not affect another."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import protgraph as pg
from protgraph.errors import OptionError, UnknownNameError, WiringError
from protgraph.process_state import MODES
from protgraph.testing import CHECKS, Conformity, check_component, find_components, release_modules
from protgraph.testing import runner as runner_module
from protgraph.testing.make_inputs import default_spec, make_inputs
from protgraph.testing.runner import Runner
from protgraph.testing.suite import run_check


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
    """Writes points and reads a field that only its Conformity describes: two nonnegative weights per edge."""

    reads, writes = ("pos", "share", "edges"), ("pos",)
    conformity = Conformity(inputs={"share": pg.FieldSpec("share", "edge", "2x0e")}, nonnegative=("share",))

    def __init__(self, fields):
        super().__init__(fields)
        assert fields["share"].dim == 2
        self.declare(pos=pg.field("pos"))

    def forward(self, f):
        edges, share = f["edges"], f["share"]
        assert share.is_meta or torch.compiler.is_compiling() or (share >= 0).all()
        total = edges.sum(share.sum(1, keepdim=True)) + 1
        step = edges.sum(share.sum(1, keepdim=True) * (edges.source(f["pos"]) - edges.target(f["pos"])))
        return {"pos": f["pos"] + step / total}


def reports(definition, **options):
    (component,) = find_components(definition)
    return {report.check: report for report in check_component(component, **options)}


def test_checks_run_from_declarations_to_symmetry():
    names = [c.name for c in CHECKS]
    assert names[:4] == ["builds", "signature", "reads_writes", "inputs_unchanged"]
    assert names[4:8] == ["global_state", "neighbor_order", "finite", "non_trivial"]
    assert names.index("rotation") < names.index("node_order") < names.index("batch_equals_singles")
    assert all(c.claim.endswith(".") and len(c.claim) < 120 for c in CHECKS)


@pytest.mark.slow
def test_an_expected_failure_is_reported_with_its_reason():
    result = reports(SuiteLeak)["no_leak"]
    assert (result.status, result.message, result.ok) == ("expected", "batch statistics", True)


@pytest.mark.slow
def test_an_expected_failure_that_passes_is_a_failure():
    result = reports(SuiteFalseAlarm)["finite"]
    assert result.status == "failed" and "it may overflow" in result.message


@pytest.mark.slow
def test_a_stated_input_is_passed_to_the_component():
    assert [result for result in reports(SuitePoints).values() if not result.ok] == []


def test_a_model_expects_the_failures_of_its_layers_with_their_options(monkeypatch):
    monkeypatch.setattr(pg.layers, "_session", dict(pg.layers._session))
    pg.layers.register("suite_linear", SuiteLinear)
    layers = [pg.component("embed", reads=["aatype"]), pg.component("suite_linear", norm=True)]
    result = reports(pg.ModelSpec("suite", layers=layers))["no_leak"]
    assert (result.status, result.message) == ("expected", "SuiteLinear: batch statistics")
    plain = pg.ModelSpec("suite", layers=[layers[0], pg.component("suite_linear")])
    assert reports(plain)["no_leak"].status == "passed"


def test_a_model_is_rotated_as_a_structure(monkeypatch):
    """Raw positions through a network: each layer is checked on relative positions, but the model is not invariant."""
    network = {"local_nn": [67, 16, 16], "global_nn": None}
    conv = pg.component("pyg_conv", conv="PointNetConv", dim=16, options=network, reads={"pos": "pos"})
    spec = pg.ModelSpec("raw", features=["knn"], layers=[pg.component("embed", reads=["aatype"]), conv])
    results = reports(spec)
    assert results["rotation"].status == "failed"
    assert results["node_order"].status == results["batch_equals_singles"].status == "passed"


class SuiteInPlace(SuiteLinear):
    def forward(self, f):
        return {"h": self.linear(f["h"].mul_(2))}


def test_a_layer_that_changes_its_input_in_place_fails_the_model():
    pg.layers.register("suite_in_place", SuiteInPlace)
    layers = [pg.component("embed", reads=["aatype"]), "suite_in_place"]
    result = reports(pg.ModelSpec("in_place", layers=layers))["inputs_unchanged"]
    assert result.status == "failed" and "layers[1] (suite_in_place) changes 'h' in place" in result.message


class SuiteConstant(SuiteLinear):
    """Moves a constant to the device in the first call, which is allowed, or in every call."""

    every_call = False

    def forward(self, f):
        constant = getattr(self, "constant", None)
        if constant is None or constant.device != f["h"].device or constant.dtype != f["h"].dtype or self.every_call:
            constant = self.constant = torch.ones(8).to(f["h"])
        return {"h": self.linear(f["h"]) * constant}


@pytest.mark.parametrize("every_call", [False, True])
def test_a_model_may_move_constants_in_its_first_call(every_call, monkeypatch):
    monkeypatch.setattr(SuiteConstant, "every_call", every_call)
    pg.layers.register("suite_constant", SuiteConstant)
    result = reports(pg.ModelSpec("c", layers=[pg.component("embed", reads=["aatype"]), "suite_constant"]))["device"]
    assert result.status == ("failed" if every_call else "passed")
    assert not every_call or "test_suite.py:" in result.message


class SuiteRaises(pg.StructureFeaturizer):
    writes = ("b_factor",)

    def __call__(self, residues):
        raise ValueError("own bug")


def test_a_fault_has_its_line_and_is_the_same_in_all_checks():
    failed = [result for result in reports(SuiteRaises).values() if not result.ok]
    line = inspect.getsourcelines(SuiteRaises.__call__)[1] + 1
    assert len(failed) > 5 and {result.fault for result in failed} == {f"ValueError: own bug ({__file__}:{line})"}
    assert all(result.fault in result.message for result in failed)


@pytest.mark.parametrize("base", [pg.StructureFeaturizer, pg.EdgeFeaturizer])
def test_a_featurizer_that_returns_nothing_is_located(base):
    class Nothing(base):
        writes = ("edge_index",) if base is pg.EdgeFeaturizer else ("b_factor",)

        def __call__(self, residues):
            return None

    result = reports(Nothing)["reads_writes"]
    assert "returns None" in result.message and f"{__file__}:" in result.message


class SuiteHalf(SuiteLinear):
    def forward(self, f):
        torch.set_default_dtype(torch.float16)
        return super().forward(f)


def test_a_change_of_the_default_type_is_found_and_undone():
    (component,) = find_components(SuiteHalf)
    check = next(c for c in CHECKS if c.name == "global_state")
    assert "default dtype" in run_check(check, Runner(component)).message
    assert torch.get_default_dtype() == torch.float32


class SuiteAnomalies(SuiteLinear):
    def forward(self, f):
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(torch.get_num_threads() + 1)
        return super().forward(f)


@pytest.mark.parametrize("check", ["reads_writes", "rotation", "every_parameter_learns"])
def test_what_a_component_changes_is_restored_after_each_check(check):
    before = {name: read() for name, (read, _) in MODES.items()}
    (component,) = find_components(SuiteAnomalies)
    run_check(next(c for c in CHECKS if c.name == check), Runner(component))
    assert {name: read() for name, (read, _) in MODES.items()} == before


class SuiteEdgeCount(pg.StructureFeaturizer):
    writes = ("edge_dist",)

    def __call__(self, residues):
        return {"edge_dist": np.zeros((1, 1))}


def test_a_structure_featurizer_of_edges_is_refused_by_name():
    result = reports(SuiteEdgeCount)["builds"]
    assert result.status == "failed" and "'edge_dist' of level edge" in result.message


def test_only_the_featurizers_that_are_needed_are_imported(tmp_path, monkeypatch):
    info = tmp_path / "exit_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: exit-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.featurizers]\nends_it = ends_it_mod:F\n")
    (tmp_path / "ends_it_mod.py").write_text("import sys; sys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "dihedral" in make_inputs({"dihedral": default_spec("dihedral")}).values
    assert "ends_it_mod" not in sys.modules
    assert not pg.featurizers.entry("ends_it").is_loaded


def test_a_field_of_a_plugin_is_computed_by_a_featurizer_of_its_distribution(tmp_path, monkeypatch):
    info = tmp_path / "own_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.featurizers]\nown_count = own_dist_mod:F\n")
    (tmp_path / "own_dist_mod.py").write_text(
        "import numpy as np, protgraph as pg\n"
        "pg.register_field(pg.FieldSpec('own_dist_count', 'node', '1x0e'))\n"
        "class F(pg.StructureFeaturizer):\n"
        "    writes = ('own_dist_count',)\n"
        "    def __call__(self, residues): return {'own_dist_count': np.full((len(residues), 1), 7.0)}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("own_dist_mod")
    values = make_inputs({"own_dist_count": default_spec("own_dist_count")}).values
    assert values["own_dist_count"].unique().tolist() == [7.0]


def test_a_layer_that_nothing_reads_fails_the_model():
    layers = [pg.component("embed", reads=["aatype"]), pg.component("linear", writes={"h": "spare"})]
    result = reports(pg.ModelSpec("dead", layers=layers))["reads_writes"]
    assert result.status == "failed" and "layers[1] (linear)" in result.message


@pytest.mark.slow
def test_a_component_that_cannot_be_loaded_fails_its_first_check_only(tmp_path, monkeypatch):
    info = tmp_path / "cracked_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cracked-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text("[protgraph.layers]\ncracked = cracked_mod:Cracked\n")
    (tmp_path / "cracked_mod.py").write_text("raise RuntimeError('no license')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    results = reports("cracked")
    assert list(results) == ["builds"]
    assert "no license" in results["builds"].message
    assert all(result.ok for result in reports("linear").values())


@pytest.mark.parametrize("group", ["heads", "featurizers", "tasks", "datasets", "models"])
def test_a_layer_of_another_kind_fails_its_first_check(group, tmp_path, monkeypatch):
    info = tmp_path / "wrong_dist-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-dist\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[protgraph.{group}]\nwrong_kind = protgraph.nn.layers.convolutions:GCN\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    results = reports("wrong_kind")
    assert list(results) == ["builds"] and results["builds"].status == "failed"
    message = results["builds"].message
    assert "is the class protgraph.nn.layers.convolutions.GCN" in message and "wrong-dist 0.3" in message


def test_float32_is_compared_with_the_tolerance_of_the_component():
    results = reports(SuiteLinear, dtype="float32")
    assert all(result.ok for result in results.values())
    assert results["rotation"].error > 0  # against float64


def test_default_dtype_and_random_state_stay_as_they_were():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    reports(SuiteLinear)
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(before, torch.get_rng_state())


def test_unknown_names_types_and_classes_are_typed_errors():
    with pytest.raises(UnknownNameError, match="'gat'"):
        find_components("gta")
    with pytest.raises(OptionError, match="float16"):
        list(check_component(find_components(SuiteLinear)[0], dtype="float16"))
    with pytest.raises(WiringError, match="Linear"):
        find_components(nn.Linear)


def test_a_name_finds_every_kind_and_variant():
    names = {str(component) for component in find_components("gat")}
    assert {"layer gat", "model gat.v1", "model gat.v2"} <= names
    assert [str(c) for c in find_components("gat", kind="layer")] == ["layer gat"]
    assert [str(c) for c in find_components("gat.v1")] == ["model gat.v1"]


@pytest.mark.slow
def test_a_missing_extra_is_skipped_with_the_install_command():
    """Hide ``transformers`` from a process of its own: what needs it is skipped, nothing fails."""
    program = (
        "import sys; sys.modules['transformers'] = None\n"
        "from protgraph.cli.app import main\n"
        "main(['check', 'esm', 'esm_encoder', 'esm_embedding', 'linear'])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    skipped = [line for line in run.stdout.splitlines() if line.startswith("-")]
    assert any("layer esm_encoder" in line for line in skipped) and any("model esm." in line for line in skipped)
    assert all("pip install 'protgraph-pyg[esm]'" in line for line in skipped)
    assert "✓ layer linear" in run.stdout and f"{len(skipped)} skipped" in run.stdout.splitlines()[-1]


class SuiteUndeclared(SuiteLinear):
    def __init__(self, fields, *, dim: int = 8):
        pg.GraphLayer.__init__(self, fields)
        self.linear, self.norm = nn.Linear(self.scalar_width("h"), dim), nn.Identity()


def test_a_missing_call_of_declare_is_named():
    """The names that are returned and listed agree; those that are declared do not."""
    message = reports(SuiteUndeclared)["reads_writes"].message
    assert "declare()" in message and "['h']" in message and "forward returns" not in message


@pytest.mark.slow
def test_large_gradients_and_copies_are_freed():
    """One shared instance of a component at a time is kept, and it keeps no gradients."""
    (component,) = find_components(SuiteLinear)
    assert all(report.ok for report in check_component(component))
    runner = Runner(component)
    assert all(p.grad is None for p in runner.module(component.wirings[0]).parameters())
    release_modules()
    assert runner_module._shared_module.cache_info().currsize == 0
