"""Benchmarks: models × tasks × seeds to rows, tables, figures and a report.

Names are imported on first use (PEP 562): worker processes import the training code alone, and the report imports more.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module.
_HOME = {
    "BenchRow": "protgraph.bench.rows",
    "BenchSpec": "protgraph.bench.spec",
    "ProgressBar": "protgraph.bench.progress",
    "RunDifference": "protgraph.bench.run_comparison",
    "Summary": "protgraph.bench.summaries",
    "cluster_means": "protgraph.bench.run_predictions",
    "compare_ranks": "protgraph.bench.paired_tests",
    "compare_runs": "protgraph.bench.run_comparison",
    "holm": "protgraph.bench.paired_tests",
    "make_figure": "protgraph.bench.figures",
    "read_rows": "protgraph.bench.rows",
    "run_bench": "protgraph.bench.run",
    "save_figure": "protgraph.bench.figures",
    "sign_permutation_tests": "protgraph.bench.paired_tests",
    "style_of": "protgraph.bench.figures",
    "summarize": "protgraph.bench.summaries",
    "values_by_protein": "protgraph.bench.run_predictions",
    "write_report": "protgraph.bench.report",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
