"""``protgraph train --from`` and its options, and ``protgraph info`` of models and checkpoint files."""

from __future__ import annotations

import shutil

import pytest

from protgraph.checkpoint import load_checkpoint
from protgraph.checkpoint.checkpoint_header import weights_digest

CHAINS = ("1crn", "2erl", "1d3z", "1ubq", "1fas")


@pytest.fixture
def labeled(structures_dir, tmp_path):
    """Folder of five proteins, and a table of one binary label for the first residues of each."""
    folder = tmp_path / "my"
    folder.mkdir()
    rows = ["file,chain,res_id,site,split"]
    for number, name in enumerate(CHAINS):
        shutil.copy(structures_dir / f"{name}.bcif", folder)
        split = "val" if number == 3 else "test" if number == 4 else "train"
        rows += [f"{name}.bcif,A,{i},{i % 2},{split}" for i in range(5, 25)]
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_shipped_ensemble_is_continued_with_labels_of_a_user(run, labeled, tmp_path):
    out = tmp_path / "tuned.safetensors"
    labels = ("--data", labeled, "--labels", labeled / "labels.csv", "--task", "site", "--epochs", 1)
    parts = ("--freeze", "layers.[0-5]", "--lr-scale", "layers.7=0.1", "--unfreeze-after", "layers.5=1")
    result = run("train", "--from", "ppi_site[1]", "--head", "keep", *labels, *parts, "-o", out, "--quiet")
    assert result.code == 0, result.err
    digest = weights_digest(load_checkpoint("ppi_site").members[1])
    assert f"start from ppi_site[1]: site_mpnn.backbone for interface, sha256 {digest[:16]}" in result.out
    assert "loaded: layers.0 (embed)" in result.out and "skipped: none" in result.out
    info = run("info", out).out
    for text in (
        "from      ppi_site[1] (site_mpnn.backbone for interface)",
        f"sha256 {digest}",
        "parts     layers.0 (embed, ",
    ):
        assert text in info


def test_low_rank_terms_are_written_beside_the_checkpoint(run, labeled, tmp_path):
    out = tmp_path / "tuned.safetensors"
    labels = ("--data", labeled, "--labels", labeled / "labels.csv", "--task", "site", "--epochs", 1)
    ranks = ("--lora", 2, "--lora", "layers.[01]=1")
    result = run("train", "--from", "ppi_site", *ranks, *labels, "-o", out, "--quiet")
    assert result.code == 0, result.err
    adapters = tmp_path / "tuned.adapters.safetensors"
    assert f"adapters: {adapters}" in result.out and "low-rank terms: " in result.out
    assert weights_digest(load_checkpoint(adapters).model) == weights_digest(load_checkpoint(out).model)
    again = run("train", "--from", "ppi_site", "--lora", 2, *labels, "-o", tmp_path / "tuned.safetensors")
    assert again.code == 2 and "tuned.safetensors" in again.err
    longer = run("train", "--from", "ppi_site", *ranks, *labels[:-1], 2, "-o", out, "--quiet", "--resume")
    assert longer.code == 0, longer.err
    assert weights_digest(load_checkpoint(adapters).model) == weights_digest(load_checkpoint(out).model)


def test_model_or_checkpoint_is_required(run):
    result = run("train", "--data", "pdb_core", "--task", "ligand_binding")
    assert result.code == 2 and "MODEL is missing" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lr-scale", "layers.*"], "--lr-scale: 'layers.*'"),
        (["--unfreeze-after", "layers.*=soon"], "--unfreeze-after: 'layers.*=soon'"),
        (["--lora", "many"], "--lora: 'layers=many'"),
        (["--head", "old"], "--head: 'old'"),
        (["--freeze", "blocks.*"], "'blocks.*' matches no parameter"),
        (["--from", "absent.safetensors"], "absent.safetensors"),
    ],
)
def test_wrong_options_are_errors(run, options, message):
    result = run("train", "gcn", "--data", "pdb_core", "--task", "ligand_binding", *options)
    assert result.code == 2 and message in result.err and "Traceback" not in result.err


def test_info_of_a_model_prints_the_parts_that_can_be_frozen(run):
    assert "parts     layers.0 (embed, dim=64), layers.1 (gcn" in run("info", "gcn", "--kind", "models").out
    assert "parts     layers.0 (embed, 22,272)" in run("info", "ppi_site").out


def test_layers_are_trained_on_auxiliary_tasks(run, labeled, tmp_path):
    labels = ("--data", labeled, "--labels", labeled / "labels.csv", "--task", "site", "--epochs", 1, "--quiet")
    out = tmp_path / "both.safetensors"
    result = run("train", "gcn", *labels, "--auxiliary", "secondary_structure=0.5", "-o", out)
    assert result.code == 0, result.err
    assert "secondary_structure: 3 training proteins, weight 0.5" in result.err
    wrong = run("train", "gcn", *labels, "--auxiliary", "secondary_structure")
    assert wrong.code == 2 and "TASK=WEIGHT, e.g. 'b_factor=0.3'" in wrong.err
