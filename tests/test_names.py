"""Names are unique: public classes and functions in all packages, and file names up to the same kind of content."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Public names that several modules define, with the reason.
SHARED_NAMES = {"main": "entry point of a script"}

#: File names that several packages have, with the common kind of content. Modules of ``cli`` are named after commands.
SHARED_FILES = {
    "atoms.py": "atoms of residues and ligands as arrays",
    "checkpoint.py": "reading and writing of checkpoints",
    "component.py": "a component of a model: its specification, and its description for the conformity suite",
    "contact.py": "prediction of contacts",
    "dataset.py": "datasets",
    "decoder.py": "decoders of sequences",
    "embed.py": "embeddings, of categories and of proteins",
    "evaluate.py": "evaluation of predictions",
    "family.py": "families of variants of a component",
    "featurizers.py": "featurizers of a plugin",
    "fields.py": "field specifications",
    "layers.py": "layers of a plugin",
    "module.py": "base classes on torch.nn.Module",
    "prepare.py": "preparation of a dataset",
    "result.py": "records that the functions of a package return",
    "run.py": "the main function of a package",
    "spec.py": "declared specifications",
    "weights.py": "published weights",
}


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


def test_file_names_repeat_only_for_the_same_kind_of_content() -> None:
    places = defaultdict(list)
    for path in modules():
        if path.name not in ("__init__.py", "__main__.py") and path.parent != ROOT / "protgraph" / "cli":
            places[path.name].append(str(path.relative_to(ROOT)))
    found = repeated(places)
    assert {name: paths for name, paths in found.items() if name not in SHARED_FILES} == {}
    assert set(SHARED_FILES) <= set(found), "a file name is not shared any more; remove it from the table"
