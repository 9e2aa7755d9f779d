"""Benchmarks: models × tasks × seeds to rows, tables, figures and a report."""

from protgraph.bench.progress import ProgressBar
from protgraph.bench.report import write_report
from protgraph.bench.rows import BenchRow, read_rows
from protgraph.bench.run import run_bench
from protgraph.bench.run_comparison import RunDifference, compare_runs
from protgraph.bench.spec import BenchSpec
from protgraph.bench.summary_table import Summary, summarize

__all__ = [
    "BenchSpec",
    "ProgressBar",
    "BenchRow",
    "RunDifference",
    "Summary",
    "compare_runs",
    "read_rows",
    "run_bench",
    "summarize",
    "write_report",
]
