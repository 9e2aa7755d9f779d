"""Pages of the dataset cards: license, counts, rule of the splits, floors and published scores as Markdown.

Run ``python tools/card_pages.py NAME`` to print the page of ``datasets/NAME``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from protgraph.data.datasets.card import DatasetCard, KnownLeak, ReferenceScore, SplitCount, TaskCard, load_card

__all__ = ["card_files", "dataset_page", "main"]

ROOT = Path(__file__).resolve().parents[1]
_LEVELS = {"node": "residue", "graph": "protein", "edge": "edge", "pair": "pair of residues"}
#: Tasks with more classes have no column per class.
_CLASSES = 10


def card_files(folder: Path) -> list[Path]:
    """Return the cards of a dataset folder, ``dataset.toml`` first."""
    return sorted(folder.glob("*.toml"), key=lambda path: (path.name != "dataset.toml", path.name))


def dataset_page(folder: Path) -> str:
    """Return the Markdown page of a dataset folder: its README.md, if there is one, and each of its cards."""
    readme = folder / "README.md"
    cards = [load_card(path) for path in card_files(folder)]
    text = readme.read_text(encoding="utf-8").rstrip() if readme.exists() else f"# {folder.name}"
    level = 2 if readme.exists() or len(cards) > 1 else 1
    if level == 1:
        return "\n".join([text, "", *_lines(cards[0], "##")]) + "\n"
    sections = [line for card in cards for line in (f"## Card of {card.name}", "", *_lines(card, "###"))]
    return "\n".join([text, "", *sections]) + "\n"


def _lines(card: DatasetCard, heading: str) -> Iterator[str]:
    """Yield the lines of one card; ``heading`` is the mark of its sections."""
    yield from (_flat(card.description), "", *_commands(card), "")
    yield from _table(("property", "value"), _properties(card), "| --- | --- |")
    yield from (f"{heading} Splits", "", _flat(card.split_rule), "")
    counts = [(split, _number(c.proteins), _number(c.residues)) for split, c in card.splits.items()]
    yield from _table(("split", "examples", "residues"), counts)
    leaks = [_leak(leak, card) for leak in card.provenance.known_leaks]
    yield from ("Known leaks:", "", *leaks, "") if leaks else ()
    for name, task in card.tasks.items():
        yield from (f"{heading} Task {name}", "", *_task(task))


def _commands(card: DatasetCard) -> list[str]:
    prepare = [f"protgraph data prepare {card.name} --from FOLDER"]
    if any(source.files for source in card.provenance.sources):
        prepare = [f"protgraph data prepare {card.name} --download"]
    lines = [] if card.name == "pdb_core" else prepare
    return ["```bash", *lines, f"protgraph data info {card.name}", "```"]


def _properties(card: DatasetCard) -> list[tuple[str, str]]:
    terms = card.provenance
    sources = [f"[{s.repository}](https://github.com/{s.repository}) at `{s.commit[:7]}`" for s in terms.sources]
    rows = [
        ("name, version", f"`{card.name}`, {card.version}"),
        ("license", card.license),
        ("redistribution", terms.redistribution),
        ("terms of trained models", terms.weights_note),
        ("train on", terms.train_on),
        ("source", "; ".join(sources)),
        ("citation", card.citation),
    ]
    return [(name, _flat(value)) for name, value in rows if value]


def _leak(leak: KnownLeak, card: DatasetCard) -> str:
    return (
        f"- {leak.related} of {card.splits[leak.split].proteins} proteins of {leak.split} have a relative in "
        f"{leak.other}, {leak.close} of them at ≥ 95 % identity ({leak.source})."
    )


def _task(task: TaskCard) -> Iterator[str]:
    yield from (f"{_target(task)} {_flat(task.labels)}", "", f"Examples: {_flat(task.examples)}", "")
    yield from _table(*_counts(task))
    scores = [_score("floor", score) for score in task.floors] + [_score("published", s) for s in task.published]
    if scores:
        header = ("kind", "method", "metric", "value", "split", "trained on", "source")
        yield from _table(header, scores, "| --- | --- | --- | ---: | --- | --- | --- |")


def _target(task: TaskCard) -> str:
    target = task.target
    unit = "" if target.unit == "dimensionless" else f" ({target.unit})"
    description = {
        "classification": f"One of {target.size} classes",
        "multilabel": "One binary label" if target.size == 1 else f"{target.size} binary labels",
        "regression": "One number" if target.size == 1 else f"{target.size} numbers",
        "vectors": "Vectors",
        "coordinates": "Coordinates",
    }[target.kind]
    return f"**{description} per {_LEVELS[target.level]}{unit}.**"


def _counts(task: TaskCard) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and rows of the counts of a task per split."""
    target = task.target
    is_binary = target.kind == "multilabel" and target.size == 1 and not task.is_derived
    header = ["split", "examples", "residues"] + ["labeled"] * (not task.is_derived)
    names = [f"`{name}`" for name in target.names]
    classes = names if names and len(names) <= _CLASSES and any(c.per_class for c in task.counts.values()) else []
    header += ["positive", "prevalence"] if is_binary else classes
    rows = [_count(split, count, len(header), is_binary) for split, count in task.counts.items()]
    return tuple(header), rows


def _count(split: str, count: SplitCount, columns: int, is_binary: bool) -> tuple[str, ...]:
    cells = [split, _number(count.proteins), _number(count.residues)]
    cells += [] if count.labeled is None else [_number(count.labeled)]
    cells += [_number(number) for number in count.per_class]
    if is_binary and count.per_class and count.labeled:
        cells.append(f"{count.per_class[0] / count.labeled:.4f}")
    return tuple((cells + ["–"] * columns)[:columns])


def _score(kind: str, score: ReferenceScore) -> tuple[str, ...]:
    source = score.source + ("" if score.confirmed else " (not confirmed)")
    return kind, score.method, score.metric, f"{score.value:g}", score.split, score.trained_on or "–", source.strip()


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], rule: str | None = None) -> Iterator[str]:
    """Yield a Markdown table, columns after the first aligned right, and an empty line."""
    yield from (_row(header), rule or f"| --- |{' ---: |' * (len(header) - 1)}")
    yield from (_row([cell.replace("|", "\\|") for cell in row]) for row in rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _flat(text: str) -> str:
    return " ".join(text.split())


def main(arguments: list[str]) -> int:
    """Print the page of a dataset folder, and return the exit code."""
    sys.stdout.write(dataset_page(ROOT / "datasets" / arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
