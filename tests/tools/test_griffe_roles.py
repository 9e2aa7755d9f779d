"""The reference pages show comments at fields of a class as their descriptions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="the extra docs is not installed")
TOOLS = Path(__file__).resolve().parents[2] / "tools"
SOURCE = '''
class Row:
    """A row."""

    # name of the model,
    # as in tables
    model: str
    seconds: float = 0.0  # duration
    seed: int

    def __init__(self):
        self.cache = {}  # not a field
'''


def test_comments_at_fields_are_their_docstrings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    extension = importlib.import_module("griffe_roles").RolesExtension()
    (tmp_path / "rows.py").write_text(SOURCE)
    module = griffe.load("rows", search_paths=[tmp_path], extensions=griffe.load_extensions(extension))
    members = module["Row"].members
    texts = {name: member.docstring and member.docstring.value for name, member in members.items()}
    assert texts["model"] == "Name of the model, as in tables"
    assert texts["seconds"] == "Duration"
    assert texts["seed"] is None and texts["cache"] is None
