"""Tasks: target, input masking, loss and metrics."""

from protgraph.task.input_masking import InputMasking, with_random_order
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.metrics import METRICS, Metric, as_metric, best_threshold, compute_metrics
from protgraph.task.predictions import ResiduePairs, SplitPredictions
from protgraph.task.task import Task, default_task

__all__ = [
    "METRICS",
    "InputMasking",
    "Metric",
    "SplitPredictions",
    "ResiduePairs",
    "Task",
    "as_metric",
    "best_threshold",
    "binary_cross_entropy",
    "cross_entropy",
    "with_random_order",
    "compute_metrics",
    "squared_error",
    "default_task",
]
