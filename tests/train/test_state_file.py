"""Files of the training state."""

from __future__ import annotations

import io
from contextlib import nullcontext

import pytest
import torch

from protgraph.train import run_folder as state_file


class InterruptedFile(io.BytesIO):
    """File whose third write is interrupted."""

    writes = 0

    def write(self, data) -> int:
        self.writes += 1
        if self.writes == 3:
            raise KeyboardInterrupt("interrupted")
        return super().write(data)

    def open(self, mode: str) -> InterruptedFile:
        return self


def test_an_interruption_while_a_state_is_written_is_not_an_error_of_the_writer(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(state_file, "atomic_write", lambda path: nullcontext(InterruptedFile()))
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        state_file.StateFileIO().save_checkpoint({"weight": torch.zeros(3)}, tmp_path / "state.ckpt")


def test_another_failure_of_the_writer_stays_an_error(monkeypatch, tmp_path) -> None:
    class FullFile(InterruptedFile):
        def write(self, data) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_file, "atomic_write", lambda path: nullcontext(FullFile()))
    with pytest.raises((OSError, RuntimeError)):
        state_file.StateFileIO().save_checkpoint({"weight": torch.zeros(3)}, tmp_path / "state.ckpt")
