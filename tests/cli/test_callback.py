"""``protgraph train --callback MODULE:NAME``."""

from __future__ import annotations

import sys

import pytest

CODE = """
from pathlib import Path
from lightning.pytorch.callbacks import Callback

class Epochs(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        with Path("epochs.txt").open("a") as file:
            file.write(f"{trainer.current_epoch}\\n")

stop_at_once = 5

def broken():
    raise ZeroDivisionError("in the user's module")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Run in a folder with the module ``epoch_callbacks``."""
    (tmp_path / "epoch_callbacks.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("epoch_callbacks", None)


@pytest.mark.slow
def test_a_callback_of_the_current_folder_is_called_at_each_epoch(run, here):
    args = ("--data", "pdb_core", "--task", "ligand_binding", "--epochs", 2, "--callback", "epoch_callbacks:Epochs")
    result = run("train", "majority", *args, "-o", here / "m.safetensors")
    assert result.code == 0, result.err
    assert (here / "epochs.txt").read_text().split() == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Epochs", "Epochs"),
        ("epoch_callbacks:Missing", "Missing"),
        ("epoch_callback:Epochs", "epoch_callback"),
        ("epoch_callbacks:stop_at_once", "int"),
        ("epoch_callbacks:broken", "ZeroDivisionError"),
    ],
)
def test_what_is_not_a_callback_is_an_error_with_its_name(run, here, text, named):
    result = run("train", "majority", "--data", "pdb_core", "--task", "ligand_binding", "--callback", text)
    assert result.code == 2 and named in result.err and "Traceback" not in result.err
    assert not list(here.glob("*.safetensors"))
