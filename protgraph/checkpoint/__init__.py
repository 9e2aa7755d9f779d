"""Checkpoints of trained models: files, the code of their components, their training set, and models of plugins."""

from protgraph.checkpoint.checkpoint_file import Checkpoint, as_checkpoint, load_checkpoint, save_checkpoint
from protgraph.checkpoint.trained_model import ModelCard, TrainedModel

__all__ = ["Checkpoint", "ModelCard", "TrainedModel", "as_checkpoint", "load_checkpoint", "save_checkpoint"]
