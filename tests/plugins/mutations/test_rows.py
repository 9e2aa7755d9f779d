"""Rows of models of folding and of binding on structures with and without partners."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from protgraph_plugins.mutations import Mutation
from protgraph_plugins.mutations.bench import _check_binding
from protgraph_plugins.mutations.comparison import _means_of_pairs, mutation_rows

import protgraph as pg
from protgraph.errors import OptionError
from protgraph.structure import clean, load_structure

FOLDING, BINDING = 1.0, 5.0


class Folding:
    """Score of a variant = 1 for each mutation."""

    name, unit = "folding", "kcal/mol"

    def score(self, residues, variants):
        return np.array([FOLDING * len(variant) for variant in variants])


class Binding(Folding):
    """A model of binding, 5 for each mutation."""

    name = "binding"

    def score_binding(self, residues, variants):
        return np.array([BINDING * len(variant) for variant in variants])


@pytest.fixture
def dataset(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    chain, other = residues.chain_names[:2]
    row = next(r for r in range(len(residues)) if residues.chain[r] == chain and residues.sequence[r] not in "AX")
    mutation = Mutation(chain, int(residues.res_id[row]), "", residues.sequence[row], "A")
    text = str(mutation)
    columns = {"id": [text], "structure": ["s"], "mutations": [text], "split": ["test"], "row": ["1"], "value": [2.0]}
    example = SimpleNamespace(id=text, path=Path("structure.cif"))
    return SimpleNamespace(
        name="x",
        sign=1,
        table=pa.table(columns),
        tasks=lambda: ["t"],
        splits=lambda task: ["test"],
        examples=lambda task, split: [example],
        target=lambda task: SimpleNamespace(unit="kcal/mol"),
        read=lambda example: residues,
        mutations=lambda example: (mutation,),
        partners=lambda structure: ((chain,), (other,)),
    )


def test_models_of_folding_have_two_rows_and_models_of_binding_one(dataset):
    found = mutation_rows(dataset, "test", [Folding(), Binding()])
    values = {name: p.tolist() for name, p in found.predictions.items()}
    assert values == {"folding": [FOLDING], "folding, complex − partners": [0.0], "binding": [BINDING]}
    assert found.units == dict.fromkeys(values, "kcal/mol")


def test_models_of_binding_do_not_score_structures_without_partners(dataset):
    dataset.partners = lambda structure: None
    assert list(mutation_rows(dataset, "test", [Folding(), Binding()]).predictions) == ["folding"]


def test_only_models_of_binding_for_a_set_without_partners_are_an_error():
    sets = [pg.datasets.get(name)(folder="unused") for name in ("ddg_binding", "ddg_s461")]
    with pytest.raises(OptionError, match="ddg_s461"):
        _check_binding([Binding()], sets)
    _check_binding([Binding(), Folding()], sets)
    _check_binding([Binding()], sets[:1])


def test_the_floor_is_the_mean_of_train_of_each_pair_of_types(dataset):
    test = Mutation("A", 1, "", "G", "D"), Mutation("A", 2, "", "L", "P")
    measured = {"G1D": 1.0, "G5D": 2.0, "L3P": 4.0, "V4A+G1D": 9.0, "W9A": -1.0}
    mutations = {"test": test, "other": (Mutation("A", 7, "", "K", "E"),)}
    mutations |= {text: tuple(Mutation("A", int(m[1]), "", m[0], m[2]) for m in text.split("+")) for text in measured}
    examples = {"train": [SimpleNamespace(id=name) for name in measured]}
    examples["test"] = [SimpleNamespace(id=name) for name in ("test", "other")]
    dataset.examples = lambda task, split: examples[split]
    dataset.mutations = lambda example: mutations[example.id]
    dataset.labels = lambda task, example: SimpleNamespace(value=np.float32([measured[example.id]]))
    assert _means_of_pairs(dataset, "t", examples["test"]).tolist() == [1.5 + 4.0, 1.5]
