"""Labels of a table as colors: values by residue, the choice of a column, and agreement with predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import protgraph as pg
from protgraph.errors import LabelError
from protgraph.structure import Residues
from protgraph.visualization import Color, agreement, label_color


@pytest.fixture(scope="module")
def residues(structures_dir: Path) -> Residues:
    return pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))


def write_labels(folder: Path, *columns: str) -> Path:
    """Write yes/no labels of residues 1 to 40 of crambin, yes for even numbers, and of a residue 900."""
    rows = [f"1crn,A,{i}{f',{1 - i % 2}' * len(columns)}" for i in (*range(1, 41), 900)]
    (folder / "labels.csv").write_text("\n".join([f"file,chain,res_id,{','.join(columns)}", *rows]) + "\n")
    return folder / "labels.csv"


def test_labels_are_those_of_the_residues_and_missing_ones_are_nan(residues: Residues, tmp_path: Path) -> None:
    color, notes = label_color(write_labels(tmp_path, "site"), residues)
    np.testing.assert_array_equal(color.values, [*((1 - np.arange(1, 41) % 2).tolist()), *[np.nan] * 6])
    assert (color.name, color.labels) == ("site", ("no", "yes"))
    assert len(notes) == 1 and "A:900" in notes[0]


def test_one_of_several_columns_has_to_be_chosen(residues: Residues, tmp_path: Path) -> None:
    table = write_labels(tmp_path, "site", "exposed")
    with pytest.raises(LabelError) as caught:
        label_color(table, residues)
    message = str(caught.value)
    assert "site, exposed" in message and "--label (label=)" in message
    assert "--task" not in message and "columns=" not in message
    assert label_color(table, residues, column="exposed")[0].name == "exposed"


def test_agreement_has_the_four_cases_of_yes_no_labels() -> None:
    label = Color("site", np.array([0, 0, 1, 1, np.nan]), ("no", "yes"))
    predicted = Color("predicted", np.array([0.0, 1, 0, 1, 1]))
    found = agreement(label, [predicted])
    texts = [found.value_text(i) for i in range(5)]
    assert texts == ["true negative", "false positive", "false negative", "true positive", "none"]
    assert agreement(label, [Color("p_site", np.zeros(5))]) is None
