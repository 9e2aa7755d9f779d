"""Dataset structure_chains: choice without homologs of held-out chains, table and card."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest
from protgraph_datasets.structure_chains.choose import LONGEST, SHORTEST, Chain, choose_proteins, main
from protgraph_datasets.structure_chains.dataset import FOLDER, SOURCES, StructureChains
from protgraph_plugins.published import read_tsv

import protgraph as pg
from protgraph.cli.app import main as main_command
from protgraph.errors import DatasetError
from protgraph.structure import ALPHABET


def random_sequence(seed: int, length: int = 80) -> str:
    rng = np.random.default_rng(seed)
    return "".join(rng.choice(list(ALPHABET[:20]), length).tolist())


def test_homologs_of_held_out_chains_and_unsuitable_lengths_are_left_out():
    held_out = random_sequence(0)
    candidates = [
        Chain("a", "new", "train", random_sequence(1)),
        Chain("a", "relative", "train", random_sequence(2, 20) + held_out[10:70]),
        Chain("b", "complex", "train", random_sequence(3)),  # its other chain is a relative
        Chain("b", "complex", "train", held_out),
        Chain("b", "short", "train", random_sequence(4, SHORTEST - 1)),
        Chain("b", "long", "train", random_sequence(5, LONGEST)),
        Chain("b", "long", "train", random_sequence(6)),
    ]
    tested = [Chain("c", "p", "test", held_out), Chain("d", "q", "val", held_out), Chain("d", "r", "val", "A" * 40)]
    choice = choose_proteins(candidates, tested)
    assert choice.chosen == [("a", "new")]
    assert choice.too_long == {"b": 2} and choice.homologs == {"a": 1, "b": 1}
    assert choice.related == {"c": {"a": 1, "b": 1}, "d": {"a": 1, "b": 1}}


def test_the_table_has_the_numbers_of_the_card_and_of_the_proteins_that_are_left():
    rows = read_tsv(FOLDER / "chains.tsv.gz")
    card = StructureChains().card
    assert Counter(row["split"] for row in rows) == {name: count.proteins for name, count in card.splits.items()}
    assert len({(row["dataset"], row["id"]) for row in rows}) == len(rows)
    table = {}
    for row in read_tsv(FOLDER / "left_out.tsv"):
        reason = row.pop("reason")
        table[reason] = {name: int(value) for name, value in row.items()}
    used = Counter(row["dataset"] for row in rows if row["split"] == "train")
    for name in SOURCES:
        left = table["training split"][name] - table[f"not {SHORTEST} to {LONGEST} residues"][name]
        assert left - table["homolog in a held-out split"][name] == table["used"][name] == used[name]


@pytest.mark.slow
def test_the_command_writes_tables_that_the_dataset_reads(tmp_path, monkeypatch):
    """On pdb_core alone, whose training split has no relatives of its other splits."""
    sources = {"pdb_core": "inverse_folding"}
    monkeypatch.setattr("protgraph_datasets.structure_chains.choose.SOURCES", sources)
    monkeypatch.setattr("protgraph_datasets.structure_chains.dataset.SOURCES", sources)
    monkeypatch.setattr("protgraph_datasets.structure_chains.choose.EVALUATED", {("pdb_core", "test"): "test"})
    monkeypatch.setattr(pg.datasets, "names", lambda: ["pdb_core"])
    main(tmp_path, engine="parasail")
    shutil.copy(FOLDER / "dataset.toml", tmp_path)
    monkeypatch.setattr("protgraph_datasets.structure_chains.dataset.FOLDER", tmp_path)
    dataset, original = StructureChains(), pg.datasets.create("pdb_core")
    assert dataset.is_prepared
    left = {row["reason"]: int(row["pdb_core"]) for row in read_tsv(tmp_path / "left_out.tsv")}
    assert left["training split"] == 191 and left["homolog in a held-out split"] == 0
    examples = dataset.examples("masked_residue_type", "train")
    assert len(examples) == left["used"] == 191 - left[f"not {SHORTEST} to {LONGEST} residues"] > 100
    same = {f"pdb_core_{example.id}": example for example in original.examples("inverse_folding", "train")}
    assert dataset.read(examples[0]).sequence == original.read(same[examples[0].id]).sequence
    assert dataset.links(examples[0]) and dataset.labels("masked_residue_type", examples[0]) is None


def test_datasets_that_are_not_prepared_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path))
    dataset = pg.datasets.create("structure_chains")
    assert not dataset.is_prepared and "ligysis" in dataset.place and "pdb_core" not in dataset.place
    with pytest.raises(DatasetError, match="data prepare ligysis"):
        dataset.examples("masked_residue_type")
    with pytest.raises(SystemExit):
        main_command(["data", "prepare", "structure_chains", "--download"])
    assert "sugar_site" in capsys.readouterr().err
