"""Predictions per interface: means over residues in contact, sums over pairs of chains."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.inference import Predictions
from protgraph.inference.prediction_table import interface_table, pooled_columns
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.compare import chain_interfaces

SITE = Target("site", "node", "multilabel", 1, ("site",))
KEYS = ("file", "chain", "res_id", "ins_code", "res_name")


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1jk9.bcif"))


def predicted(path, residues: Residues, values: np.ndarray) -> Predictions:
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    rows = [(str(path), *key, "GLY", float(p), 1) for key, p in zip(keys, values, strict=True)]
    return Predictions((*KEYS, "p_site", "predicted_site"), rows, [], SITE)


def test_the_mean_is_over_residues_in_contact(residues, structures_dir):
    values = np.random.default_rng(0).random(len(residues))
    table = interface_table(predicted(structures_dir / "1jk9.bcif", residues, values))
    interfaces = chain_interfaces(residues)
    assert len(table) == len(interfaces) > 2
    for row, interface in zip(table.rows, interfaces, strict=True):
        cells = dict(zip(table.columns, row, strict=True))
        first, second = interface.residues
        assert (cells["chain_1"], cells["chain_2"]) == interface.chains
        assert (cells["residues_1"], cells["residues_2"]) == (len(first), len(second))
        assert cells["contacts"] == interface.pairs.shape[1]
        assert cells["p_site_1"] == pytest.approx(values[first].mean())
        assert cells["p_site_2"] == pytest.approx(values[second].mean())
        assert cells["p_site"] == pytest.approx(values[np.r_[first, second]].mean())


def test_residues_without_a_prediction_are_not_pooled(residues, structures_dir):
    part = residues.select(residues.chain == "A")
    table = interface_table(predicted(structures_dir / "1jk9.bcif", part, np.ones(len(part))))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["chain_1"] == "A" and row["p_site_1"] == row["p_site"] == 1 and np.isnan(row["p_site_2"])


def test_pairs_are_summed_per_pair_of_chains_without_the_file():
    target = Target("contact", "pair", "multilabel", 1, ("contact",))
    sides = [tuple(f"{key}_{side}" for key in KEYS[1:]) for side in (1, 2)]
    chains = [("A", "B", 0.5), ("A", "B", 0.25), ("A", "A", 0.9), ("A", "C", 0.125), ("B", "C", 1.0)]
    rows = [("no.pdb", a, 1, "", "GLY", b, 9, "", "ALA", p, 0) for a, b, p in chains]
    columns = ("file", *sides[0], *sides[1], "p_contact", "predicted_contact")
    table = interface_table(Predictions(columns, rows, [], target))
    assert table.columns == ("file", "chain_1", "chain_2", "pairs", "sum_p_contact", "max_p_contact")
    assert table.rows == [
        ("no.pdb", "A", "B", 2, 0.75, 0.5),
        ("no.pdb", "A", "C", 1, 0.125, 0.125),
        ("no.pdb", "B", "C", 1, 1.0, 1.0),
    ]


@pytest.mark.parametrize("target", [Target("y", "graph", "regression", 1), Target("v", "node", "vectors", 1)])
def test_other_predictions_have_no_interfaces(target):
    with pytest.raises(OptionError, match=target.level):
        pooled_columns(target, ("y",))
