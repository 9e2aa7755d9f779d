"""Names are unique: public classes and functions in all packages."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Public names that several modules define, with the reason.
SHARED_NAMES = {"main": "entry point of a script"}


def modules() -> list[Path]:
    paths = (p for folder in ("protgraph", "plugins", "datasets") for p in (ROOT / folder).rglob("*.py"))
    return sorted(p for p in paths if not {"template", "build", "__pycache__"} & set(p.relative_to(ROOT).parts))


def repeated(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_public_classes_and_functions_have_unique_names() -> None:
    places = defaultdict(list)
    for path in modules():
        for item in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(item, ast.FunctionDef | ast.ClassDef) and not item.name.startswith("_"):
                places[item.name].append(str(path.relative_to(ROOT)))
    found = repeated(places)
    assert {name: paths for name, paths in found.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(found), "a name is not shared any more; remove it from the table"
