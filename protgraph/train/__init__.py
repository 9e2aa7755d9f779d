"""Training and use of models: preparation, training, checkpoints, predictions, embeddings, generation."""

# ruff: noqa: E402

import warnings

# Lightning's import of tqdm warns in a notebook without ipywidgets; the progress bar is a line of text there.
warnings.filterwarnings("ignore", "IProgress not found")

from protgraph.train.attribution import Attributions, explain
from protgraph.train.checkpoint import Checkpoint, as_checkpoint, load_checkpoint, save_checkpoint
from protgraph.train.config import FitConfig
from protgraph.train.cross_validation import cross_validate
from protgraph.train.cross_validation_result import CrossValidation, FoldResult
from protgraph.train.embed import embed
from protgraph.train.embedding_table import Embeddings
from protgraph.train.evaluate import evaluate
from protgraph.train.fit import fit
from protgraph.train.generate import GeneratedSequence, generate
from protgraph.train.inspect_dataset import DatasetInspection, inspect_dataset
from protgraph.train.interruption import TrainingInterrupted
from protgraph.train.predict import featurized_proteins, predict
from protgraph.train.prediction_table import Predictions
from protgraph.train.prepare import Prepared, prepare
from protgraph.train.resolve import load_dataset, load_proteins
from protgraph.train.resource_estimate import (
    BudgetCost,
    ResourceEstimate,
    choose_batch_residues,
    estimate_resources,
)
from protgraph.train.result import FitResult
from protgraph.train.result_table import TABLE_SUFFIXES, ResultTable
from protgraph.train.trained_model import ModelCard, TrainedModel
from protgraph.train.value_column import choose_value

__all__ = [
    "Attributions",
    "explain",
    "featurized_proteins",
    "BudgetCost",
    "CrossValidation",
    "FoldResult",
    "cross_validate",
    "Checkpoint",
    "DatasetInspection",
    "Embeddings",
    "FitConfig",
    "FitResult",
    "ResultTable",
    "TABLE_SUFFIXES",
    "Predictions",
    "Prepared",
    "ResourceEstimate",
    "TrainingInterrupted",
    "GeneratedSequence",
    "ModelCard",
    "TrainedModel",
    "as_checkpoint",
    "choose_batch_residues",
    "choose_value",
    "estimate_resources",
    "load_dataset",
    "load_proteins",
    "embed",
    "evaluate",
    "fit",
    "generate",
    "inspect_dataset",
    "load_checkpoint",
    "predict",
    "prepare",
    "save_checkpoint",
]
