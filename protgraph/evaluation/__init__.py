"""Evaluation of models: predictions of a split, metrics, intervals over proteins, and calibration."""

from protgraph.evaluation.bootstrap import (
    bootstrap_scores,
    cluster_scores,
    cluster_weights,
    count_split,
    draw_copies,
    percentile_interval,
)
from protgraph.evaluation.calibration import (
    CalibrationMap,
    calibration_scores,
    check_calibration_method,
    fit_calibration,
    label_events,
)
from protgraph.evaluation.evaluation import (
    BatchPredictions,
    device_of,
    evaluate,
    evaluation_mode,
    join_predictions,
    predict_ensemble,
)

__all__ = [
    "BatchPredictions",
    "CalibrationMap",
    "bootstrap_scores",
    "calibration_scores",
    "check_calibration_method",
    "cluster_scores",
    "cluster_weights",
    "count_split",
    "device_of",
    "draw_copies",
    "evaluate",
    "evaluation_mode",
    "fit_calibration",
    "join_predictions",
    "label_events",
    "percentile_interval",
    "predict_ensemble",
]
