"""Objects at the end of a notebook cell print few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import protgraph as pg
from protgraph.bench.rows import BenchRow

LINES, CHARACTERS = 10, 1200


@pytest.fixture(scope="module")
def objects(structures_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    import shutil

    folder = tmp_path_factory.mktemp("reprs") / "A"
    folder.mkdir()
    for name in ("1crn", "1vii", "2erl", "1ajj"):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
    config = pg.FitConfig(epochs=1, device="cpu")
    result = pg.fit("gcn", folder, "secondary_structure", config=config)
    metrics = {"test": {"accuracy": 0.5}, "val": {"accuracy": 0.25}}
    row = BenchRow("k", "gcn", "interface", "pdb_core", 1, metrics=metrics, monitor="accuracy", epochs=9, best_epoch=4)
    return {
        "FitResult": (result, ("gcn", "secondary_structure", "accuracy", "test")),
        "Checkpoint": (result.checkpoint(), ("gcn", "secondary_structure", "accuracy")),
        "BenchRow": (row, ("gcn", "interface", "seed 1", "0.5", "4 of 9")),
        "ModelSpec": (pg.models.get("mpnn"), ("mpnn", "dihedral", "readout")),
        "ComponentSpec": (pg.component("gat", heads=2), ("component('gat', heads=2)",)),
        "Registry": (pg.layers, ("gcn",)),
        "Predictions": (pg.predict(result.checkpoint(), folder), ("159 rows", "p_H")),
        "Embeddings": (pg.embed(result.checkpoint(), folder), ("64",)),
        "FolderDataset": (pg.load_dataset(folder, task="secondary_structure"), ("train 2", "secondary_structure")),
        "PdbCore": (pg.datasets.create("pdb_core"), ("pdb_core", "secondary_structure")),
        "Residues": (pg.clean(pg.load_structure(folder / "1crn.bcif")), ("1crn",)),
    }


@pytest.mark.parametrize(
    "name",
    [
        "FitResult",
        "Checkpoint",
        "BenchRow",
        "ModelSpec",
        "ComponentSpec",
        "Registry",
        "Predictions",
        "Embeddings",
        "FolderDataset",
        "PdbCore",
        "Residues",
    ],
)
def test_a_repr_is_short_and_has_the_main_data(name: str, objects: dict[str, object]) -> None:
    value, parts = objects[name]
    text = repr(value)
    assert len(text.splitlines()) <= LINES and len(text) <= CHARACTERS
    assert not [part for part in parts if part not in text], text
