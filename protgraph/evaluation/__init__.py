"""Evaluation of models: predictions of a split, metrics, intervals over proteins, and calibration."""

from protgraph.evaluation.bootstrap import bootstrap_scores, cluster_weights, draw_copies, percentile_interval
from protgraph.evaluation.evaluation import evaluate, evaluation_mode

__all__ = ["bootstrap_scores", "cluster_weights", "draw_copies", "evaluate", "evaluation_mode", "percentile_interval"]
