"""Evaluation of models: predictions of a split, metrics, intervals over proteins, and calibration."""

from protgraph.evaluation.evaluation import evaluate

__all__ = ["evaluate"]
