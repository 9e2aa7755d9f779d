"""Tasks: target, input masking, loss and metrics."""

from protgraph.task.input_masking import BACKBONE_ALONE, InputMasking, with_random_order
from protgraph.task.language_modeling import Masking
from protgraph.task.losses import binary_cross_entropy, cross_entropy, huber_error, known_labels, squared_error
from protgraph.task.metrics import (
    Metric,
    as_metric,
    best_threshold,
    compute_metrics,
    mean_ranks,
    pearson_correlation,
)
from protgraph.task.predictions import ResiduePairs, SplitPredictions
from protgraph.task.task import Task, default_task

__all__ = [
    "BACKBONE_ALONE",
    "InputMasking",
    "Masking",
    "Metric",
    "ResiduePairs",
    "SplitPredictions",
    "Task",
    "as_metric",
    "best_threshold",
    "binary_cross_entropy",
    "compute_metrics",
    "cross_entropy",
    "default_task",
    "huber_error",
    "known_labels",
    "mean_ranks",
    "pearson_correlation",
    "squared_error",
    "with_random_order",
]
