"""Questions about the sequence itself: residues that are masked, and the residue that comes next."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.task import metrics as m
from protgraph.task.builtin import BACKBONE_ALONE, residue_type
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import cross_entropy
from protgraph.task.task import Task

__all__ = ["MASKED_LM", "NEXT_RESIDUE", "Masking"]
ENTRY_POINTS = {"protgraph.tasks": {"masked_lm": "MASKED_LM", "next_residue": "NEXT_RESIDUE"}}

AMINO_ACIDS = tuple(ALPHABET[:UNKNOWN])


@dataclass(frozen=True)
class Masking:
    """Choose some residues at random; hide most of them, swap some, leave the others; ask for the types of all of them.

    Parameters
    ----------
    fraction : float
        Of the residues of known type, how many are chosen, each by itself.
    hidden : float
        Of the chosen, how many are shown as X with ``masked`` True.
    swapped : float
        Of the chosen, how many are shown as one of the 20 types at random, which may be their own, and unmasked; the
        rest is shown as it is.

    References
    ----------
    Devlin et al. 2019, arXiv:1810.04805, sec. 3.1, task 1 (15 %, 80/10/10); of proteins, Rives et al. 2021,
    doi:10.1073/pnas.2016239118.

    Examples
    --------
    >>> graph = Data(aatype=torch.arange(20), masked=torch.zeros(20, dtype=torch.bool), y=torch.arange(20))
    >>> shown, y = Masking(hidden=1.0, swapped=0.0)(graph, torch.Generator().manual_seed(0))
    >>> bool((shown.aatype[y >= 0] == 20).all()), bool((shown.aatype[y < 0] == graph.aatype[y < 0]).all())
    (True, True)
    """

    fraction: float = 0.15
    hidden: float = 0.8
    swapped: float = 0.1

    def __post_init__(self) -> None:
        given = (self.fraction, self.hidden, self.swapped)
        if min(given) < 0 or max(self.fraction, self.hidden + self.swapped) > 1:
            raise OptionError(f"Masking: fraction, hidden and swapped are {given}; they are parts of a whole")

    def __call__(self, graph: Data, generator: Generator) -> tuple[Data, Tensor]:
        """The graph or batch as it is shown, and the types asked for, ``(N,)`` int64 with −1 where none is.

        Parameters
        ----------
        graph : Data
            With ``aatype``, ``masked``, and the true types in ``y`` ``(N,)``, −1 for X. Where nodes are atoms and
            ``residue`` says of which residue, all atoms of a residue fare alike.
        generator : Generator
            On the graph's device.
        """
        truth, (residue, size) = graph.y, _residues(graph)
        known = torch.zeros(size, dtype=torch.bool, device=truth.device)
        known[residue[truth >= 0]] = True
        chance = torch.rand(2, size, generator=generator, device=truth.device)[:, residue]
        other = torch.randint(UNKNOWN, (size,), generator=generator, device=truth.device)[residue]
        chosen = (chance[0] < self.fraction) & known[residue]
        hidden = chosen & (chance[1] < self.hidden)
        swapped = chosen & ~hidden & (chance[1] < self.hidden + self.swapped)
        shown = copy.copy(graph)
        shown.aatype = torch.where(swapped, other, graph.aatype).masked_fill(hidden, UNKNOWN)
        shown.masked = graph.masked | hidden
        return shown, truth.masked_fill(~chosen, -1)


def _residues(graph: Data) -> tuple[Tensor, int]:
    """``(N,)`` int64, number of each node's residue, and how many residues there are."""
    if "residue" not in graph:
        return torch.arange(len(graph.y), device=graph.y.device), len(graph.y)
    protein = graph.batch if "batch" in graph else torch.zeros_like(graph.residue)
    unique, number = torch.unique(torch.stack([protein, graph.residue], 1), dim=0, return_inverse=True)
    return number, len(unique)


MASKED_LM = Task(
    "masked_lm",
    Target("masked_lm", "node", "classification", len(AMINO_ACIDS), AMINO_ACIDS),
    cross_entropy,
    (m.perplexity, m.accuracy),
    "perplexity",
    InputMasking(hidden=BACKBONE_ALONE, visible_types=True, corrupt=Masking(), corrupt_eval=Masking(hidden=1.0, swapped=0.0)),
    derive=residue_type,
    doc="The types of 15 % of the residues, from the others. In training 8 of 10 of them are hidden, 1 is swapped, 1 "
    "shown; in an evaluation all are hidden.",
)

NEXT_RESIDUE = Task(
    "next_residue",
    Target("next_residue", "node", "classification", len(AMINO_ACIDS), AMINO_ACIDS),
    cross_entropy,
    (m.perplexity, m.accuracy),
    "perplexity",
    InputMasking(hidden=BACKBONE_ALONE, visible_types=True, causal=True),
    derive=residue_type,
    doc="The type of each residue from the types before it, for models in which no later one has a say.",
)
