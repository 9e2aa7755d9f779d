r"""Texts are printed as they are, not as emoji or markup; a character that an encoding lacks is escaped."""

from __future__ import annotations

import io
import re
import sys

import pytest
import typer

from protgraph.cli import app
from protgraph.cli.console import escape_unencodable, text_console
from protgraph.cli.error_report import print_error, print_warning
from protgraph.cli.failures import report_failures
from protgraph.featurize import Failure
from tests.cli.test_help_width import COMMANDS

TEXT = "B:52[A] [bold]x[/bold] :A: file:B:1.cif :smile:"
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf]")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch):
    """Replace both streams by some of an encoding; return a function that reads both."""

    def arrange(encoding: str):
        files = [io.BytesIO(), io.BytesIO()]
        for name, file in zip(("stdout", "stderr"), files, strict=True):
            monkeypatch.setattr(sys, name, io.TextIOWrapper(file, encoding=encoding))

        def read() -> str:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            return "".join(file.getvalue().decode(encoding) for file in files)

        return read

    return arrange


def run(*args: str) -> int:
    try:
        app.main(args)
    except SystemExit as e:
        return e.code or 0
    return 0


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp437"])
@pytest.mark.parametrize(
    "args", [["info", "gat"], ["list", "models"], ["describe", "gat"], ["info", "ligand_site"], ["zzz→"], ["info", "→"]]
)
def test_output_in_an_encoding_without_all_characters(streams, encoding, args):
    read = streams(encoding)
    assert run(*args) == (2 if "→" in args[-1] else 0)
    assert read().strip()


def test_a_character_that_the_encoding_lacks_is_escaped(streams):
    read = streams("cp1252")
    escape_unencodable()
    typer.echo("20 × 20 Å → ΔΔG")
    text_console().print("20 × 20 Å → ΔΔG")
    print_error("20 × 20 Å → ΔΔG")
    escaped = r"20 × 20 Å \u2192 \u0394\u0394G"
    assert read().split("\n")[:3] == [escaped, escaped, f"error: {escaped}"]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: "-".join(path) or "protgraph")
def test_help_of_every_command_in_another_encoding_and_without_emoji(streams, path):
    read = streams("cp1252")
    assert run(*path, "--help") == 0
    assert "Usage" in (text := read()) and not EMOJI.search(text)


def test_texts_of_users_are_neither_emoji_nor_markup(streams, tmp_path):
    read = streams("utf-8")
    text_console().print(TEXT)
    text_console(stderr=True).print(TEXT)
    print_error(TEXT)
    print_warning(TEXT)
    with pytest.raises(typer.Exit):
        report_failures([Failure.of(TEXT, "", ValueError(TEXT))], tmp_path / "o.csv", any_succeeded=True)
    assert read().count(TEXT) == 6


def test_fetch_prints_names_as_they_are(streams, monkeypatch):
    read = streams("utf-8")
    monkeypatch.setenv("PROTGRAPH_OFFLINE", "1")
    assert run("fetch", ":A:[A]") == 2
    assert ":A:[A]" in read()
