"""Inputs and earlier files stay: outputs that are inputs are refused, and a full disk is an error that names the file.

A file-size limit fails at the same calls as a full disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
from contextlib import contextmanager

import pytest
from filelock import FileLock

from protgraph.checkpoint import load_checkpoint
from protgraph.errors import OutputFileError
from protgraph.labels import prepare
from protgraph.train import FitConfig, fit


@contextmanager
def file_size_limit(size: int):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder) -> dict[str, str]:
    """Return the checksum of every file below a folder, hidden ones too."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def base(tmp_path_factory, structures_dir):
    """Return a folder with 12 structures and a trained model."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "A").mkdir()
    for path in sorted(structures_dir.iterdir())[:12]:
        shutil.copyfile(path, folder / "A" / path.name)
    fit("gcn", folder / "A", "secondary_structure", config=FitConfig(epochs=1, device="cpu")).save(
        folder / "m.safetensors"
    )
    return folder


@pytest.fixture
def here(base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "A").symlink_to(base / "A")
    shutil.copyfile(base / "m.safetensors", tmp_path / "m.safetensors")
    return tmp_path


COMMANDS = {
    "predict": ("out.csv", 4000, ["predict", "m.safetensors", "A", "-o", "out.csv"]),
    "embed": ("out.npz", 20_000, ["embed", "m.safetensors", "A/1a19.bcif", "-o", "out.npz"]),
    "embed parquet": ("out.parquet", 20_000, ["embed", "m.safetensors", "A/1a19.bcif", "-o", "out.parquet"]),
    "view": ("out.html", 20_000, ["view", "A/1a19.bcif", "-o", "out.html"]),
    "train": ("m.safetensors", 20_000,
              ["train", "gcn", "--data", "A", "--task", "secondary_structure", "--epochs", 1, "-o", "m.safetensors"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_failed_write_names_a_file_and_keeps_the_earlier_one(run, here, name):
    out, limit, command = COMMANDS[name]
    if not (here / out).exists():
        (here / out).write_text("earlier")
    if name == "train":  # prepared data are in the cache: the first large file is the training state
        assert run(*command, "--overwrite").code == 0
    before = contents(here)
    with file_size_limit(limit):
        result = run(*command, "--overwrite")
    assert result.code == 2 and "file not written: '" in result.err and "too large" in result.err, result.err
    written = "m.run" if name == "train" else out.removesuffix(".parquet")
    assert written in result.err.partition("file not written")[2]
    after = contents(here)
    state = [file for file in before if file.startswith("m.run/checkpoints/")]
    assert bool(state) == (name == "train") and not set(state) & set(after)  # a new run removes the earlier state
    kept = {file: checksum for file, checksum in before.items() if file not in state}
    assert {file: after.get(file) for file in kept} == kept and out in kept
    assert not [file for file in after if file.endswith(".part")]


def test_a_store_is_kept_if_the_new_one_cannot_be_written(run, here):
    assert run("featurize", "A/1a19.bcif", "-o", "graphs").code == 0
    before = contents(here / "graphs")
    with file_size_limit(20_000):
        result = run("featurize", "A/1a28.bcif", "-o", "graphs", "--overwrite")
    assert result.code == 2 and "file not written: '" in result.err
    assert contents(here / "graphs") == before
    assert run("featurize", "A/1a28.bcif", "-o", "graphs", "--overwrite").code == 0
    assert contents(here / "graphs") != before


def test_a_store_is_kept_if_all_files_fail(run, here):
    assert run("featurize", "A/1a19.bcif", "-o", "graphs").code == 0
    before = contents(here / "graphs")
    (here / "broken.pdb").write_text("nothing")
    assert run("featurize", "broken.pdb", "-o", "graphs", "--overwrite").code == 2
    assert contents(here / "graphs") == before and not list(here.glob(".graphs*"))


def test_a_second_process_at_one_store_is_refused(run, here):
    with FileLock(here / ".graphs.lock"):
        result = run("featurize", "A/1a19.bcif", "-o", "graphs")
    assert result.code == 2 and "another process" in result.err and not (here / "graphs").exists()


@pytest.mark.slow
def test_training_whose_checkpoint_cannot_be_written_is_resumed(run, here, monkeypatch):
    args = [
        "train",
        "gcn",
        "--data",
        "A",
        "--task",
        "secondary_structure",
        "--epochs",
        2,
        "-q",
        "-o",
        "new.safetensors",
    ]

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("protgraph.checkpoint.checkpoint_file.save_file", full)
        result = run(*args)
    assert result.code == 2 and "'new.safetensors'" in result.err and "--resume" in result.err
    assert not (here / "new.safetensors").exists()
    assert run(*args, "--resume").code == 0
    assert load_checkpoint("new.safetensors").trained["epochs"] == 2
    assert (here / "new.run" / "checkpoints" / "state.ckpt").is_file()  # the finished run can be trained longer
    again = run(*args, "--resume")
    assert again.code == 2 and "has finished 2 epochs" in again.err


@pytest.mark.slow
def test_a_failed_first_write_leaves_no_folders(run, here):
    for name, limit in (("predict", 4000), ("embed", 20_000), ("train", 20_000)):
        out, _, command = COMMANDS[name]
        more = ["--log", "none"] if name == "train" else []
        with file_size_limit(limit):
            result = run(*command[:-1], here / name / "sub" / out, *more)
        assert result.code == 2 and "file not written" in result.err, result.err
        # warnings are written before the predictions; whether there are any depends on the trained weights
        has_warnings = "out.csv.warnings.csv" in result.out + result.err
        written = {path.name for path in (here / name).rglob("*")}
        assert written == ({"sub", "out.csv.warnings.csv"} if has_warnings else set())
        assert (here / name).exists() == has_warnings


def test_refused_options_create_no_folders(run, here):
    result = run("predict", "m.safetensors", "A", "-o", "new/sub/out.csv", "--value", "p_H")
    assert result.code == 2 and not (here / "new").exists()


@pytest.mark.slow
def test_a_full_cache_is_an_error_and_no_failed_protein(base, tmp_path):
    from protgraph import registry
    from protgraph.labels import load_dataset
    from protgraph.model import build_model

    task = registry.tasks.get("secondary_structure")
    plan = build_model("gcn", task.target, seed=0).plan
    dataset = load_dataset(base / "A", task="secondary_structure", cache=tmp_path)
    with file_size_limit(2000), pytest.raises(OutputFileError) as caught:
        prepare(dataset, task, plan, cache=tmp_path)
    assert str(tmp_path) in caught.value.filename
    assert not prepare(dataset, task, plan, cache=tmp_path).failures


def refused(out: str) -> dict[str, list[str]]:
    """Return commands whose output is one of their inputs, by name."""
    return {
        "predict structure": ["predict", "m.safetensors", "in.cif", "-o", out],
        "predict checkpoint": ["predict", "m.safetensors", "in.cif", "-o", "m.safetensors"],
        "predict structure output": ["predict", "m.safetensors", "in.cif", "-o", "p.csv", "--structure", out],
        "embed": ["embed", "m.safetensors", "in.cif", "in.npz", "-o", "in.npz"],
        "view": ["view", "in.html", "-o", "in.html"],
        "score sequences": ["score", "in.cif", "--model", "m.safetensors", "--sequences", "t.csv", "-o", "t.csv"],
        "train labels": ["train", "gcn", "--data", "A", "--labels", "t.safetensors", "-o", "t.safetensors"],
        "featurize manifest": ["featurize", "in.cif", "t.csv", "-o", "graphs", "--manifest", "t.csv"],
        "featurize default manifest": ["featurize", "in.cif", "g.manifest.tsv", "-o", "g"],
        "failures": ["predict", "m.safetensors", "in.cif", "q.csv.failures.csv", "-o", "q.csv"],
    }


@pytest.mark.parametrize("link", ["itself", "soft link", "hard link"])
@pytest.mark.parametrize("name", refused(""))
def test_an_output_that_is_an_input_is_refused(run, here, name, link):
    shutil.copyfile(here / "A" / "1a19.bcif", here / "in.cif")
    for file in ("t.csv", "t.safetensors", "in.npz", "in.html", "g.manifest.tsv", "q.csv.failures.csv"):
        (here / file).write_text("mine")
    out = {"itself": "./in.cif", "soft link": "soft.cif", "hard link": "hard.cif"}[link]
    (here / "soft.cif").symlink_to(here / "in.cif")
    (here / "hard.cif").hardlink_to(here / "in.cif")
    before = contents(here)
    result = run(*refused(out)[name], "--overwrite")
    assert result.code == 2 and ("input" in result.err or "suffix" in result.err), result.err
    assert contents(here) == before


@pytest.mark.parametrize(
    "args",
    [
        ["view", "A/1a19.bcif", "--format", "molviewspec", "-o", "v.html"],
        ["view", "A/1a19.bcif", "-o", "x.pdb"],
        ["predict", "m.safetensors", "A", "-o", "p.xlsx"],
        ["featurize", "A", "-o", "graphs", "--manifest", "m.xlsx"],
        ["train", "gcn", "--data", "A", "--task", "secondary_structure", "-o", "m.csv"],
        ["embed", "m.safetensors", "A", "-o", "v.csv"],
        ["design", "A", "-o", "d.csv"],
        ["check", "gcn", "--table", "t.csv"],
    ],
    ids=lambda args: f"{args[0]} {args[-1]}",
)
def test_a_suffix_that_does_not_fit_is_refused(run, here, args):
    before = contents(here)
    result = run(*args)
    assert result.code == 2 and args[-1] in result.err and "llowed" in result.err, result.err
    assert contents(here) == before
