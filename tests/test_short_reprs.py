"""Objects at the end of a notebook cell print few lines, and tables in notebooks."""

from __future__ import annotations

from html.parser import HTMLParser
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
        "Structure": (pg.load_structure(folder / "1crn.bcif"), ("1crn", "bcif")),
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
        "Structure",
    ],
)
def test_a_repr_is_short_and_has_the_main_data(name: str, objects: dict[str, object]) -> None:
    value, parts = objects[name]
    text = repr(value)
    assert len(text.splitlines()) <= LINES and len(text) <= CHARACTERS
    assert not [part for part in parts if part not in text], text


class Cells(HTMLParser):
    """Rows of the table of a page; raises on a tag that is closed in another order than it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def table(value: object) -> list[list[str]]:
    rows = Cells(value._repr_html_()).rows
    assert len({len(row) for row in rows}) == 1  # a cell per column
    return rows


def test_the_table_of_a_result_has_the_metrics_of_each_split(objects):
    result = objects["FitResult"][0]
    head, *rows = table(result)
    assert [row[0] for row in rows] == list(result.metrics)
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        assert int(cells["residues"]) == result.sizes[row[0]][1]
        assert float(cells["accuracy"]) == pytest.approx(result.metrics[row[0]]["accuracy"], rel=1e-3)


def test_the_table_of_predictions_has_the_first_rows(objects):
    predictions = objects["Predictions"][0]
    head, *rows = table(predictions)
    assert tuple(head) == predictions.columns and 0 < len(rows) < 20 < len(predictions)
    assert [row[:3] for row in rows] == [[str(v) for v in row[:3]] for row in predictions.rows[: len(rows)]]
    assert f"{len(predictions) - len(rows)} more rows" in predictions._repr_html_()


def test_the_tables_of_structure_and_residues_have_the_chains(objects, structures_dir):
    for structure in (objects["Structure"][0], pg.load_structure(structures_dir / "1atp.bcif")):
        _, *rows = table(structure)
        assert [row[0] for row in rows] == list(dict.fromkeys(structure.atoms.chain_id.tolist()))
        assert sum(int(row[2]) for row in rows) == len(structure.atoms)
    _, row = table(objects["Residues"][0])
    assert row == ["A", "46", "1", "46", "TTCCPSIVARSNFNVCRLPGTPEAICATYTGCIIIPGATCPGDYAN"]  # SEQRES of 1crn


def test_the_table_of_a_graph_has_its_fields_and_that_of_a_model_its_components(objects):
    graph = pg.build_graph(objects["Residues"][0], ["dihedral", pg.component("knn", k=4), "edge_distance"])
    rows = {row[0]: row[1:6] for row in table(graph)[1:]}
    assert rows["dihedral"] == ["(46, 6)", "float32", "node", "3x0e+3x0o", "dimensionless"]
    assert rows["edge_dist"] == ["(184, 1)", "float32", "edge", "1x0e", "Å"]
    spec = objects["ModelSpec"][0]
    assert [row[1] for row in table(spec)[1:]] == [c.name for c in (*spec.features, *spec.layers)]


def test_text_in_tables_is_escaped():
    spec = pg.ModelSpec("<script>alert(1)</script>", layers=[pg.component("embed", reads=["aatype"])])
    assert "<script>" not in spec._repr_html_() and "&lt;script&gt;" in spec._repr_html_()
