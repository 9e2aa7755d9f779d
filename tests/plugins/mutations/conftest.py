"""Fixtures of the tests of the core that tests of mutations need."""

from __future__ import annotations

from tests.nn.conftest import scene, seed
from tests.structure.conftest import pdb_lines, write_pdb

__all__ = ["pdb_lines", "scene", "seed", "write_pdb"]
