"""Peak memory of training by model and residues per batch, on ``pdb_core``."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.cost_table import CostTable, show_rows
from protgraph.train import FitConfig, ResourceEstimate, estimate_resources

__all__ = ["MODELS", "measure"]

MODELS = ("gcn", "gat", "mpnn", "egnn", "gvp", "schnet", "transformer", "graph_transformer", "ipa", "tfn", "mace")
DATASET, TASK = "pdb_core", "secondary_structure"
BATCH_RESIDUES = 4096  # measured with a quarter and a half of it


def measure(*, seconds: float = 5.0) -> list[CostTable]:
    """Estimate the memory of each model in a process of its own; ``seconds`` has no effect."""
    budgets, rows = (), []
    for model in MODELS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            estimate = pool.submit(_estimate, model).result()
        budgets = tuple(cost.batch_residues for cost in estimate.budgets)
        rows += show_rows([(model, *(cost.memory for cost in estimate.budgets), estimate.evaluation)])
    return [
        CostTable(
            title=f"peak memory of training on {TASK} of {DATASET} on the CPU, MiB, by residues per batch",
            columns=("model", *map(str, budgets), "evaluation"),
            rows=tuple(rows),
            caption=f"Whole process, of which libraries are about {estimate.process:.0f} MiB.\n"
            "evaluation: its largest batch, MiB above the process; every run needs it.",
        )
    ]


def _estimate(model: str) -> ResourceEstimate:
    config = FitConfig(batch_residues=BATCH_RESIDUES, device="cpu")
    return estimate_resources(model, DATASET, TASK, config=config)
