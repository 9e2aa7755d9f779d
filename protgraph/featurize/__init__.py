"""Structures to graphs: featurizers, each a registry name that adds named tensors.

The *structure* stage computes NumPy arrays from residues, once per protein, and its results are stored (dihedral
angles, directions, edges). The *tensor* stage expands stored fields after batching, on the device (one-hot types,
distances, radial bases). A :class:`FeaturePlan` holds featurizers in order; :func:`build_graph` runs both stages.
"""

from __future__ import annotations

from protgraph.failure import Failure
from protgraph.featurize.backbone import Orientation
from protgraph.featurize.base import (
    EdgeFeaturizer,
    EdgeList,
    Featurizer,
    NodeFeaturizer,
    NodeList,
    StructureFeaturizer,
    TensorFeaturizer,
)
from protgraph.featurize.frames import axes
from protgraph.featurize.pipeline import Source, dataset_requests, expand_sources, iter_graphs, store_requests
from protgraph.featurize.plan import FeaturePlan, build_graph
from protgraph.featurize.result import (
    GraphResult,
    count_notes,
    model_notes,
    reader_notes,
    successes,
    write_failures,
    write_manifest,
)
from protgraph.featurize.steps import AllFeatures, GraphStep, ModelInputs, ProteinRequest

__all__ = [
    "AllFeatures",
    "EdgeFeaturizer",
    "EdgeList",
    "Failure",
    "FeaturePlan",
    "Featurizer",
    "GraphResult",
    "GraphStep",
    "ModelInputs",
    "NodeFeaturizer",
    "NodeList",
    "Orientation",
    "ProteinRequest",
    "Source",
    "StructureFeaturizer",
    "TensorFeaturizer",
    "axes",
    "build_graph",
    "count_notes",
    "dataset_requests",
    "model_notes",
    "reader_notes",
    "expand_sources",
    "iter_graphs",
    "store_requests",
    "successes",
    "write_failures",
    "write_manifest",
]
