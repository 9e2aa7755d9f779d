"""Trained scorers ``ddg`` and ``ddg_binding``: recorded values, antisymmetry, partners, cards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.ddg.trained_scorers import TrainedBindingScorer, TrainedMutationScorer
from protgraph_plugins.mutations import (
    BindingScorer,
    EnsembleScorer,
    Mutation,
    mutation_graph,
    parse_mutations,
    score_column,
    sign_convention,
)
from protgraph_plugins.recipes import Recipe, card_page
from protgraph_plugins.trained.registered import DDG, DDG_BINDING

from protgraph import registry
from protgraph.data.graph import collate
from protgraph.errors import CheckpointError, MutationError, OptionError, SelectionError
from protgraph.structure import clean, load_structure

FOLDING = {"A:L67A": 2.7780, "A:I44A": 2.4746, "A:K48R": -0.2319, "A:G47W": 0.2965, "A:L67A+A:I44A": 5.0560}
BINDING = {"A:T152A": 1.292, "B:K136A": 0.746, "B:C231W": -0.642, "A:P142A+B:K136A": 0.112}


@pytest.fixture(scope="module")
def ubiquitin(structures_dir):
    return clean(load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def folding(proteinmpnn_folder):
    return registry.mutation_scorers.create("ddg", options={"device": "cpu"})


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


@pytest.mark.slow
def test_values_are_those_that_were_recorded(folding, ubiquitin, scorer, complex_):
    for model, residues, recorded in ((folding, ubiquitin, FOLDING), (scorer, complex_, BINDING)):
        found = model.score(residues, [parse_mutations(text) for text in recorded])
        np.testing.assert_allclose(found, list(recorded.values()), atol=2e-3)


def test_values_of_folding_do_not_depend_on_other_variants_and_the_wild_type_has_zero(folding, ubiquitin):
    variants = [parse_mutations(text) for text in ("A:I44A", "A:I44W", "A:K48R", "WT", "A:I44I", "A:I44A")]
    together = folding.score(ubiquitin, variants)
    np.testing.assert_allclose(together, [folding.score(ubiquitin, [v])[0] for v in variants], atol=1e-5)
    assert together[3] == together[4] == 0 and together[0] == together[5] and together[0] != together[1]
    assert (folding.name, folding.unit) == ("ddg", "kcal/mol")


def test_values_of_binding_do_not_depend_on_other_variants_and_the_wild_type_has_zero(scorer, complex_):
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


def test_an_ensemble_of_scores_of_binding_is_one_of_binding(scorer, folding, complex_):
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


@pytest.mark.parametrize("scorer_class", [TrainedMutationScorer, TrainedBindingScorer])
def test_a_checkpoint_of_another_task_is_refused(scorer_class):
    path = registry.trained_models.get("ppi_site").folder / "model.safetensors"
    with pytest.raises(CheckpointError, match="mutation"):
        scorer_class(weights=str(path))


@pytest.mark.parametrize(("model", "task"), [(DDG, "ddg_stability"), (DDG_BINDING, "ddg_binding")])
def test_card_recipe_and_weights_agree(model, task):
    card, recipe, checkpoint = model.card(), Recipe.from_toml(model.recipe), model.checkpoint()
    assert card.name == recipe.name == model.folder.name and card.task == checkpoint.task == task
    assert len(card.members) == len(checkpoint.members) == len(recipe.models) * len(recipe.seeds)
    assert (model.folder / "README.md").read_text(encoding="utf-8") == card_page(card)
    assert (model.folder / "model.safetensors").stat().st_size <= 3_000_000


def test_cards_have_the_scores_of_all_tests():
    assert {"val", "test", "ddg_ssym_direct", "ddg_ssym_reverse", "ddg_s461_test"} <= DDG.card().splits.keys()
    binding = DDG_BINDING.card()
    assert {"val", "test"} <= binding.splits.keys() and any("cross-validation" in limit for limit in binding.limits)
