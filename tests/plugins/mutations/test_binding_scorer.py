"""Scores of binding: the complex minus its partners."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.mutations import (
    BindingScorer,
    Mutation,
    find_residues,
    is_binding_model,
    score_column,
    sign_convention,
)

from protgraph.errors import SelectionError
from protgraph.structure import clean, load_structure


class ContactScorer:
    """Score of a variant = CA atoms within 10 Å of its mutated residues, without those of the residues themselves."""

    name, unit = "contacts", "kcal/mol"

    def score(self, residues, variants):
        near = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1) < 10
        return np.array([float((near[find_residues(residues, v)].sum(1) - 1).sum()) for v in variants])


@pytest.fixture(scope="module")
def complex_(structures_dir):
    residues = clean(load_structure(structures_dir / "1jk9.bcif"))
    assert len(residues.chain_names) >= 2
    return residues.chains(list(residues.chain_names[:2]))


def variant_of(residues, *rows):
    letters = residues.sequence
    return tuple(
        Mutation(str(residues.chain[r]), int(residues.res_id[r]), str(residues.ins_code[r]), letters[r], "A")
        for r in rows
    )


def test_the_score_is_what_the_other_partner_adds(complex_):
    """Contacts with the other chain, counted directly."""
    first, second = complex_.chain_names
    scorer = BindingScorer(ContactScorer(), [(first,), (second,)])
    near = np.linalg.norm(complex_.pos[:, None] - complex_.pos, axis=-1) < 10
    between = (near & (complex_.chain[:, None] != complex_.chain)).sum(1)
    usable = [r for r in range(len(complex_)) if complex_.sequence[r] not in "AX"]
    rows = [*sorted(usable, key=lambda r: -between[r])[:3], next(r for r in usable if not between[r])]
    a, b = (next(r for r in usable if complex_.chain[r] == name and between[r]) for name in (first, second))
    variants = [*(variant_of(complex_, r) for r in rows), variant_of(complex_, a, b), ()]
    want = [*between[rows], between[a] + between[b], 0]
    np.testing.assert_allclose(scorer.score(complex_, variants), want)
    assert want[0] > 0 and want[3] == 0
    assert score_column(scorer) == "ddg_binding_kcal_mol" and "weaker binding" in sign_convention(scorer)


def test_other_chains_are_not_read(complex_, structures_dir):
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    first, second = complex_.chain_names
    scorer = BindingScorer(ContactScorer(), [(first,), (second,)])
    row = next(r for r in range(len(complex_)) if complex_.sequence[r] not in "AX")
    variants = [variant_of(complex_, row)]
    np.testing.assert_array_equal(scorer.score(whole, variants), scorer.score(complex_, variants))
    other = next(r for r in range(len(whole)) if whole.chain[r] not in (first, second) and whole.sequence[r] != "X")
    with pytest.raises(SelectionError, match="no partner"):
        scorer.score(whole, [variant_of(whole, other)])


class InterfaceScorer(ContactScorer):
    """A model of binding: mutated residues within 10 Å of another partner, and the partners that it was given."""

    name, convention, column = "interface", "ΔΔG of binding", "ddg_binding_kcal_mol"

    def score_binding(self, residues, variants):
        self.partners = residues.partners
        near = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1) < 10
        near = (near & (residues.side[:, None] != residues.side)).any(1)
        return np.array([float(near[find_residues(residues, v)].sum()) for v in variants])


def test_a_model_of_binding_is_not_subtracted_and_gets_the_partners(structures_dir, complex_):
    whole = clean(load_structure(structures_dir / "1jk9.bcif"))
    first, second, third = whole.chain_names[:3]
    row = next(r for r in range(len(complex_)) if complex_.sequence[r] not in "AX")
    model = InterfaceScorer()
    for partners in ([(first,), (second,)], [(first, third), (second,)]):
        scorer = BindingScorer(model, partners)
        variants = [variant_of(whole, row), ()]
        values = scorer.score(whole, variants)
        assert model.partners == tuple(partners)
        alone = replace(whole.chains([name for names in partners for name in names]), partners=tuple(partners))
        assert values.tolist() == model.score_binding(alone, variants).tolist()
        assert (scorer.name, scorer.unit, scorer.column) == ("interface", "kcal/mol", "ddg_binding_kcal_mol")
        assert scorer.convention == "ΔΔG of binding"
    assert is_binding_model(model) and not is_binding_model(ContactScorer())


@pytest.mark.parametrize("partners", [[("A",)], [("A",), ("A",)], [("A",), ()], []])
def test_invalid_partners_are_an_error(partners):
    with pytest.raises(SelectionError, match="invalid partners"):
        BindingScorer(ContactScorer(), partners)
