"""The same command gives the same bytes in another process, also with several threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = "train gat --data {data} --task secondary_structure --epochs 2 --device cpu --log none -q -o {out}"


@pytest.mark.slow
def test_two_trainings_write_the_same_bytes(structures_dir: Path, tmp_path: Path) -> None:
    for name in ("1crn", "1ubq", "1y0m", "1a8o", "1bta", "1ahs", "1orc", "5pti"):
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / f"{name}.bcif").symlink_to(structures_dir / f"{name}.bcif")
    outputs = []
    for run in range(2):
        out = tmp_path / f"run_{run}" / "model.safetensors"
        arguments = COMMAND.format(data=tmp_path / "files", out=out).split()
        environment = os.environ | {"OMP_NUM_THREADS": "2"}
        subprocess.run([sys.executable, "-m", "protgraph", *arguments], env=environment, check=True)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
