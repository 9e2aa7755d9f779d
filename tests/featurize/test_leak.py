"""Featurizers do not depend on information that a task hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph import featurizers
from protgraph.errors import AlignmentError, MissingCoordinatesError
from protgraph.structure import Residues
from protgraph.structure.residues.residues import BACKBONE, HIDEABLE
from protgraph.testing.protein_fixtures import make_alignment

READ_ALIGNMENTS = sorted(name for name in featurizers.names() if featurizers.get(name).needs_alignment)
NAMES = sorted(set(featurizers.names()) - set(READ_ALIGNMENTS))


def altered(residues: Residues) -> Residues:
    """Return the same backbone with other residue types, B factors and side chains."""
    rng = np.random.default_rng(0)
    sidechain = ~np.isin(residues.atom_name, BACKBONE)
    keep = ~(sidechain & (rng.random(len(sidechain)) < 0.5))
    atom_pos = residues.atom_pos + sidechain[:, None] * rng.normal(size=residues.atom_pos.shape).astype(np.float32)
    return replace(
        residues,
        aatype=rng.integers(0, 20, len(residues)),
        res_name=rng.choice(["GLY", "TRP"], len(residues)),
        b_factor=rng.random(len(residues)).astype(np.float32),
        atom_pos=atom_pos[keep],
        atom_name=residues.atom_name[keep],
        atom_element=residues.atom_element[keep],
        atom_residue=residues.atom_residue[keep],
    )


def tensors(plan, residues: Residues) -> dict[str, torch.Tensor]:
    return {k: v for k, v in plan.featurize(plan.precompute(residues)).items() if isinstance(v, torch.Tensor)}


def differing(plan, a: Residues, b: Residues) -> set[str]:
    ours, theirs = tensors(plan, a), tensors(plan, b)
    assert ours.keys() == theirs.keys()
    return {k for k in ours if not torch.equal(ours[k].nan_to_num(), theirs[k].nan_to_num())}


@pytest.mark.parametrize("name", NAMES)
def test_features_do_not_depend_on_hidden_information(proteins, plan_of, name):
    for residues in proteins[:6]:
        hidden = HIDEABLE - {"coordinates"}
        assert differing(plan_of(name), residues.hide(hidden), altered(residues).hide(hidden)) == set()


@pytest.mark.parametrize("name", READ_ALIGNMENTS)
def test_an_alignment_is_not_read_where_residue_types_are_hidden(proteins, plan_of, name):
    aligned = replace(proteins[0], alignment=make_alignment(proteins[0].aatype, seed=0))
    with pytest.raises(AlignmentError):
        plan_of(name).precompute(aligned.hide("residue_type"))


@pytest.mark.parametrize("name", NAMES)
def test_hidden_coordinates_have_no_effect_or_raise(proteins, plan_of, name):
    plan, residues = plan_of(name), proteins[0]
    moved = replace(
        residues,
        pos=residues.pos * 1.1,
        backbone=residues.backbone[:, ::-1].copy(),
        atom_pos=-residues.atom_pos,
        b_factor=residues.b_factor + 1,
    )
    if plan.needs_coordinates is None:
        assert differing(plan, residues.hide("coordinates"), moved.hide("coordinates")) == set()
    else:
        with pytest.raises(MissingCoordinatesError, match=residues.name):
            plan.precompute(residues.hide("coordinates"))


@pytest.mark.parametrize(
    ("name", "field"), [("residue_one_hot", "residue_one_hot"), ("b_factor", "b_factor"), ("contact", "edge_index")]
)
def test_the_alteration_changes_features_if_nothing_is_hidden(proteins, plan_of, name, field):
    assert field in differing(plan_of(name), proteins[0], altered(proteins[0]))


@pytest.mark.parametrize(("what", "field"), [("residue_type", "aatype"), ("b_factor", "b_factor")])
def test_hiding_one_field_leaves_the_others(proteins, plan_of, what, field):
    shown, hidden = proteins[0], proteins[0].hide({what})
    assert differing(plan_of("b_factor"), shown, hidden) == {field}
