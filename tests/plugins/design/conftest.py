"""Fixtures: a protein with two chains and insertion codes, and a small model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.data.datasets.target import Target
from protgraph.model import build_model
from protgraph.structure import ALPHABET
from tests.train.conftest import small

__all__ = ["small"]


@pytest.fixture(scope="session")
def two_chains(structures_dir):
    """Chains A and B of 10 and 9 residues, numbers 1 to 9 with 5A between 5 and 6; B lacks the last one."""
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    whole = whole.select(np.arange(len(whole)) < 19)
    number = np.array([1, 2, 3, 4, 5, 5, 6, 7, 8, 9] * 2)[:19]
    code = np.where(np.arange(20) % 10 == 5, "A", "")[:19]
    return replace(whole, chain=np.repeat(["A", "B"], 10)[:19], res_id=number, ins_code=code)


@pytest.fixture(scope="session")
def model():
    """A small model of 21 types in float64; tests do not change it."""
    target = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))
    network = build_model("proteinmpnn.small", target, seed=0).double().eval()
    with torch.no_grad():  # random weights give nearly uniform probabilities; sharpen them
        network.head.mlp[0].weight.mul_(8)
    return network
