"""Evaluation of models: predictions of a split, metrics, intervals over proteins, and calibration."""

from protgraph.evaluation.evaluation import evaluate, evaluation_mode

__all__ = ["evaluate", "evaluation_mode"]
