"""The tests of changed files, of a small checkout with a branch."""

from __future__ import annotations

import subprocess

import pytest

from tools import changed_tests


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout on a branch, with a package, an extension and their tests."""
    files = (
        "protgraph/nn/layer.py",
        "protgraph/errors.py",
        "plugins/esm/encoder.py",
        "plugins/esm/README.md",
        "tests/nn/test_layer.py",
        "tests/plugins/esm/test_encoder.py",
        "tests/plugins/test_esm_weights.py",
        "tests/plugins/test_gvp.py",
        "tests/test_documentation.py",
        "tests/conftest.py",
    )
    for file in files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for command in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["add", "."],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "start"],
        ["switch", "--quiet", "--create", "branch"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(changed_tests, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("protgraph/nn/layer.py", ["tests/nn"]),
        ("protgraph/errors.py", []),
        ("plugins/esm/encoder.py", ["tests/plugins/esm", "tests/plugins/test_esm_weights.py"]),
        (
            "plugins/esm/README.md",
            ["tests/plugins/esm", "tests/plugins/test_esm_weights.py", "tests/test_documentation.py"],
        ),
        ("tests/nn/test_layer.py", ["tests/nn/test_layer.py"]),
        ("tests/conftest.py", []),
    ],
)
def test_a_changed_file_selects_the_tests_of_its_package(checkout, file, tests):
    (checkout / file).write_text("changed")
    assert changed_tests.changed_files() == [file]
    assert changed_tests.tests_of(changed_tests.changed_files(), checkout) == tests


def test_new_files_count_and_a_folder_includes_its_files(checkout):
    (checkout / "tests/nn/test_new.py").write_text("")
    assert changed_tests.changed_files() == ["tests/nn/test_new.py"]
    (checkout / "protgraph/nn/layer.py").write_text("changed")
    assert changed_tests.tests_of(changed_tests.changed_files(), checkout) == ["tests/nn"]
