"""Evaluation of models: predictions of a split, metrics, intervals over proteins, and calibration."""

from protgraph.evaluation.bootstrap import draw_copies
from protgraph.evaluation.evaluation import evaluate, evaluation_mode

__all__ = ["draw_copies", "evaluate", "evaluation_mode"]
