"""Published scales: values of each table, correlations, X and standardization."""

from __future__ import annotations

import pytest
import torch

from protgraph.errors import OptionError
from protgraph.featurize.residue_features import SCALES, Physicochemical
from protgraph.structure import ALPHABET


def table(*scales: str, **options) -> dict[str, list[float]]:
    f = {"aatype": torch.arange(len(ALPHABET))}
    rows = Physicochemical(scales=scales or tuple(SCALES), **options)(f)["physicochemical"]
    return dict(zip(ALPHABET, rows.tolist(), strict=True))


def test_values_of_the_published_tables():
    raw = table(standardize=False)
    assert raw["A"] == pytest.approx([1.28, 0.05, 1.00, 0.31, 6.11, 0.42, 0.23, 1.8, 0, 88.6, 8.1])
    assert raw["W"] == pytest.approx([3.21, 0.41, 8.08, 2.25, 5.94, 0.32, 0.42, -0.9, 0, 227.8, 5.4])
    hydropathy = table("kyte_doolittle", standardize=False)
    assert sorted(hydropathy, key=lambda a: -hydropathy[a][0])[:4] == list("IVLF")  # the order of their table
    assert hydropathy["R"] == [-4.5]
    charge = table("charge", standardize=False)
    assert {a: q[0] for a, q in charge.items() if q[0] and a != "X"} == {"D": -1, "E": -1, "K": 1, "R": 1}


def test_similar_scales_correlate():
    raw = torch.tensor([row for a, row in table(standardize=False).items() if a != "X"])
    correlation = torch.corrcoef(raw.T)
    assert correlation[2, 9] > 0.95  # Meiler's volume and Zamyatnin's
    assert correlation[3, 7] > 0.6  # Meiler's hydrophobicity and Kyte & Doolittle's
    assert correlation[7, 10] < -0.8  # hydropathy and polarity
    assert correlation[4, 8] > 0.9  # isoelectric point and charge


def test_standardized_columns_have_mean_0_and_deviation_1():
    features = table()
    rows = torch.tensor([row for a, row in features.items() if a != "X"])
    assert rows.mean(0).abs().max() < 1e-6
    assert (rows.std(0, correction=0) - 1).abs().max() < 1e-6
    assert features["X"] == pytest.approx([0.0] * 11)
    raw = table("volume", standardize=False)
    assert raw["X"][0] == pytest.approx(sum(v[0] for a, v in raw.items() if a != "X") / 20)


def test_columns_follow_the_requested_order():
    assert table("volume", "charge", standardize=False)["K"] == pytest.approx([168.6, 1])
    assert Physicochemical(scales=["meiler"]).out["physicochemical"].irreps == "7x0e"
    for wrong in (["size"], [], "meiler"):
        with pytest.raises(OptionError, match="kyte_doolittle"):
            Physicochemical(scales=wrong)
