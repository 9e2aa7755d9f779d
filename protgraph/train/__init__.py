"""Training and use of models: preparation, training, checkpoints, predictions, embeddings."""

# ruff: noqa: E402

import warnings

# Lightning's import of tqdm warns in a notebook without ipywidgets; the progress bar is a line of text there.
warnings.filterwarnings("ignore", "IProgress not found")

from protgraph.train.config import FitConfig
from protgraph.train.cross_validation import CrossValidation, FoldResult, cross_validate
from protgraph.train.resource_estimate import (
    BudgetCost,
    ResourceEstimate,
    choose_batch_residues,
    estimate_resources,
)
from protgraph.train.result import FitResult
from protgraph.train.session import TrainingInterrupted
from protgraph.train.training import fit

__all__ = [
    "BudgetCost",
    "CrossValidation",
    "FoldResult",
    "cross_validate",
    "FitConfig",
    "FitResult",
    "ResourceEstimate",
    "TrainingInterrupted",
    "choose_batch_residues",
    "estimate_resources",
    "fit",
]
