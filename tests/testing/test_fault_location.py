"""A fault is one message with its line; checks that fail as a consequence refer to it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from torch import nn

import protgraph as pg
from protgraph.cli.check_reports import _without_repetition
from protgraph.structure.neighbors import sort_edges
from protgraph.testing import check_component, find_components
from protgraph.testing.protein_fixtures import folded_proteins


def failures(what) -> tuple[list, list]:
    """Return the reports of failures: those with a message of their own, and all."""
    reports = [r for r in check_component(*find_components(what)) if not r.ok]
    shown = [_without_repetition(r, reports[:i]).message for i, r in enumerate(reports)]
    return [r for r, text in zip(reports, shown, strict=True) if "the same fault as in" not in text], reports


def line(function, code: str) -> str:
    lines, start = inspect.getsourcelines(function)
    return f"{__file__}:{start + next(i for i, one in enumerate(lines) if code in one)}"


class OwnLayer(pg.GraphLayer):
    reads, writes = ("h",), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        self.linear = nn.Linear(self.scalar_width("h"), 8)
        self.declare(h="8x0e")


class NanLayer(OwnLayer):
    def forward(self, f):
        h = self.linear(f["h"])
        return {"h": h / h.new_zeros(()) * 0}  # NaN


class InPlaceLayer(OwnLayer):
    def forward(self, f):
        f["h"].mul_(2)  # in place
        return {"h": self.linear(f["h"])}


class FarChords(pg.EdgeFeaturizer):
    """Edges between residues of a chain that are at least ``separation`` apart."""

    def __init__(self, *, separation: int = 12):
        super().__init__()
        self.separation = separation

    def __call__(self, residues):
        near = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1) < 12
        far = np.abs(residues.seq_pos[:, None] - residues.seq_pos) >= self.separation
        target, source = np.nonzero(near & far & (residues.chain[:, None] == residues.chain))
        source, target = sort_edges(residues.pos, np.stack([source, target]))
        return pg.EdgeList(source, target)


class NoChords(FarChords):
    def __init__(self, *, separation: int = 900):
        super().__init__(separation=separation)


def test_nan_in_a_layer_is_one_fault_with_its_line():
    [first], reports = failures(NanLayer)
    assert first.check == "finite" and "'h' is NaN" in first.message
    assert line(NanLayer.forward, "new_zeros") in first.message
    assert len(reports) > 5 and {r.fault for r in reports} == {first.fault}


def test_a_change_in_place_is_one_fault_with_its_line():
    [first], reports = failures(InPlaceLayer)
    assert first.check == "inputs_unchanged" and "'h'" in first.message
    assert line(InPlaceLayer.forward, "mul_") in first.message
    assert len(reports) > 1


def test_a_featurizer_of_distant_residues_has_test_proteins_with_edges():
    assert failures(FarChords) == ([], [])
    assert [len(FarChords()(residues).source) > 0 for residues in folded_proteins()] == [True, True]


def test_a_model_of_distant_residues_has_test_proteins_with_edges():
    pg.featurizers.register("far_chords_of_test", FarChords)
    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("gat", dim=8)]
    assert failures(pg.ModelSpec("m", features=["far_chords_of_test"], layers=layers)) == ([], [])


def test_a_featurizer_without_edges_is_one_fault_with_its_line():
    [first], reports = failures(NoChords)
    assert "46 residues" in first.message and "pg.Conformity(options=" in first.message
    assert line(FarChords.__call__, "def __call__") in first.message
    assert len(reports) > 5


@pytest.fixture
def inverse_square():
    """Register a featurizer that divides by zero where atoms coincide, and return it."""

    @pg.featurizers.register("inverse_square_of_test")
    class InverseSquare(pg.TensorFeaturizer):
        reads, writes = ("edge_dist",), ("edge_rbf_of_test",)

        def __call__(self, f):
            return {"edge_rbf_of_test": 1 / f["edge_dist"].square()}

    return InverseSquare


pg.register_field(pg.FieldSpec("edge_rbf_of_test", "edge", "1x0e", doc="1 / d²"))


def test_a_division_by_zero_in_a_featurizer_is_named(inverse_square):
    [first], _ = failures(inverse_square)
    assert first.check == "degenerate" and not first.message.rstrip().endswith("()")
    assert line(inverse_square.__call__, "square()") in first.message


def test_a_division_by_zero_in_a_model_is_named_with_its_featurizer(inverse_square):
    layers = [
        pg.component("embed", reads=["aatype"], dim=8),
        pg.component("embed", reads=["edge_rbf_of_test"], dim=4, writes={"h": "edge_attr"}),
        pg.component("gcn", dim=8),
        pg.component("gat", dim=8, reads={"edge_attr": "edge_attr"}),
    ]
    spec = pg.ModelSpec("m", features=["knn", "edge_distance", "inverse_square_of_test"], layers=layers)
    [first], reports = failures(spec)
    assert "NaN" in first.message or "infinite" in first.message
    assert "featurizer 'inverse_square_of_test'" in first.message and "test_fault_location.py:" in first.message
    assert not any("does not depend" in r.message or "()" in r.message or "; )" in r.message for r in reports)


def test_messages_of_a_component_with_one_wiring_have_no_empty_parentheses():
    class Zero(OwnLayer):
        def forward(self, f):
            return {"h": 0 * self.linear(f["h"])}

    _, reports = failures(Zero)
    assert reports and not any("()" in r.message or "; )" in r.message for r in reports)
