"""What is asked of a model: the target, the loss, the metrics, and what the inputs must not show."""

from protgraph.task.input_masking import Inputs, random_order
from protgraph.task.losses import binary_cross_entropy, cross_entropy, squared_error
from protgraph.task.metrics import METRICS, Metric, Outcome, Pairs, as_metric, best_threshold, score
from protgraph.task.task import Task, task_for

__all__ = [
    "METRICS",
    "Inputs",
    "Metric",
    "Outcome",
    "Pairs",
    "Task",
    "as_metric",
    "best_threshold",
    "binary_cross_entropy",
    "cross_entropy",
    "random_order",
    "score",
    "squared_error",
    "task_for",
]
