"""Progress of a benchmark in the terminal: a bar, the remaining time, and one line per finished run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.wording import format_decimals, format_duration

__all__ = ["ProgressBar", "time_left"]


def time_left(jobs: Sequence[BenchJob], rows: Sequence[BenchRow], workers: int) -> float:
    """Estimate the seconds until all jobs are finished; NaN before the first row.

    The expected time of a job is the mean of the rows with the same model and task; without any, of the same model;
    otherwise of all rows. The sum is divided by the number of workers.
    """
    seconds = [(row, row.seconds) for row in rows if not row.error and math.isfinite(row.seconds)]
    if not seconds:
        return math.nan

    def expected(job: BenchJob) -> float:
        same_model = [(row, s) for row, s in seconds if row.model == job.model]
        same_task = [s for row, s in same_model if row.task == job.task]
        return fmean(same_task or [s for _, s in same_model] or [s for _, s in seconds])

    return sum(map(expected, jobs)) / max(min(workers, len(jobs)), 1)


class ProgressBar:
    """A :class:`protgraph.bench.run.BenchCallback` for the terminal; prints plain lines to a file or pipe.

    ``console``: output; standard error by default, so that tables can be piped from standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
        )
        self._left: dict[str, BenchJob] = {}
        self._rows: list[BenchRow] = []
        self._workers, self._total = 1, 0

    @property
    def counts(self) -> tuple[int, int]:
        """Number of finished runs, and of all."""
        return self._total - len(self._left), self._total

    def start(self, jobs: Sequence[BenchJob], finished: Sequence[BenchRow], workers: int) -> None:
        """Show the bar; rows of an earlier run count as finished."""
        self._left, self._rows, self._workers = {job.key: job for job in jobs}, list(finished), workers
        self._total = len(jobs) + len(finished)
        self.console.print(
            f"{self._total} runs: {len(finished)} finished before, {len(jobs)} to do; workers: {workers}"
        )
        for row in finished:
            if row.error:
                self._print(row)
        self._task = self._bar.add_task("bench", total=self._total, completed=len(finished), left=self._remaining())
        if jobs:
            self._bar.start()

    def add(self, row: BenchRow) -> None:
        """Print the row and update the estimate."""
        self._left.pop(row.key, None)
        self._rows.append(row)
        left = self._remaining()
        self._print(row, left)
        self._bar.update(self._task, completed=self._total - len(self._left), left=left)

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()

    def _remaining(self) -> str:
        if not self._left:
            return "done"
        return f"{format_duration(time_left(list(self._left.values()), self._rows, self._workers))} left"

    def _print(self, row: BenchRow, left: str = "") -> None:
        done = f"{self._total - len(self._left):>{len(str(self._total))}}/{self._total}"
        label = f"{done}  {row.model:<14} {row.task:<22} seed {row.seed}"
        if row.error:
            text = Text.assemble(f"{label}  ", ("failed", "red"), f": {row.error.splitlines()[0]}")
        else:
            val = row.metrics.get("val", {}).get(row.monitor, math.nan)
            scores = f"{row.monitor} {format_decimals(row.score, 3)} (val {format_decimals(val, 3)})"
            figures = f"{scores}  {format_duration(row.seconds)}"
            text = Text.assemble(f"{label}  {figures}  ", (left, "dim"))
        self.console.print(text, highlight=False, soft_wrap=True)
