"""Fixtures: a dataset of twelve chains, a small model, and a trained model."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from protgraph.data.datasets.card import parse_card
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels
from protgraph.model import ModelSpec
from protgraph.registry.component import component
from protgraph.structure import Residues, clean, load_structure
from protgraph.train import FitConfig

CHAINS = {
    "train": ("1crn_A", "2erl_A", "1d3z_A", "1bo0_A", "1fas_A", "1hf9_A", "1hf9_B", "1ubq_A"),
    "val": ("1a8o_A", "1y0m_A"),
    "test": ("1orc_A", "5pti_A"),
}


@cache
def read(path: Path) -> Residues:
    return clean(load_structure(path))


class Small(Dataset):
    """Twelve chains with helix (classes), buried (yes/no labels), size (one value per protein) and inverse_folding."""

    def __init__(self, folder: Path, chains: dict[str, tuple[str, ...]] | None = None) -> None:
        chains = CHAINS if chains is None else chains
        self._examples = [
            Example(name, folder / f"{name[:4]}.bcif", (name[5:],), split) for split in chains for name in chains[split]
        ]
        counts = {split: {"proteins": len(names), "residues": 0} for split, names in chains.items()}
        rest = {"labels": "", "examples": "", "splits": counts, "level": "node"}
        self.card = parse_card(
            {
                "name": "small",
                "version": "1",
                "license": "CC0",
                "citation": "",
                "description": "",
                "splits": {"rule": "by hand", **counts},
                "tasks": {
                    "helix": {**rest, "kind": "classification", "names": ["no", "yes"]},
                    "buried": {**rest, "kind": "multilabel", "size": 1},
                    "size": {**rest, "kind": "regression", "size": 1, "level": "graph"},
                    "inverse_folding": {**rest, "kind": "classification", "size": 20},
                },
            }
        )

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        self._task(task)
        return [e for e in self._examples if split in (None, e.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        if task == "inverse_folding":
            return None
        if not example.path.is_file():
            return ProteinLabels(0.0)
        r = read(example.path).chains(example.chains)
        if task == "size":
            return ProteinLabels(len(r) / 100)
        values = self.helix(r) if task == "helix" else self.buried(r)
        return ResidueLabels(r.chain, r.res_id, r.ins_code, values, name=example.id)

    @staticmethod
    def helix(residues: Residues) -> np.ndarray:
        """Return 1 where the CA atoms of residues i and i + 3 are within 6 Å, as in a helix; −1 for the last three."""
        y = np.full(len(residues), -1)
        y[:-3] = np.linalg.norm(residues.pos[3:] - residues.pos[:-3], axis=1) < 6
        return y

    @staticmethod
    def buried(residues: Residues) -> np.ndarray:
        """Return 1 where more than 14 other CA atoms are within 10 Å."""
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos[None], axis=-1)
        return ((distance < 10).sum(1) - 1 > 14).astype(np.float32)


@pytest.fixture(scope="session")
def small(structures_dir) -> Small:
    return Small(structures_dir)


def tiny_spec(dropout: float) -> ModelSpec:
    """Return two graph convolutions over the eight nearest residues."""
    block = [component("gcn", dim=16, writes={"h": "m"}), component("residual", dropout=dropout, reads={"update": "m"})]
    embed = component("embed", reads=["aatype", "dihedral"], dim=16)
    return ModelSpec("tiny", features=["dihedral", component("knn", k=8)], layers=[embed, *2 * block])


@pytest.fixture(scope="session")
def tiny() -> ModelSpec:
    return tiny_spec(dropout=0.1)


@pytest.fixture(scope="session")
def quick() -> FitConfig:
    return FitConfig(epochs=3, lr=5e-3, batch_residues=256, device="cpu")


@pytest.fixture(scope="session")
def trained(small, tiny, quick):
    """Trained model that tests do not change."""
    from protgraph.train import fit

    return fit(tiny, small, "helix", config=quick)
