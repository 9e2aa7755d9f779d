"""Trained model ``ddg``: recorded values, antisymmetry, single mutations as in a scan, card."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.ddg.trained_scorer import DDG_MODEL, TrainedMutationScorer

from protgraph import registry
from protgraph.errors import CheckpointError
from protgraph.recipes import Recipe
from protgraph.recipes.card import card_page
from protgraph.structure import clean, load_structure
from protgraph.structure.mutation import parse_mutations

RECORDED = {"A:L67A": 2.7780, "A:I44A": 2.4746, "A:K48R": -0.2319, "A:G47W": 0.2965, "A:L67A+A:I44A": 5.0560}


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return clean(load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def scorer(proteinmpnn_folder):
    return registry.mutation_scorers.create("ddg", options={"device": "cpu"})


def test_values_are_those_that_were_recorded(scorer, ubiquitin):
    found = scorer.score(ubiquitin, [parse_mutations(text) for text in RECORDED])
    np.testing.assert_allclose(found, list(RECORDED.values()), atol=2e-3)


def test_values_do_not_depend_on_other_variants_and_the_wild_type_has_zero(scorer, ubiquitin):
    variants = [parse_mutations(text) for text in ("A:I44A", "A:I44W", "A:K48R", "WT", "A:I44I", "A:I44A")]
    together = scorer.score(ubiquitin, variants)
    np.testing.assert_allclose(together, [scorer.score(ubiquitin, [v])[0] for v in variants], atol=1e-5)
    assert together[3] == together[4] == 0 and together[0] == together[5] and together[0] != together[1]
    assert (scorer.name, scorer.unit) == ("ddg", "kcal/mol")


def test_a_checkpoint_of_another_task_is_refused():
    path = registry.trained_models.get("ppi_site").folder / "model.safetensors"
    with pytest.raises(CheckpointError, match="mutation"):
        TrainedMutationScorer(weights=str(path))


def test_card_recipe_and_weights_agree():
    card, recipe, checkpoint = DDG_MODEL.card(), Recipe.from_toml(DDG_MODEL.recipe), DDG_MODEL.checkpoint()
    assert card.name == recipe.name == "ddg" and card.task == checkpoint.task == "ddg_stability"
    assert len(card.members) == len(checkpoint.members) == len(recipe.models) * len(recipe.seeds)
    assert (DDG_MODEL.folder / "README.md").read_text(encoding="utf-8") == card_page(card)
    assert {"val", "test", "ddg_ssym_direct", "ddg_ssym_reverse", "ddg_s461_test"} <= card.splits.keys()
    assert (DDG_MODEL.folder / "model.safetensors").stat().st_size <= 3_000_000
