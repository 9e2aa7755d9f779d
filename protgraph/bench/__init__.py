"""Benchmarks: models × tasks × seeds → rows → tables, figures and a report; and measurements of speed."""

from protgraph.bench.progress import ProgressBar
from protgraph.bench.report import write_report
from protgraph.bench.rows import Row, read_rows
from protgraph.bench.run import run_bench
from protgraph.bench.spec import BenchSpec
from protgraph.bench.summary_table import Summary, summarise

__all__ = ["BenchSpec", "ProgressBar", "Row", "Summary", "read_rows", "run_bench", "summarise", "write_report"]
