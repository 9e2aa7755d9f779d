"""Check that every measured number of a benchmark page or a card names the command that gave it.

Run ``python tools/check_numbers.py`` in the checkout (``make lint`` does), or with Markdown files to check only those.
Prints one line per finding and exits with 1 if there is any.

A measurement is a number with a unit of time or memory, a rate, a ratio, a percentage, a value with ±, or a score (in
a table whose heading names a metric, or beside the name of a metric). Its section, from one heading to the next, needs
a command that measures (``MEASURING``), or its paragraph, list or table needs a source: a paper, a DOI or a card.
Limits ("at most 6 MB"), thresholds ("30 % identity") and code are not measurements. Definitions that look like one are
exempt by a comment with their number in the section: ``<!-- not measured: 2 -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Section", "main", "measurements", "number_findings", "pages", "sections"]

ROOT = Path(__file__).resolve().parents[1]

_COST = (
    r"protgraph (?:bench|train|recipe|featurize)\b", r"protgraph data verify\b",
    r"protgraph \w+(?: [^`\n]*)? --dry-run",
    r"make (?:bench|test|test-slow|docs|lint)\b", r"python -m (?:benchmarks|tests)\.\w", r"python tools/\w",
    r"(?:\S*/)?pytest\b", r"tests/[\w/]+\.py", r"time\b", r"du\b", r"ls -l\b",
)  # fmt: skip
_SCORES = (r"protgraph (?:check|compare|info|score)\b", r"protgraph data (?:check|info|inspect|split)\b")


def _commands(*patterns: str) -> re.Pattern[str]:
    """Return the pattern of commands in code: at its beginning, after "$", or after variables."""
    return re.compile(rf"^(?:\$ )?(?:[A-Z][A-Z_]*=\S+ )*(?:{'|'.join(patterns)})", re.MULTILINE)


#: Commands that print times, memory and rates; and those that print scores and shares.
MEASURING = {"cost": _commands(*_COST), "score": _commands(*_COST, *_SCORES)}
#: A publication or a card.
SOURCE = re.compile(
    r"\bdoi\b|arXiv:\d|\bet al\.|\b[A-Z][\w’'-]+(?: & [A-Z][\w-]+)? (?:\(\d{4}\)|(?:19|20)\d\d\b)"
    r"|\]\([^)]*(?:plugins/[\w/]+/README\.md|datasets/[\w/]+\.(?:toml|md))\)"
)
_NUMBER = r"(?<![\w.,/^-])[−-]?(?:\d[\d,  ]*)?(?:\d|\.\d)[\d.]*"
_UNITS = (
    r"(?:µs|ms|s|min|h|hours?|minutes?|seconds?|days?|bytes?|[kMGTP]?B|[KMGT]iB)(?![\w/])"
    r"|\w*/s\b|\w+ per second\b|-fold\b|times (?:as|the|that|longer|larger|smaller|faster|slower)\b|×(?! ?[\d.])"
)
_UNIT = re.compile(rf"(?P<number>{_NUMBER}) ?(?:{_UNITS})")
_SHARE = re.compile(rf"(?P<number>{_NUMBER}) ?%(?! ?(?:identity|interval|bootstrap|confidence|percentile))")
_SPREAD = re.compile(rf"(?P<number>{_NUMBER}) ?± ?[\d.]")
_METRICS = (
    r"accuracy|macro.?f1|auprc|auroc|auc|mcc|dice|f1|perplexity(?:_\w+)?|recovery(?:_\w+)?|rmse|mae|rmsd|pearson\w*|spearman\w*"
    r"|correlations?|p@l\S*|lddt\w*|tm.score|gdt\S*|rand index|brier score"
)
_SCORE = re.compile(rf"\b(?:{_METRICS})\b[^.;|]{{0,40}}?(?P<number>[−-]?\d?\.\d+)", re.IGNORECASE)
_HEADINGS = rf"{_METRICS}|agreement|difference|float64|float32|published|metric|value|score"
_METRIC_CELL = re.compile(rf"\b(?:{_HEADINGS})\b", re.IGNORECASE)
#: Words before a number that make it a limit, a choice or a definition.
LIMIT = re.compile(
    r"(?:[≥≤<>=]|\b(?:at least|at most|up to|above|below|within|more than|less than|fewer than|than|under|over|beyond"
    r"|until|default|every|each|threshold(?: of)?|with a probability of|interval|distance(?: of)?))[ (]*$",
    re.IGNORECASE,
)
_EXEMPT = re.compile(r"<!-- not measured: (\d+) -->")
_CODE = re.compile(r"^```.*?^```[^\S\n]*$|`[^`\n]+(?:\n[^`\n]+)?`", re.MULTILINE | re.DOTALL)

Finding = tuple[Path, int, str]


class Section(NamedTuple):
    """Text from a heading, or the beginning of a page, to the next heading.

    Parameters
    ----------
    line : int
        Number of its first line, from 1.
    text : str
        With the heading.
    """

    line: int
    text: str

    def has_command(self, kind: str) -> bool:
        """Return True if code of the section has a command that measures this kind."""
        return any(MEASURING[kind].search(_inside(match.group())) for match in _CODE.finditer(self.text))

    @property
    def exempt(self) -> int:
        """Number of measurements that comments exempt."""
        return sum(int(number) for number in _EXEMPT.findall(_CODE.sub("", self.text)))


def pages() -> list[Path]:
    """Return the pages that are checked: those of benchmarks and the cards of models."""
    benchmarks = [ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "comparison.md"]
    return [*benchmarks, *sorted((ROOT / "plugins").rglob("README.md"))]


def sections(text: str) -> Iterator[Section]:
    """Yield the sections of a page; lines of code that begin with # are no headings."""
    code = [match.span() for match in _CODE.finditer(text)]
    heads = [m.start() for m in re.finditer(r"^#{1,6} ", text, re.MULTILINE)]
    starts = [0]
    for head in heads:
        is_in_code = any(begin < head < end for begin, end in code)
        if head > 0 and not is_in_code:
            starts.append(head)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield Section(text.count("\n", 0, start) + 1, text[start:end])


def _inside(code: str) -> str:
    """Return the text of a code block, or of code in a sentence, which may go on in the next line."""
    return code.partition("\n")[2] if code.startswith("```") else code.strip("`").replace("\n", " ")


def _blank(match: re.Match[str]) -> str:
    """Replace code by spaces and line ends, so that positions stay."""
    return "`" + re.sub(r"[^\n]", " ", match.group()[1:-1]) + "`"


def measurements(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of each measurement without a source in its block; a table of scores counts once."""
    prose = _CODE.sub(_blank, text)
    for block in re.finditer(r"\S.*?(?=\n[^\S\n]*\n|\Z)", prose, re.DOTALL):
        original = text[block.start() : block.end()]
        if SOURCE.search(original):
            continue
        first, rows = text.count("\n", 0, block.start()) + 1, block.group().split("\n")
        if rows[0].startswith("|") and _METRIC_CELL.search(original.split("\n")[0]):
            numbers = re.findall(rf"(?<!\w){_NUMBER}", "\n".join(rows[2:]))
            decimals = sum("." in number for number in numbers)
            if decimals:
                yield first, "score", f"table of {decimals} scores"
                continue
        for number, line in enumerate(rows, first):
            for kind, measurement in _measurements_of_line(line):
                yield number, kind, measurement


def _measurements_of_line(line: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each measurement of a line; a number of several patterns counts as the first of them."""
    starts: set[int] = set()
    for kind, pattern in (("cost", _UNIT), ("score", _SHARE), ("score", _SPREAD), ("score", _SCORE)):
        for match in pattern.finditer(line):
            start = match.start("number")
            if start not in starts and not LIMIT.search(line[:start]):
                starts.add(start)
                yield kind, match.group().strip()


def number_findings(path: Path) -> Iterator[Finding]:
    """Yield measurements of a page without a command or source, and wrong numbers of exempt ones."""
    text = path.read_text(encoding="utf-8")
    is_card = "trained" in path.parts  # all numbers of a card are from its recipe
    for section in [Section(1, text)] if is_card else sections(text):
        has_command = {kind: section.has_command(kind) for kind in MEASURING}
        uncovered = [(line, text) for line, kind, text in measurements(section.text) if not has_command[kind]]
        if section.exempt and section.exempt == len(uncovered):
            continue
        if section.exempt:
            text = f"{section.exempt} numbers are exempt, but {len(uncovered)} have no command. Correct the comment"
            yield path, section.line, text
        for line, text in uncovered:
            advice = "Name the command that measures it in the section, cite its source, or exempt it"
            yield path, section.line + line - 1, f"{text!r} has no command. {advice}"


def main(arguments: list[str]) -> int:
    """Print the findings of the given pages, or of all, and return the exit code."""
    chosen = [Path(a) for a in arguments] or pages()
    findings = [finding for path in chosen for finding in number_findings(path)]
    for path, line, text in findings:
        print(f"{path.relative_to(ROOT) if path.is_absolute() else path}:{line}: {text}")
    exempt = sum(section.exempt for path in chosen for section in sections(path.read_text(encoding="utf-8")))
    print(f"{len(findings)} findings" if findings else f"numbers: no findings, {exempt} exempt")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
