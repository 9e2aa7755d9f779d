# Written by tools/stubs.py.
from protgraph.bench.figures import make_figure as make_figure, save_figure as save_figure, style_of as style_of
from protgraph.bench.paired_tests import (
    compare_ranks as compare_ranks,
    holm as holm,
    sign_permutation_tests as sign_permutation_tests,
)
from protgraph.bench.progress import ProgressBar as ProgressBar
from protgraph.bench.report import write_report as write_report
from protgraph.bench.rows import BenchRow as BenchRow, read_rows as read_rows
from protgraph.bench.run import run_bench as run_bench
from protgraph.bench.run_comparison import RunDifference as RunDifference, compare_runs as compare_runs
from protgraph.bench.run_predictions import cluster_means as cluster_means, values_by_protein as values_by_protein
from protgraph.bench.spec import BenchSpec as BenchSpec
from protgraph.bench.summaries import Summary as Summary, summarize as summarize
