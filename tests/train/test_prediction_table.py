"""Tables of predictions: short text, columns, data frames, Arrow, files, and values per residue."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, UnknownNameError
from protgraph.inference import Predictions, predict
from protgraph.inference.prediction_table import choose_value, prediction_columns


@pytest.fixture(scope="module")
def predictions(trained, structures_dir):
    return predict(trained.checkpoint(), [structures_dir / "1ubq.bcif", structures_dir / "1orc.bcif"], device="cpu")


def test_the_text_of_a_large_table_is_short(predictions):
    text = repr(predictions).splitlines()
    assert text[0] == f"Predictions({len(predictions)} rows of 2 files)"
    assert text[1].split() == list(predictions.columns)
    assert len(text) == 8 and text[-1] == f"… {len(predictions) - 5} more rows"
    assert all(len(line) < 120 for line in text)


def test_frame_and_arrow_have_the_rows(predictions):
    frame = predictions.to_frame()
    assert tuple(frame.columns) == predictions.columns and len(frame) == len(predictions)
    assert [tuple(row) for row in frame.itertuples(index=False)] == predictions.rows
    assert frame["p_yes"].dtype == np.float64 and frame["res_id"].dtype == np.int64
    table = predictions.to_arrow()
    assert [tuple(row.values()) for row in table.to_pylist()] == predictions.rows


def test_a_column_by_name(predictions):
    assert predictions.column("p_yes").tolist() == [row[-1] for row in predictions.rows]
    with pytest.raises(UnknownNameError, match="'p_yes'"):
        predictions.column("p_yse")


def test_parquet_and_csv_files_have_the_same_table(predictions, tmp_path):
    pd.testing.assert_frame_equal(pq.read_table(predictions.write(tmp_path / "a.parquet")).to_pandas(),
                                  predictions.to_frame(), check_dtype=False)  # fmt: skip
    csv = pd.read_csv(predictions.write(tmp_path / "a.csv"), keep_default_na=False)
    assert csv["p_yes"].astype(np.float32).tolist() == predictions.column("p_yes").astype(np.float32).tolist()
    with pytest.raises(OptionError, match="a.xlsx"):
        predictions.write(tmp_path / "a.xlsx")


def test_values_per_residue_by_file(predictions, structures_dir):
    values = predictions.residue_values()
    assert list(values) == [str(structures_dir / "1ubq.bcif"), str(structures_dir / "1orc.bcif")]
    own = values[str(structures_dir / "1ubq.bcif")]
    assert own.name == "p_yes" and own.is_probability and "model tiny" in own.origin
    assert own.values.tolist() == predictions.column("p_yes")[:76].tolist()
    confidence = predictions.residue_values("confidence")[str(structures_dir / "1ubq.bcif")]
    both = np.stack([predictions.column(name) for name in ("p_no", "p_yes")])
    assert confidence.values.tolist() == both.max(0)[:76].tolist()
    classes = predictions.residue_values("predicted")[str(structures_dir / "1ubq.bcif")]
    assert classes.classes == ("no", "yes") and not classes.is_probability
    assert classes.values.tolist() == both.argmax(0)[:76].tolist()


@pytest.mark.parametrize(
    "target, name, probability",
    [
        (Target("site", "node", "multilabel", 1, ("site",)), "p_site", True),
        (Target("tm", "node", "regression", 1), "tm", False),
        (Target("state", "node", "classification", 2, ("off", "on")), "p_on", True),
        (Target("ss", "node", "classification", 3, ("H", "E", "C")), "confidence", True),
    ],
)
def test_the_default_value(target, name, probability):
    chosen = choose_value(target)
    assert (chosen.name, chosen.is_probability) == (name, probability)


def test_a_value_without_default_must_be_named():
    several = Target("site", "node", "multilabel", 2, ("zinc", "iron"))
    for name in (None, "p_zink"):
        with pytest.raises(OptionError, match="p_zinc, predicted_zinc, p_iron, predicted_iron"):
            choose_value(several, name)
    with pytest.raises(OptionError, match="Did you mean 'p_zinc'"):
        choose_value(several, "p_zink")
    assert not choose_value(several, "predicted_iron").is_probability
    vectors = Target("force", "node", "vectors", 1)
    assert prediction_columns(vectors) == ("force_x", "force_y", "force_z")
    with pytest.raises(OptionError, match="force_y"):
        choose_value(vectors)
    assert choose_value(vectors, "force_y").name == "force_y"


@pytest.mark.parametrize("level, kind, what", [("graph", "regression", "protein"), ("pair", "multilabel", "pair")])
def test_predictions_of_other_levels_have_no_value_per_residue(level, kind, what):
    with pytest.raises(OptionError, match=f"per {what}"):
        choose_value(Target("x", level, kind, 1))


def test_means_per_file_are_of_values_only(predictions):
    target = Target("quality", "node", "regression", 2, ("a", "b"))
    rows = [("x.pdb", "A", 1, "", "GLY", 0.5, 1.0), ("y.pdb", "A", 1, "", "GLY", 0.25, 2.0)]
    rows.append(("x.pdb", "B", 1, "", "ALA", 1.0, 4.0))
    columns = ("file", "chain", "res_id", "ins_code", "res_name", "a", "b")
    table = Predictions(columns, rows, [], target)
    assert table.file_means() == {"x.pdb": (2, (0.75, 2.5)), "y.pdb": (1, (0.25, 2.0))}
    with pytest.raises(OptionError, match="per node"):
        predictions.file_means()
