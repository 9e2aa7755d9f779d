"""The descriptor page names existing featurizers and fields."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from protgraph import featurizers
from protgraph.featurize import EdgeFeaturizer

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "descriptors.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`[^|]+`) \| (`[^|]+) \| (?:category|[^|]*0e|[^|]*1o)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_a_row_names_existing_featurizers_and_fields(row):
    names, fields = (re.findall(r"`([a-z_0-9]+)`", cell) for cell in row)
    written = {field for name in names for field in featurizers.get(name).writes}
    named = {f for f in fields if not f.startswith("_")}
    assert named == {f for f in written if not f.endswith("_mask")}
    assert any(f.endswith("_mask") for f in written) == ("_mask" in fields)
    assert not any(issubclass(featurizers.get(name), EdgeFeaturizer) for name in names)


def test_the_page_has_rows():
    assert len(ROWS) >= 30
