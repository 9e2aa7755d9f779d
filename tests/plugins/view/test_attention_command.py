"""``protgraph attention``: figures from a model name or checkpoint, and a file."""

from __future__ import annotations

import csv
import shutil

import pytest

import protgraph as pg
from protgraph.checkpoint import Checkpoint, save_checkpoint


@pytest.fixture
def ubiquitin(structures_dir):
    return structures_dir / "1ubq.bcif"


@pytest.fixture(scope="module")
def drawn() -> dict[str, object]:
    """Hold the result of the one run that draws the figures of ``transformer``."""
    return {}


@pytest.fixture
def transformer_figures(run, ubiquitin, drawn, tmp_path_factory):
    """Return the result of the command and its folder, from the first test that needs them."""
    if not drawn:
        folder = tmp_path_factory.mktemp("transformer")
        drawn.update(result=run("attention", "transformer", ubiquitin, "-o", folder), folder=folder)
    return drawn["result"], drawn["folder"]


@pytest.mark.slow
def test_a_model_name_gives_figures_of_an_untrained_model(transformer_figures):
    result, tmp_path = transformer_figures
    assert result.code == 0, result.err
    assert "transformer, untrained, on 1ubq, 76 residues" in result.out and "6 files" in result.out
    rows = list(csv.DictReader((tmp_path / "heads.csv").open(encoding="utf-8")))
    assert len(rows) == 12 and {r["pairs"] for r in rows} == {"2485"}
    assert (tmp_path / "layers_1_pre_norm_block.png").stat().st_size > 50_000


@pytest.mark.slow
def test_a_checkpoint_of_single_chains_gives_a_folder_per_chain(run, structures_dir, tmp_path):
    layers = [pg.component("embed", reads=["aatype"], dim=8), pg.component("gat", dim=8, heads=2)]
    model = pg.build_model(pg.ModelSpec("few", ["knn"], layers), pg.Target("t", "node", "classification", 3), seed=0)
    path = save_checkpoint(tmp_path / "m.safetensors", Checkpoint(model=model, task="t", one_chain=True))
    result = run("attention", path, structures_dir / "1bfr.bcif", "-o", tmp_path / "out")
    assert result.code == 0, result.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["1_1bfr_M", "2_1bfr_N"]
    assert "few (m.safetensors) on 1bfr" in result.out
    only = run("attention", path, structures_dir / "1bfr.bcif", "--chain", "N", "-o", tmp_path / "one")
    assert only.code == 0 and (tmp_path / "one" / "heads.csv").is_file()


@pytest.mark.slow
def test_sequences_have_heat_maps_without_contacts(run, tmp_path):
    fasta = tmp_path / "two.fasta"
    fasta.write_text(">one/first\nMKTAYIAKQRQISFVKSHFSRQ\n>two\nACDEFGHIKLMNPQRSTVWY\n")
    layers = [pg.component("encoder", dim=8, heads=2, depth=1)]
    model = pg.build_model(pg.ModelSpec("few", [], layers), pg.Target("t", "node", "classification", 3), seed=0)
    path = save_checkpoint(tmp_path / "m.safetensors", Checkpoint(model=model, task="t"))
    result = run("attention", path, fasta, "-o", tmp_path / "out")
    assert result.code == 0, result.err
    first, second = sorted((tmp_path / "out").iterdir())
    assert first.name.startswith("1_one") and second.name.startswith("2_two")
    rows = list(csv.DictReader((first / "heads.csv").open(encoding="utf-8")))
    assert {r["r_contact"] for r in rows} == {"nan"} and (first / "layers_0_blocks_0_encoder.png").is_file()


def test_a_sequence_is_refused_by_a_model_of_structures(run, tmp_path):
    fasta = tmp_path / "one.fasta"
    fasta.write_text(">one\nMKTAYIAKQRQISFVKSHFSRQ\n")
    result = run("attention", "gat", fasta, "-o", tmp_path / "out")
    assert result.code == 2 and "coordinates" in result.err


@pytest.mark.slow
def test_figures_of_another_model_are_removed(run, ubiquitin, transformer_figures, tmp_path):
    result, folder = transformer_figures
    assert result.code == 0
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "notes.txt").write_text("mine")
    assert run("attention", "gat", ubiquitin, "-o", tmp_path).code == 2  # a folder with files
    result = run("attention", "gat", ubiquitin, "-o", tmp_path, "--overwrite")
    assert result.code == 0
    layers = [f"layers_{i}_gat.png" for i in (2, 4, 6)]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*layers, "heads.csv", "heads.png", "notes.txt"])
