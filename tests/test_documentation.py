"""Tests of all Markdown pages: Python blocks run and print what is shown, commands exist, links have a target."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import protgraph as pg
from protgraph.cli.app import COMMANDS, main
from protgraph.registry import commands as registered_commands
from tests.docs.predicted_files import write_predicted_file

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
    *sorted(ROOT.glob("datasets/*/README.md")),
]
#: Pages whose Python blocks run for each change.
FIRST_PAGES = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("start", "plugins", "plugin_networks", "plugin_data")),
)
#: Small entries, enough for three splits.
STRUCTURES = ("1ubq", "1ajj", "134l", "1fas", "1bo0", "1rx4", "1gya", "2fvv", "1rxz", "4qyf")
#: Checkpoint of an example → model and task.
CHECKPOINTS = {
    "trained.safetensors": ("transformer", "secondary_structure"),
    "gpt.safetensors": ("gpt", "next_residue"),
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


def blocks(language: str, page: Path) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def python_blocks() -> Iterator[object]:
    """Yield every Python block, its output, and whether it runs in a new process, which costs seconds.

    The output is the ``text`` block after the Python block, None without one. Blocks of README.md run in a new process.
    Those of :data:`FIRST_PAGES` run for each change, all others with the slow tests: together they take minutes.
    """
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, flags=re.M | re.S)
        marks = [] if page in FIRST_PAGES else [pytest.mark.slow]
        for number, (block, output) in enumerate(found, 1):
            shown = output or None
            yield pytest.param(block, shown, page == ROOT / "README.md", id=f"{name_of(page)}-{number}", marks=marks)


def commands() -> Iterator[object]:
    """Yield the words of every ``protgraph …`` line of the shell blocks, without comments and what follows a pipe."""
    for page in PAGES:
        lines = [line for block in (*blocks("bash", page), *blocks("sh", page)) for line in block.splitlines()]
        split = [line.split("#")[0].split(" | ")[0].split() for line in lines]
        for number, words in enumerate([words for words in split if words[:1] == ["protgraph"]], 1):
            yield pytest.param(words[1], words[2:], id=f"{name_of(page)}-{number}-{words[1]}")


@pytest.fixture(scope="module")
def user_folder(tmp_path_factory: pytest.TempPathFactory, structures_dir: Path) -> Path:
    """Return a folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("documentation")
    (folder / "my_structures").mkdir()
    for name in STRUCTURES:
        shutil.copy(structures_dir / f"{name}.bcif", folder / "my_structures")
    ubiquitin = (structures_dir / "1ubq.bcif").read_bytes()  # the format is detected from the content
    (folder / "1ubq.bcif").write_bytes(ubiquitin)
    (folder / "1ubq.cif").write_bytes(ubiquitin)
    (folder / "1ubq.cif.gz").write_bytes(gzip.compress(ubiquitin, mtime=0))
    title = "ALPHAFOLD MONOMER V2.0 PREDICTION FOR POLYUBIQUITIN-C (P0CG48)"
    tail = (65.0, 52.0, 44.0, 38.0)
    write_predicted_file(folder / "my_model.pdb", structures_dir / "1ubq.bcif", tail=tail, title=title)
    write_predicted_file(folder / "my_antibody.pdb", structures_dir / "2d7t.bcif")
    (folder / "my.fasta").write_text(">a\nMKTAYIAKQRQISFVKSHFSRQ\n", encoding="utf-8")
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "chain", "res_id", "ins_code", "site"])
        for name in STRUCTURES:
            r = pg.clean(pg.load_structure(structures_dir / f"{name}.bcif"))
            keys = zip(r.chain.tolist(), r.res_id.tolist(), r.ins_code.tolist(), strict=True)
            rows.writerows([name, *key, int(number % 7 == 0)] for number, key in enumerate(keys))
    return folder


@pytest.fixture(scope="module")
def write_checkpoint(user_folder: Path) -> Callable[[str], None]:
    """Return a function that trains the model of an example for one epoch, once."""

    @cache
    def write(name: str) -> None:
        config = pg.FitConfig(epochs=1, device="cpu")
        model, task = CHECKPOINTS[name]
        pg.fit(model, user_folder / "my_structures", task, config=config, cache=user_folder / "cache").save(
            user_folder / name
        )

    return write


@pytest.mark.parametrize(("block", "output", "in_new_process"), list(python_blocks()))
def test_every_python_block_runs(
    block, output, in_new_process, user_folder, write_checkpoint, request, monkeypatch, capsys
):
    for name in CHECKPOINTS:
        if name in block:
            write_checkpoint(name)
    if "paragraph" in block:
        published = request.getfixturevalue("shared_data") / "weights" / "paragraph"
        shutil.copy(published / "4edw.pdb", user_folder)
        monkeypatch.setenv("PROTGRAPH_PARAGRAPH", str(published))
    if not in_new_process:
        monkeypatch.chdir(user_folder)
        capsys.readouterr()
        script = ModuleType("__main__")  # as in a script, pickle finds the classes of the block
        monkeypatch.setitem(sys.modules, "__main__", script)
        exec(compile(block, "<string>", "exec"), script.__dict__)
        assert output is None or capsys.readouterr().out == output
        return
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = subprocess.run([sys.executable, "-c", block], cwd=user_folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def help_of(capsys, monkeypatch) -> Callable[[str], str]:
    """``help_of("train")``: the help text, printed in this process; tests/test_import_time.py prints it in new ones."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*command: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*command, "--help"])
        assert not ended.value.code
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize(("command", "words"), list(commands()))
def test_every_command_exists_and_takes_the_options_shown(command, words, help_of):
    assert command in registered_commands
    subcommands = {name.partition(".")[2] for name in registered_commands if name.startswith(f"{command}.")}
    subcommand = words[:1] if subcommands & set(words[:1]) else sorted(subcommands & {"run"})  # bench SPEC
    text = help_of(command, *subcommand)
    for option in (word.split("=")[0] for word in words if word.startswith("-")):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{option} is not an option of {command}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_is_on_the_page(command, help_of):
    assert "Example" in help_of(command)
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    assert f"protgraph {command}" in page or command == "new-plugin"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_page_has_a_target(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_row_of_a_table_has_the_cells_of_its_heading(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for table in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M):
        first, *others = table.splitlines()
        bars = len(re.findall(r"(?<!\\)\|", first))
        assert [row for row in others if len(re.findall(r"(?<!\\)\|", row)) != bars] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
