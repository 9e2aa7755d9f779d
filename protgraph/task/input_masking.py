"""What a task lets a model see of a protein: what is hidden or blurred, and what is shown anew at every use."""

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

__all__ = ["InputMasking", "Corruption", "with_random_order"]

#: A graph or batch, and the source of all chance, to what is shown of it and the labels asked for.
Corruption = Callable[[Data, Generator], tuple[Data, Tensor]]


@dataclass(frozen=True)
class InputMasking:
    """What a model is given of a protein.

    Parameters
    ----------
    hides : collection of str
        Of ``residue_type``, ``sidechain``, ``b_factor``, ``ligands`` and ``coordinates``: removed from the structure
        before any featurizer runs, so that no component can show the label to the model.
    noise : float
        Å, by how much every coordinate of what a model sees is off, as a standard deviation. It is added before any
        featurizer runs, and is the same for a protein each time it is prepared.
    answers : collection of str
        Featurizers that compute the label itself, or what defines it; training refuses a model that has one.
    shows_types : bool
        Whether graphs hold the residue types though they are hidden from featurizers: ``present`` hides them then, or
        the model is causal.
    present : callable, optional
        ``(graph, generator)`` to what of a graph or batch is shown, and the labels that it is asked for, anew at every
        use; None shows and asks what was prepared. It changes nothing that it is given. Where nodes are atoms, labels
        stand on CA, and the field ``residue`` says of which residue each node is.
    examine : callable, optional
        The same where a model is evaluated, in place of ``present``. There, each protein comes alone, with a generator
        that is always the same for a protein of its name.
    causal : bool
        Whether a prediction may depend on earlier residues only: those before it in the protein or, of a model with a
        decoder, in ``decoding_rank``. Training tries the model and refuses one that does otherwise.
    """

    hides: Collection[str] = frozenset()
    noise: float = 0.0
    answers: Collection[str] = frozenset()
    shows_types: bool = False
    present: Corruption | None = field(default=None, repr=False)
    examine: Corruption | None = field(default=None, repr=False)
    causal: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "hides", frozenset(self.hides))
        object.__setattr__(self, "answers", frozenset(self.answers))
        if self.hides - HIDEABLE:
            odd = sorted(self.hides - HIDEABLE)[0]
            raise DatasetError(f"a task hides {odd!r}, which is none of {', '.join(sorted(HIDEABLE))}")
        if self.noise < 0:
            raise DatasetError(f"a task's noise is {self.noise} Å; it cannot be below 0")

    def seen(self, residues: Residues, name: str) -> Residues:
        """What a model may see of a protein: without what is hidden, and with noise of its own by its name."""
        residues = residues.hide(self.hides)
        return residues.with_noise(self.noise, seed=zlib.crc32(name.encode())) if self.noise else residues

    def asked(self, graph: Data, generator: Generator, *, training: bool) -> tuple[Data, Tensor]:
        """What is shown of a graph or batch, and the labels that are asked for."""
        present = self.present if training or self.examine is None else self.examine
        return (graph, graph.y) if present is None else present(graph, generator)


def with_random_order(graph: Data, generator: Generator) -> tuple[Data, Tensor]:
    """All types, and a random order in which a decoder is told them (teacher forcing).

    Parameters
    ----------
    graph : Data
        A graph or batch with labels ``y``.
    generator : Generator
        On the graph's device.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187 (order-agnostic training); Uria, Murray & Larochelle 2014,
    arXiv:1310.1757.
    """
    shown = copy.copy(graph)
    shown.decoding_rank = torch.randperm(graph.num_nodes, generator=generator, device=graph.aatype.device)
    return shown, graph.y
