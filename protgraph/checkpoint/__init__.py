"""Checkpoints of trained models: files, the code of their components, their training set, and models of plugins."""

from protgraph.checkpoint.checkpoint_file import Checkpoint, as_checkpoint, load_checkpoint, save_checkpoint
from protgraph.checkpoint.trained_model import CallCounts, CallRule, ModelCard, TrainedModel, find_card

__all__ = [
    "CallCounts",
    "CallRule",
    "Checkpoint",
    "ModelCard",
    "TrainedModel",
    "as_checkpoint",
    "find_card",
    "load_checkpoint",
    "save_checkpoint",
]
