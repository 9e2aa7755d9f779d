"""The documentation site: complete, without requests to other hosts, readable at the width of a phone, searchable."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.page_checks import check_logs

ROOT = Path(__file__).resolve().parents[2]
#: Pages of each kind: text, formulas and tables, output of programs, API, table of names, README of a family.
LOOKED_AT = (
    "index.html", "conventions.html", "start.html", "errors.html", "reference/protgraph.html",
    "reference/protgraph.structure.io.html", "reference/components.html", "families/gat.html",
    "dataset_cards/paratope.html", "model_cards/dna_site.html",
)  # fmt: skip


#: Script that returns the texts with a contrast below WCAG 2.1 AA.
LOW_CONTRAST = (ROOT / "tests" / "low_contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tools() -> Iterator[Any]:
    """Return a function that loads a module of the folder ``tools``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))

        def load(name: str) -> ModuleType:
            spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module

        yield load


def require_mkdocs() -> None:
    for name in ("mkdocs", "material", "mkdocstrings", "l2m4m"):
        if importlib.util.find_spec(name) is None:
            pytest.skip("the extra docs is not installed")


#: Programs of the shell blocks: another first word of a line is output, or has a prompt before it.
PROGRAMS = {"protgraph", "pip", "uv", "python", "python3", "pytest", "make", "git", "mkdir", "cd"}
SHELL_WORDS = {".", "for", "do", "done", "export", "srun", "sbatch", "torchrun"}
#: Languages of blocks with prompts, which a reader would copy: commands and output are in blocks of their own.
WITH_PROMPTS = {"console", "shell-session", "pycon", "doscon", "pwsh-session"}


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Return language and content of the fenced blocks of a page."""
    return [(m[2], m[3]) for m in re.finditer(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```", text, flags=re.M | re.S)]


def first_words(block: str) -> Iterator[str]:
    """Yield the first word of each command, after assignments of variables."""
    for line in block.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        yield from [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)][:1]


def all_pages(tools: Any) -> dict[str, str]:
    """Return the text of every page by name: of the repository, and those that are generated."""
    folders = ("docs", "plugins", "datasets", "benchmarks", "protgraph")
    paths = [ROOT / "README.md", *(path for folder in folders for path in sorted((ROOT / folder).rglob("*.md")))]
    pages = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return pages | tools("site_pages").generated_pages()


@pytest.mark.slow
def test_shell_blocks_can_be_pasted_into_bash(tools):
    require_mkdocs()
    faults, blocks = [], 0
    for name, text in all_pages(tools).items():
        for language, block in fenced_blocks(text):
            if language in WITH_PROMPTS:
                faults.append((name, language))
            if language in ("bash", "sh"):
                blocks += 1
                others = [word for word in first_words(block) if word not in PROGRAMS | SHELL_WORDS]
                parsed = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
                faults += [(name, problem) for problem in (*others, parsed.stderr) if problem]
    assert faults == [] and blocks > 100


@pytest.mark.slow
def test_the_copy_button_copies_what_runs(site, browser, tmp_path):
    """Each copied shell block runs with programs that do nothing; examples of docstrings have no prompts."""
    stubs = tmp_path / "bin"
    for path in (*(stubs / name for name in PROGRAMS - {"mkdir", "cd"}), tmp_path / ".venv" / "bin" / "activate"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    environment = {"PATH": f"{stubs}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path)}
    pages = (
        "start",
        "installation",
        "command_line",
        "dataset_cards/dna_site",
        "families/mutations",
    )
    shell_blocks = 0
    for page in pages:
        browser.get((site / f"{page}.html").as_uri())
        browser.execute_script(
            "window.copied = []; document.execCommand = "
            "() => Boolean(copied.push([...document.querySelectorAll('textarea')].at(-1).value))"
        )
        languages = browser.execute_script(
            "return [...document.querySelectorAll('.md-code__button[data-clipboard-target], .md-clipboard')]"
            ".map(b => { b.click(); return b.closest('.highlight').className })"
        )
        copied = browser.execute_script("return copied")
        assert len(copied) == len(languages) > 0, page
        for language, text in zip(languages, copied, strict=True):
            assert not re.search(r"^(\$|>>>|\.\.\.) ", text, flags=re.M), (page, text)
            if "language-bash" in language:
                shell_blocks += 1
                run = subprocess.run(
                    ["bash", "-e"],
                    input=text,
                    env=environment,
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, (page, text, run.stderr)
    assert shell_blocks > 10


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set(), "add the pages to the navigation in mkdocs.yml"


def test_the_model_zoo_has_the_numbers_of_the_cards(tools):
    zoo = tools("model_zoo")
    text = zoo.zoo_page()
    assert zoo.PAGE.read_text(encoding="utf-8") == text, "run: python tools/model_zoo.py"
    card = json.loads((ROOT / "plugins" / "trained" / "dna_site" / "card.json").read_text(encoding="utf-8"))
    value, low, high = card["splits"]["test"]["metrics"]["auprc"]
    (row,) = re.findall(r"^\| \[dna_site\].*", text, flags=re.M)
    assert f"auprc {value:.3f} [{low:.3f}, {high:.3f}]" in row
    assert text.count("\n| [") == len(list(ROOT.glob("plugins/trained/*/card.json")))


def cards() -> list[Path]:
    """Return the cards of all datasets."""
    return sorted(card for path in ROOT.glob("datasets/*/dataset.py") for card in path.parent.glob("*.toml"))


def test_every_dataset_card_has_a_page_and_is_linked(tools):
    pages, text = tools("card_pages"), (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    for path in cards():
        assert f"](../{path.relative_to(ROOT).as_posix()})" in text, path
        page = pages.dataset_page(path.parent)
        card = tomllib.loads(path.read_text(encoding="utf-8"))
        counts = {name: count for name, count in card["splits"].items() if name not in ("rule", "known_leaks")}
        for split, count in counts.items():
            assert f"| {split} | {count['proteins']:,} | {count['residues']:,} |" in page, (path, split)
        floors = [floor for task in card["tasks"].values() for floor in task.get("floors", ())]
        assert page.count("| floor |") >= len(floors)
        assert all(f"| {floor['method']} | {floor['metric']} | {floor['value']:g} |" in page for floor in floors), path
        for words in (card["license"], card["splits"]["rule"], card["citation"]):
            assert " ".join(words.split()) in page, path
    assert len(cards()) > 20


def test_the_page_of_a_card_has_prevalence_and_known_leaks(tools):
    page = tools("card_pages").dataset_page(ROOT / "datasets" / "dna_site")
    assert "| test | 129 | 37,515 | 37,515 | 2,240 | 0.0597 |" in page
    assert "- 6 of 86 proteins of val have a relative in train, 0 of them at ≥ 95 % identity" in page


@pytest.mark.slow
def test_every_generated_page_is_in_the_navigation(tools):
    require_mkdocs()
    from mkdocs.config import load_config

    pages = tools("site_pages")
    config = pages.on_config(load_config(str(ROOT / "mkdocs.yml")))
    listed = set(re.findall(r"[\w/.-]+\.md", repr(config.nav)))
    existing = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == set(pages.generated_pages()) | existing


@pytest.mark.slow
def test_every_exported_name_is_on_a_reference_page(tools):
    require_mkdocs()
    names, pages = tools("public_names"), tools("site_pages").generated_pages()
    text = "\n".join(pages.values())
    shown = {(m, n) for m, block in re.findall(r"^::: (\S+)\n(.*?)(?=^\S|\Z)", text, flags=re.M | re.S)
             for n in re.findall(r"^        - (\w+)$", block, flags=re.M)}  # fmt: skip
    modules = [
        m for package in ("protgraph", "protgraph_plugins", "protgraph_datasets") for m in names.modules_of(package)
    ]
    expected = {(m, n) for m in modules if not m.startswith("protgraph.cli") for n in names.public_names(m)}
    assert len(expected) > 500
    assert expected - shown == set()


@pytest.mark.slow
def test_every_public_name_has_an_anchor_in_the_site(site, tools):
    names = tools("public_names")
    text = "\n".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    anchors = set(re.findall(r"\bid=\"?([\w.]+)", text))
    modules = [m for package in names.FOLDERS for m in names.modules_of(package) if not m.startswith("protgraph.cli")]
    expected = {f"{module}.{name}" for module in modules for name in names.public_names(module)}
    assert len(expected) > 1500
    assert expected - anchors == set()


def test_the_home_of_a_name_is_the_module_that_defines_it(tools):
    import protgraph as pg

    home = tools("public_names").home
    assert home("protgraph", "fit") == f"{pg.fit.__module__}.fit"
    assert home("protgraph", "Edges") == f"{pg.Edges.__module__}.Edges"
    assert home("protgraph.nn", "GraphLayer") == "protgraph.nn.module.GraphLayer"


def test_anchors_of_attributes_packages_and_private_names(tools):
    anchor = tools("public_names").anchor
    assert anchor("protgraph.structure.Residues.hide") == "protgraph.structure.residues.residues.Residues.hide"
    assert anchor("protgraph.structure.Residues.b_factor") == "protgraph.structure.residues.residues.Residues"
    assert anchor("protgraph.testing") == "protgraph.testing"
    assert anchor("numpy.cross") is None and anchor("protgraph.fit.nothing") == "protgraph.train.training.fit"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built with warnings as errors: links, anchors and cross-references."""
    require_mkdocs()
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.slow
def test_no_page_loads_something_from_another_host(site):
    pattern = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
    found = {(p.name, url) for p in site.rglob("*.html") for url in pattern.findall(p.read_text(encoding="utf-8"))}
    assert found == set()
    assert len(list(site.rglob("*.html"))) > 80


@pytest.mark.slow
def test_cards_are_linked_and_show_their_figures(site):
    linked = set(re.findall(r"href=[\"']?(dataset_cards/\w+\.html)", (site / "datasets.html").read_text("utf-8")))
    assert linked == {f"dataset_cards/{path.parent.name}.html" for path in cards()}
    zoo = (site / "model_zoo.html").read_text("utf-8")
    for card in ROOT.glob("plugins/trained/*/card.json"):
        page = site / "model_cards" / f"{card.parent.name}.html"
        assert f"model_cards/{page.name}" in zoo
        for figure in re.findall(r"<img[^>]*src=[\"']?([^\"'\s>]+)", page.read_text("utf-8")):
            assert (page.parent / figure).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1300, 390])
def test_pages_open_without_errors_at_the_width_of_a_screen_and_of_a_phone(site, browser, width):
    for page in LOOKED_AT:
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get((site / page).as_uri())
        overflow = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert overflow <= 1, (page, width, overflow)
        assert browser.execute_script("return [...document.images].filter(i => !i.hasAttribute('alt')).length") == 0
        assert browser.execute_script("return document.querySelectorAll('h1').length") == 1, page
        assert browser.execute_script(LOW_CONTRAST) == [], page
    check_logs(browser)


@pytest.mark.slow
def test_search_works_on_a_site_opened_from_disk(site, browser):
    browser.get((site / "index.html").as_uri())
    field = "document.querySelector('input.md-search__input')"
    browser.execute_script(f"document.querySelector('label[for=__search]').click(); {field}.focus()")
    browser.execute_script(
        f"{field}.value = 'insertion code'; {field}.dispatchEvent(new Event('keyup', {{bubbles: true}}))"
    )
    deadline, found = time.monotonic() + 60, []
    while not found and time.monotonic() < deadline:
        time.sleep(0.3)
        script = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.getAttribute('href'))"
        found = browser.execute_script(script)
    assert any("design.html" in link for link in found), found
    check_logs(browser)
