"""Test the check of measured numbers on pages that break its rule."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_numbers", ROOT / "tools" / "check_numbers.py")
check_numbers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_numbers)

TABLE = "| model | accuracy |\n|---|---:|\n| `gcn` | 0.875 |\n| `gat` | .899 |\n"
#: Comments and numbers that the pages of the documentation may exempt; raise it only with a reason in the commit.
EXEMPT_AT_MOST = 0


def texts(tmp_path: Path, page: str) -> list[tuple[int, str]]:
    """Return line and text of the findings of a page."""
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    return [(line, text) for _, line, text in check_numbers.number_findings(path)]


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("The run took 3 min on two cores.", "3 min"),
        ("It took about 9.8 s.", "9.8 s"),
        ("The store has 58 TB.", "58 TB"),
        ("The process needed 624 MiB at most.", "624 MiB"),
        ("Training reads 23,067 residues per second.", "23,067 residues per second"),
        ("The cluster writes 20 GB/s.", "20 GB/s"),
        ("GCN is 6.6 × as fast as the other.", "6.6 ×"),
        ("The parser is 17 times as fast.", "17 times as"),
        ("They agree for 99.94 % of the residues.", "99.94 %"),
        ("The loss was 0.906 ± 0.003.", "0.906 ± 0"),
        ("With noise, AUPRC is .504.", "AUPRC is .504"),
        ("A correlation of −0.82 was found.", "correlation of −0.82"),
        ("The adjusted Rand index is 0.81.", "Rand index is 0.81"),
    ],
)
def test_a_measurement_without_a_command_is_found(tmp_path, sentence, number):
    ((line, text),) = texts(tmp_path, f"# Title\n\nWords.\n\n{sentence}\n")
    assert line == 5 and text.startswith(repr(number))


@pytest.mark.parametrize(
    "sentence",
    [
        "Edges connect CA atoms within 8 Å.",
        "Homologs have 30 % identity over 80 % of a chain.",
        "Intervals are 95 % bootstrap intervals.",
        "A page has at most 6 MB, and a request may take up to 30 s.",
        "The default 500 MB can be changed, as `--memory-limit 4GiB` does.",
        "The TM-score must be at least 0.5, and lDDT > 0.9.",
        "Of 1,895 files, 1,872 are equal (Table 2).",
        "Features are multiplied: the distance × 0.1.",
        "```text\naccuracy 0.906 in 12 s\n```",
    ],
)
def test_limits_definitions_and_code_are_no_measurements(tmp_path, sentence):
    assert texts(tmp_path, f"# Title\n\n{sentence}\n") == []


def test_a_table_of_scores_is_one_finding(tmp_path):
    ((line, text),) = texts(tmp_path, f"# Title\n\n{TABLE}")
    assert (line, text.split(".")[0]) == (3, "'table of 2 scores' has no command")
    assert texts(tmp_path, TABLE.replace("accuracy", "edges").replace("0.875", "875").replace(".899", "899")) == []


@pytest.mark.parametrize(
    "command",
    [
        "`make bench`", "`OMP_NUM_THREADS=1 protgraph bench spec.toml`", "`python -m benchmarks.large_set_plan`",
        "`tests/nn/test_convolutions.py`", "`time protgraph data check\npdb_core`",
        "```bash\nprotgraph bench spec.toml   # tables\n```",
        "```sh\nfor i in 1 2; do\n  true\ndone\npytest -m slow tests/nn\n```",
    ],
)  # fmt: skip
def test_a_command_of_the_section_is_enough(tmp_path, command):
    page = f"# Title\n\n{TABLE}\nIt took 3 min.\n\n{command}\n"
    assert texts(tmp_path, page) == []
    assert len(texts(tmp_path, page.replace("It took", "## Times\n\nIt took"))) == 1  # of the table, above the heading
    assert len(texts(tmp_path, page.replace(command, ""))) == 2


@pytest.mark.parametrize("command", ["`pip install .`", "`protgraph predict dna_site my.cif`", "$ make bench"])
def test_other_commands_and_plain_text_do_not_count(tmp_path, command):
    assert len(texts(tmp_path, f"{TABLE}\n{command}\n")) == 1


def test_a_card_gives_scores_but_no_times(tmp_path):
    ((line, text),) = texts(tmp_path, f"# Title\n\n{TABLE}\n`protgraph info gcn` took 12 s.\n")
    assert line == 8 and text.startswith("'12 s'")


@pytest.mark.parametrize(
    "source",
    [
        "Guo et al. 2017",
        "(Xu & Zhang 2010)",
        "doi:10.1/x",
        "arXiv:1912.09893",
        "[c](../datasets/dna_site/dataset.toml)",
    ],
)
def test_a_source_counts_for_its_paragraph_only(tmp_path, source):
    assert texts(tmp_path, f"AUPRC is 0.50. {source}\n") == []
    assert len(texts(tmp_path, f"AUPRC is 0.50.\n\n{source}\n")) == 1


def test_exempt_numbers_are_counted(tmp_path):
    page = "# Title\n\n<!-- not measured: {} -->\n\n15 % of the residues are masked, 8 bytes each.\n"
    assert texts(tmp_path, page.format(2)) == []
    for wrong in (1, 3):
        found = texts(tmp_path, page.format(wrong))
        assert len(found) == 3 and f"{wrong} numbers are exempt, but 2 have no command" in found[0][1]
    assert texts(tmp_path, "# Title\n\nWrite `<!-- not measured: 2 -->` in the section.\n") == []
    unused = texts(tmp_path, "# Title\n\n<!-- not measured: 1 -->\n\nNo number.\n")
    assert [text.split(".")[0] for _, text in unused] == ["1 numbers are exempt, but 0 have no command"]


def test_a_comment_in_code_is_no_heading():
    page = "# Title\n\n```sh\n# make bench\nmake bench\n```\n\n## Second\n"
    assert [section.line for section in check_numbers.sections(page)] == [1, 8]


def test_every_number_of_benchmark_pages_and_cards_names_its_command(capsys):
    assert check_numbers.main([]) == 0, capsys.readouterr().out
    exempt = [s.exempt for page in check_numbers.pages() for s in check_numbers.sections(page.read_text("utf-8"))]
    assert sum(exempt) <= EXEMPT_AT_MOST
    assert len(check_numbers.pages()) > 20
