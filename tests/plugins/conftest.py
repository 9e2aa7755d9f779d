"""One real protein for model families, and the same in another place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import protgraph as pg


@pytest.fixture(scope="session")
def residues(structures_dir):
    """Ubiquitin, 76 residues."""
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="session")
def moved():
    """``moved(residues, q, shift)``: the protein turned by q ``(3, 3)`` and shifted; coordinates are float64."""

    def move(residues, q, shift):
        q, shift = np.asarray(q), np.asarray(shift)
        names = ("pos", "backbone", "atom_pos")
        return replace(residues, **{n: getattr(residues, n).astype("f8") @ q.T + shift for n in names})

    return move
