"""Gaussian noise on the coordinates of training batches, against overfitting to exact positions."""

from __future__ import annotations

import copy

import torch
from torch import Generator
from torch_geometric.data import Data

from protgraph.errors import OptionError
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure.residues.residues import displace_backbone

__all__ = ["add_noise", "check_noise_allowed"]


def add_noise(graph: Data, noise: float, generator: Generator) -> Data:
    """Return a copy of a graph or batch of residues with noise on the atoms.

    ``graph``: with ``backbone`` ``(N, 4, 3)`` and CA positions ``pos`` ``(N, 3)``, Å.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (backbone noise of 0.02 to 0.3 Å in training).
    """
    moved = copy.copy(graph)
    step = torch.randn(graph.backbone.shape, generator=generator, dtype=graph.backbone.dtype, device=graph.pos.device)
    moved.pos, moved.backbone = displace_backbone(graph.pos, graph.backbone, noise * step)
    return moved


def check_noise_allowed(plan: FeaturePlan) -> None:
    """Raise if noise would not reach all features."""
    if plan.node_type != "residue":
        raise OptionError(f"FitConfig: noise needs nodes that are residues; node_type is {plan.node_type!r}.")
    exact = [node.name for node, featurizer in (*plan.nodes, *plan.structure) if featurizer.needs_coordinates]
    if exact:
        raise OptionError(
            f"FitConfig: noise is added to batches, but featurizer {exact[0]!r} is computed from the exact structure. "
            "Remove the featurizer from the model, or train without noise."
        )
