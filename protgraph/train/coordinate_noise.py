"""Noise on the coordinates of training batches, so that a model does not learn the last hundredth of an Å by heart."""

from __future__ import annotations

import copy

import torch
from torch import Generator
from torch_geometric.data import Data

from protgraph.errors import OptionError
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure.residues.noise import displace_backbone

__all__ = ["add_noise", "check_noise_allowed"]


def add_noise(graph: Data, noise: float, generator: Generator) -> Data:
    """A graph or batch of residues whose atoms are moved; the given one stays as it is.

    Parameters
    ----------
    graph : Data
        With ``backbone`` ``(N, 4, 3)`` and ``pos`` ``(N, 3)``, its CA.
    noise : float
        Å, standard deviation in x, y and z.
    generator : Generator
        On the graph's device.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (backbone noise of 0.02 to 0.3 Å in training).
    """
    moved = copy.copy(graph)
    step = torch.randn(graph.backbone.shape, generator=generator, dtype=graph.backbone.dtype, device=graph.pos.device)
    moved.pos, moved.backbone = displace_backbone(graph.pos, graph.backbone, noise * step)
    return moved


def check_noise_allowed(plan: FeaturePlan) -> None:
    """Raise where features show what noise is to blur.

    Raises
    ------
    OptionError
        Nodes are atoms, or a featurizer works something out from the exact structure once.
    """
    if plan.node_type != "residue":
        raise OptionError(f"FitConfig: noise is for graphs of residues; node_type is {plan.node_type!r}")
    exact = [node.name for node, featurizer in plan.structure if featurizer.needs_coordinates]
    if exact:
        raise OptionError(
            f"FitConfig: noise is added to batches, and featurizer {exact[0]!r} works on the exact structure, once.\n"
            "Take it out of the model, or train without noise."
        )
