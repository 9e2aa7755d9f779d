"""Test the style check on texts and modules that break its rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_style", ROOT / "tools" / "check_style.py")
check_style = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_style)


def write(folder: Path, source: str, name: str = "module.py") -> Path:
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a layer that is told its degree", "told"),
        ("What the file says.", "says"),
        ("Neighbours within 8 Å", "Neighbours"),
        ("weights learnt before", "learnt"),
        ("it is looked at once", "is looked at"),
        ("a chain that is no protein", "that is no"),
        ("a radius of 8 Å, say", ", say"),
    ],
)
def test_banned_words_are_found(text: str, word: str) -> None:
    assert (1, word) in list(check_style.words_in_text(text))


@pytest.mark.parametrize(
    "text",
    ["a household name", "one that is no longer read", "Return the neighbors of each residue.", "slippage", "toll"],
)
def test_ordinary_words_pass(text: str) -> None:
    assert not list(check_style.words_in_text(text))


def test_identifiers_and_f_strings_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, 'def tell_told(x):\n    told = f"{x} says"\n    return told\n')
    found = {(line, text) for _, line, text in check_style.words_in_code(path)}
    assert (1, "'tell_told' contains 'told'") in found
    assert (2, "'told' contains 'told'") in found
    assert (2, "'says'") in found


def test_modules_without_a_list_of_public_names_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_style, "ROOT", tmp_path)
    path = write(tmp_path, '"""Module."""\n\nfrom __future__ import annotations\n\n\ndef f(): ...\n')
    assert any("no __all__" in text for *_, text in check_style.module_form(path))


def test_relative_clauses_as_titles_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, '"""What a module holds."""\n\n\ndef f():\n    """Return x."""\n')
    assert [text for *_, text in check_style.relative_titles(path)] == ["docstring begins with 'What'"]


def test_section_titles_joined_with_their_underline_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, '"""Module.\n\nNotes ----- Reads: h.\n\nReferences\n----------\nA paper.\n"""\n')
    assert [(line, text.split("'")[1]) for _, line, text in check_style.joined_titles(path)] == [(3, "Notes")]


def test_public_callables_without_docstrings_are_found(tmp_path: Path) -> None:
    source = """class A:
    \"\"\"Documented.\"\"\"

    def f(self): ...

    def _private(self): ...

    @property
    def size(self): ...

    @size.setter
    def size(self, value): ...


def g():
    def inner(): ...


class B: ...
"""
    found = [text for *_, text in check_style.undocumented(write(tmp_path, source))]
    assert found == [f"{name} has no docstring" for name in ("A.f", "A.size", "g", "B")]


@pytest.mark.slow
def test_every_public_callable_has_a_docstring() -> None:
    files = check_style.python_files("protgraph", "plugins", "datasets")
    files = [path for path in files if "tests" not in path.relative_to(ROOT).parts]
    assert len(files) > 300
    assert [finding for path in files for finding in check_style.undocumented(path)] == []
