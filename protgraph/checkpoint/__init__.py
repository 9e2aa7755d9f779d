"""Checkpoints of trained models: files, the code of their components, their training set, and models of plugins."""

from protgraph.checkpoint.checkpoint_file import (
    Checkpoint,
    as_checkpoint,
    load_checkpoint,
    load_parent,
    round_to_half,
    save_checkpoint,
)
from protgraph.checkpoint.component_source import components_of
from protgraph.checkpoint.trained_model import (
    CARD,
    RECIPE,
    WEIGHTS,
    CallCounts,
    CallRule,
    Comparison,
    ModelCard,
    SplitResult,
    TrainedModel,
    find_card,
)
from protgraph.checkpoint.training_set import summarize_training_set

__all__ = [
    "CARD",
    "RECIPE",
    "WEIGHTS",
    "CallCounts",
    "CallRule",
    "Checkpoint",
    "Comparison",
    "ModelCard",
    "SplitResult",
    "TrainedModel",
    "as_checkpoint",
    "components_of",
    "find_card",
    "load_checkpoint",
    "load_parent",
    "round_to_half",
    "save_checkpoint",
    "summarize_training_set",
]
