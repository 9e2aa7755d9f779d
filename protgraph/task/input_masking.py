"""Input masking of a task: what is removed from a structure, and what is corrupted at each use."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.errors import DatasetError
from protgraph.structure.residues.residues import HIDEABLE

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = ["BACKBONE_ALONE", "Corruption", "InputMasking", "with_random_order"]

#: Hidden parts that leave only N, CA, C and O.
BACKBONE_ALONE = frozenset({"residue_type", "sidechain", "b_factor"})

#: From a graph or batch and a random generator to the corrupted graph and its labels.
Corruption = Callable[[Data, Generator], tuple[Data, Tensor]]


@dataclass(frozen=True)
class InputMasking:
    """Parts of a protein that a model may read.

    Parameters
    ----------
    hidden : collection of str
        Any of ``residue_type``, ``sidechain``, ``b_factor``, ``ligands`` and ``coordinates``. They are removed from the
        structure before any featurizer runs, so that no component can read them.
    noise : float
        Standard deviation of Gaussian noise on every coordinate, Å. It is added before any featurizer runs, and its
        seed is the name of the protein.
    label_featurizers : collection of str
        Featurizers that compute the label, or what defines it. Training raises if a model uses one of them.
    readable_featurizers : collection of str
        Featurizers that may reproduce the label, on purpose. Any other that does so on the training proteins is
        refused; see :func:`protgraph.labels.checks.reproduces`.
    visible_types : bool
        Keep residue types in the graph although ``hidden`` removes them from featurizers. Either ``corrupt`` masks them
        or the model is causal.
    corrupt : callable, optional
        ``(graph, generator)`` to the corrupted graph or batch and its labels, called at every use. It must not change
        its input. None keeps the prepared graph and labels. If nodes are atoms, labels are on CA, and the field
        ``residue`` gives the residue of each node.
    corrupt_eval : callable, optional
        Replaces ``corrupt`` in evaluation. Each protein comes alone, with a generator seeded by its name.
    causal : bool
        Predictions may depend on earlier residues only: earlier in the protein or, for a model with a decoder, earlier
        in ``decoding_rank``. Training checks the model and raises if it is not causal.
    """

    hidden: Collection[str] = frozenset()
    noise: float = 0.0
    label_featurizers: Collection[str] = frozenset()
    readable_featurizers: Collection[str] = frozenset()
    visible_types: bool = False
    corrupt: Corruption | None = field(default=None, repr=False)
    corrupt_eval: Corruption | None = field(default=None, repr=False)
    causal: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", frozenset(self.hidden))
        object.__setattr__(self, "label_featurizers", frozenset(self.label_featurizers))
        object.__setattr__(self, "readable_featurizers", frozenset(self.readable_featurizers))
        unknown = sorted(set(self.hidden) - HIDEABLE)
        if unknown:
            raise DatasetError(f"InputMasking: hidden = {unknown}. Allowed: {', '.join(sorted(HIDEABLE))}.")
        if self.noise < 0:
            raise DatasetError(f"InputMasking: noise = {self.noise}. It is a standard deviation in Å, 0 or larger.")

    def visible(self, residues: Residues, name: str) -> Residues:
        """Remove the hidden parts of a protein and add the noise, which is seeded by the name."""
        residues = residues.hide(self.hidden)
        return residues.with_noise(self.noise, seed=zlib.crc32(name.encode())) if self.noise else residues

    def apply(self, graph: Data, generator: Generator, *, training: bool) -> tuple[Data, Tensor]:
        """Corrupt a graph or batch; return it with its labels, ``(M,)`` classes or ``(M, …)`` values."""
        corrupt = self.corrupt if training or self.corrupt_eval is None else self.corrupt_eval
        return (graph, graph.y) if corrupt is None else corrupt(graph, generator)


def with_random_order(graph: Data, generator: Generator) -> tuple[Data, Tensor]:
    """Add a random decoding order for teacher forcing; all residue types stay visible.

    Parameters
    ----------
    graph : Data
        A graph or batch with labels ``y``.
    generator : Generator
        On the graph's device.

    Returns
    -------
    Data
        Copy with ``decoding_rank (N,)`` int64.
    Tensor
        The labels ``y``, of any shape.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (order-agnostic training); Uria, Murray & Larochelle 2014,
    arXiv:1310.1757.
    """
    shown = copy.copy(graph)
    shown.decoding_rank = torch.randperm(graph.num_nodes, generator=generator, device=graph.aatype.device)
    return shown, graph.y
