"""Attribute files of ChimeraX."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure.io import ResidueValues, write_defattr


@pytest.fixture
def values() -> ResidueValues:
    columns = (np.array(["H", "H", "L"]), np.array([100, 100, -3]), np.array(["", "B", ""]), np.array(["GLY"] * 3))
    return ResidueValues("p_H", *columns, np.array([0.25, 0.5, np.nan]), True, (), ("model gcn",))


def test_attributes_follow_the_published_format(values, tmp_path):
    lines = write_defattr(tmp_path / "a.defattr", {"dir/1abc.cif": values}).read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    rest = lines[len(comments) :]
    assert "# model gcn" in comments
    assert rest[:3] == ["attribute: p_H", "match mode: 1-to-1", "recipient: residues"]
    assert rest[3:] == ["\t/H:100\t0.25", "\t/H:100B\t0.5"]


def test_several_files_are_numbered_models(values, tmp_path):
    other = replace(values, name="p_H", chain=np.array(["", "", ""]))
    lines = write_defattr(tmp_path / "a.defattr", {"a.cif": values, "b.cif": other}).read_text().splitlines()
    assert "# #2 = b.cif" in lines and lines.count("recipient: residues") == 1
    assert [line for line in lines if line.startswith("\t#2")] == ["\t#2:100\t0.25", "\t#2:100B\t0.5"]


@pytest.mark.parametrize("classes, text", [((), "1.0"), (("no", "yes"), "1")])
def test_numbers_have_a_decimal_point_and_classes_do_not(values, tmp_path, classes, text):
    own = replace(values, values=np.ones(3), classes=classes)
    assert write_defattr(tmp_path / "a.defattr", {"a.cif": own}).read_text().endswith(f"\t/L:-3\t{text}\n")


@pytest.mark.parametrize("name, attribute", [("p_α", "p__"), ("Zn", "value_Zn"), ("0", "value_0"), ("a b", "a_b")])
def test_attribute_names_have_allowed_characters(values, tmp_path, name, attribute):
    text = write_defattr(tmp_path / "a.defattr", {"a.cif": replace(values, name=name)}).read_text()
    assert re.search(r"^attribute: (.*)$", text, re.M)[1] == attribute
