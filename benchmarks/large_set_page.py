"""Tables of ``docs/large_sets.md`` from measured stages, written between markers of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.large_set_plan import Stage, plan_table

__all__ = ["LargeSet", "figures_table", "stages_table", "write_page"]

PAGE = Path(__file__).parents[1] / "docs" / "large_sets.md"
_SHARD = 25_000  # residues, the default of ``protgraph featurize``
_FEW_CORES = 100


@dataclass(frozen=True)
class LargeSet:
    """Set and computer of a plan.

    Parameters
    ----------
    records : int
    residues : float
        Mean per record.
    cores : int
    price : float
        Of a core for an hour.
    shard_residues : int
        Residues per shard.
    """

    records: int = 214_000_000
    residues: float = 335.0
    cores: int = 1000
    price: float = 0.04
    shard_residues: int = 1_000_000

    def rows(self, stages: Sequence[Stage], cores: int | None = None) -> list[tuple[str, float, float, float, float]]:
        """Return the rows of :func:`plan_table`."""
        return plan_table(
            stages,
            records=self.records,
            residues=self.residues,
            cores=cores or self.cores,
            price=self.price,
            shard_residues=self.shard_residues,
        )


def stages_table(stages: Sequence[Stage], large: LargeSet) -> str:
    """Return the Markdown table of rates, hours, bytes and cost."""
    lines = [
        "| stage | µs per entry | µs per residue | bytes per residue | CPU hours | hours | GB | cost |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    rows = large.rows(stages)
    for stage, (name, cpu, wall, size, cost) in zip([*stages, None], rows, strict=True):
        name, rates = re.sub(r"(?<=\d),(?=\d)", " ", name), [""] * 3
        if stage is not None:
            rates = [_number(1e6 * stage.per_record, 1), _number(1e6 * stage.per_residue, 1)]
            rates.append(_number(stage.bytes_per_residue, 1 if stage.bytes_per_residue < 100 else 0))
            name += " (one core)" if stage.per_record else ""
        values = [
            _number(cpu, 1 if cpu < 10 else 0),
            _number(wall, 2),
            _number(size, 0),
            _number(cost, 1 if cost < 10 else 0),
        ]
        lines.append(f"| {' | '.join([name, *rates, *values])} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines)


def figures_table(stages: Sequence[Stage], large: LargeSet, *, wide: float, features: str, wide_features: str) -> str:
    """Return the Markdown table of figures that the text of the page names, each with the command that gives it.

    Parameters
    ----------
    stages, large
        As for :func:`stages_table`.
    wide : float
        Bytes per residue of a store with the features ``wide_features``.
    features, wide_features : str
        Options ``-f`` of the commands.
    """
    _, _, hours, size, cost = large.rows(stages)[-1]
    few = large.rows(stages, _FEW_CORES)[-1][2]
    residues = large.records * large.residues
    stored = next(stage.bytes_per_residue for stage in stages if stage.name == "writing shards")
    read = next(stage.bytes_per_residue for stage in stages if stage.name == "foldcomp database") * residues
    plan = "python -m benchmarks.large_set_plan"
    own = f"`{plan} {features}`"
    rows = [
        ("database of foldcomp", f"{read / 1e12:.1f} TB", own),
        ("store", f"{stored * residues / 1e12:.0f} TB", own),
        (
            f"shards of {_space(_SHARD)} residues, the default",
            _space(round(residues / _SHARD, -4)),
            f"entries × residues / {_space(_SHARD)}",
        ),
        (
            f"shards of {_space(large.shard_residues)} residues",
            f"{_space(round(residues / large.shard_residues, -2))}, of {stored * large.shard_residues / 1e9:.1f} GB",
            own,
        ),
        (
            "store with 16 radial functions for each of 30 neighbors",
            f"{_space(round(wide, -1))} bytes per residue, {wide * residues / 1e12:.0f} TB",
            f"`{plan} {wide_features}`",
        ),
        (f"time with {_space(large.cores)} cores", f"{hours:.1f} hours, {_rate(size, hours)}", own),
        (f"time with {_FEW_CORES} cores", f"{few:.1f} hours, {_rate(size, few)}", f"{own[:-1]} --cores {_FEW_CORES}`"),
        (f"cost at {large.price} per core and hour", f"{cost:.0f}", own),
    ]
    lines = ["| figure | value | from |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def write_page(parts: dict[str, str], page: Path = PAGE) -> None:
    """Replace the text between the markers ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of each part.

    Raises
    ------
    ValueError
        A marker is missing.
    """
    text = page.read_text(encoding="utf-8")
    for name, content in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{page}: the markers {begin.strip()!r} and {end!r} are missing. Add them.")
        text = f"{before}{begin}{content}\n{end}{after}"
    page.write_text(text, encoding="utf-8")


def _rate(gigabytes: float, hours: float) -> str:
    return f"{gigabytes / hours / 3600:.0f} GB/s read and written"


def _number(value: float, digits: int) -> str:
    """Return a number with spaces between thousands; nothing for 0."""
    if value == 0:
        return ""
    return _space(round(value, digits)) if digits == 0 or value >= 100 else f"{value:.{digits}f}"


def _space(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")
