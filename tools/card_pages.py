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
    lines = [readme.read_text(encoding="utf-8").rstrip() if readme.exists() else f"# {folder.name}", ""]
    if len(cards) == 1 and not readme.exists():
        lines += _lines(cards[0], "##")
    else:
        for card in cards:
            lines += [f"## Card of {card.name}", "", *_lines(card, "###")]
    return "\n".join(lines) + "\n"


def _lines(card: DatasetCard, heading: str) -> Iterator[str]:
    """Yield the lines of one card; ``heading`` is the mark of its sections."""
    yield from (_flat(card.description), "", *_commands(card), "")
    yield from _table(("property", "value"), _properties(card), "| --- | --- |")
    yield from (f"{heading} Splits", "", _flat(card.split_rule), "")
    counts = [(split, _number(c.proteins), _number(c.residues)) for split, c in card.splits.items()]
    yield from _table(("split", "examples", "residues"), counts)
    leaks = [_leak(leak, card) for leak in card.provenance.known_leaks]
    if leaks:
        yield from ("Known leaks:", "", *leaks, "")
    for name, task in card.tasks.items():
        yield from (f"{heading} Task {name}", "", *_task(task))


def _commands(card: DatasetCard) -> list[str]:
    lines = ["```bash"]
    if card.name != "pdb_core":  # which is distributed
        has_files = any(source.files for source in card.provenance.sources)
        source = "--download" if has_files else "--from FOLDER"
        lines.append(f"protgraph data prepare {card.name} {source}")
    lines += [f"protgraph data info {card.name}", "```"]
    return lines


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
    scores = [_score("floor", score) for score in task.floors]
    scores += [_score("published", score) for score in task.published]
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
    header = ["split", "examples", "residues"]
    if not task.is_derived:
        header.append("labeled")
    is_binary = target.kind == "multilabel" and target.size == 1 and not task.is_derived
    has_class_counts = any(count.per_class for count in task.counts.values())
    if is_binary:
        header += ["positive", "prevalence"]
    elif has_class_counts and len(target.names) <= _CLASSES:
        header += [f"`{name}`" for name in target.names]
    rows = [_count(split, count, len(header), is_binary) for split, count in task.counts.items()]
    return tuple(header), rows


def _count(split: str, count: SplitCount, columns: int, is_binary: bool) -> tuple[str, ...]:
    cells = [split, _number(count.proteins), _number(count.residues)]
    if count.labeled is not None:
        cells.append(_number(count.labeled))
    cells += [_number(number) for number in count.per_class]
    if is_binary and count.per_class and count.labeled:
        prevalence = count.per_class[0] / count.labeled
        cells.append(f"{prevalence:.4f}")
    missing = ["–"] * max(0, columns - len(cells))
    return tuple([*cells, *missing][:columns])


def _score(kind: str, score: ReferenceScore) -> list[str]:
    source = score.source
    if not score.confirmed:
        source += " (not confirmed)"
    trained_on = score.trained_on or "–"
    return [kind, score.method, score.metric, f"{score.value:g}", score.split, trained_on, source.strip()]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], rule: str | None = None) -> Iterator[str]:
    """Yield a Markdown table, columns after the first aligned right, and an empty line."""
    yield _row(header)
    yield rule or f"| --- |{' ---: |' * (len(header) - 1)}"
    for row in rows:
        yield _row([cell.replace("|", "\\|") for cell in row])
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
