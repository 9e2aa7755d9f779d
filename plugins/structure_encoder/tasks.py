"""Pretraining tasks on unlabeled structures: the geometry of removed edges, and two views of a protein."""

from __future__ import annotations

import numpy as np
from protgraph_plugins.structure_encoder.removed_edges import RemovedEdges
from protgraph_plugins.structure_encoder.views import VECTOR, TwoViews, contrastive_loss, retrieval

from protgraph.data.datasets import Target
from protgraph.structure.residues import Residues
from protgraph.task import InputMasking, Task, default_task, squared_error

__all__ = ["MASKED_GEOMETRY", "MULTIVIEW_CONTRAST"]
ENTRY_POINTS = {"protgraph.tasks": {"masked_geometry": "MASKED_GEOMETRY", "multiview_contrast": "MULTIVIEW_CONTRAST"}}

_NAMES = ("distance", "cos_angle", "cos_dihedral", "sin_dihedral")


def _no_labels_of_residues(residues: Residues) -> np.ndarray:
    """Return zeros ``(N, 4)``: labels are computed at each use."""
    return np.zeros((len(residues), len(_NAMES)), np.float32)


def _no_label_of_protein(residues: Residues) -> np.ndarray:
    """Return a zero ``(1, 1)``: the loss compares proteins of a batch."""
    return np.zeros((1, 1), np.float32)


_GEOMETRY = Target("masked_geometry", "node", "regression", len(_NAMES), _NAMES, unit="Å, 1", head="walk")

MASKED_GEOMETRY = Task(
    "masked_geometry",
    _GEOMETRY,
    squared_error,
    default_task(_GEOMETRY).metrics,
    "nrmse",
    InputMasking(corrupt=RemovedEdges()),
    derive=_no_labels_of_residues,
    stored_target=_GEOMETRY,
    doc="Distance, angle and dihedral of the CA of walks along three edges, which are removed from the graph. Half of "
    "the residues are the start of a walk. For layers that pass messages along edges.",
)

MULTIVIEW_CONTRAST = Task(
    "multiview_contrast",
    Target("multiview_contrast", "graph", "regression", 2 * VECTOR, head="two_views"),
    contrastive_loss,
    (retrieval,),
    "retrieval",
    InputMasking(corrupt=TwoViews()),
    derive=_no_label_of_protein,
    stored_target=Target("multiview_contrast", "graph", "regression", 1),
    doc="Two parts of a protein, cut at a random place of its sequence, are to have similar vectors, and parts of "
    "different proteins different ones. For layers that pass messages along edges.",
)
