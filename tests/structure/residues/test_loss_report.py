"""Loss reports: merging, text and JSON."""

from __future__ import annotations

import json

import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import LossReport

ONE = LossReport(models=3, waters=2, ligands={"HEM": 1, "GOL": 2}, warnings=("a",))
TWO = LossReport(waters=5, ligands={"HEM": 4, "ZN": 1}, gaps=1, warnings=("a", "b"))


def test_merge_adds_counts_and_keeps_each_warning_once():
    both = ONE.merge(TWO)
    assert (both.models, both.waters, both.gaps) == (3, 7, 1)
    assert both.ligands == {"HEM": 5, "GOL": 2, "ZN": 1}
    assert both.warnings == ("a", "b")


def test_merge_of_several_equals_merging_one_after_the_other():
    assert ONE.merge(TWO, LossReport(), ONE) == ONE.merge(TWO).merge(LossReport()).merge(ONE)
    assert ONE.merge() == ONE


def test_merge_does_not_change_its_inputs():
    ONE.merge(TWO)
    assert ONE.ligands == {"HEM": 1, "GOL": 2} and ONE.waters == 2


def test_merge_with_an_empty_report_is_the_identity():
    assert ONE.merge(LossReport()) == ONE == LossReport().merge(ONE)


def test_report_survives_json():
    assert LossReport.from_dict(json.loads(json.dumps(TWO.to_dict()))) == TWO
    assert LossReport().to_dict() == {}


def test_from_dict_raises_for_unknown_entries():
    with pytest.raises(StructureFileError, match="'helices'"):
        LossReport.from_dict({"helices": 1})


def test_lines_name_everything_that_is_not_zero():
    assert ONE.lines() == [
        "3 other models left out",
        "2 water molecules left out",
        "3 other molecules left out (GOL 2, HEM 1)",
        "1 warning of the parser: a",
    ]
    assert LossReport().lines() == []
    assert LossReport(ligands={"NA": 1}, waters=1).lines() == [
        "1 water molecule left out",
        "1 other molecule left out (NA 1)",
    ]
