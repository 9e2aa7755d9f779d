"""Tasks that predict residue types from other types: masked residues and the next residue."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.task import metrics as m
from protgraph.task.builtin import AMINO_ACIDS, residue_type
from protgraph.task.input_masking import BACKBONE_ALONE, InputMasking
from protgraph.task.losses import cross_entropy
from protgraph.task.task import Task

__all__ = ["MASKED_LM", "MASKED_RESIDUE_TYPE", "NEXT_RESIDUE", "Masking"]
ENTRY_POINTS = {
    "protgraph.tasks": {
        "masked_lm": "MASKED_LM",
        "masked_residue_type": "MASKED_RESIDUE_TYPE",
        "next_residue": "NEXT_RESIDUE",
    },
}


@dataclass(frozen=True)
class Masking:
    """BERT masking: residues chosen at random are masked, replaced or left; labels are their types.

    ``fraction``: probability that a residue of known type is chosen. Two numbers: it is drawn between them at each use.
    ``masked``: fraction of the chosen residues that become X with ``masked`` True. ``replaced``: fraction of the chosen
    residues that get a random type of the 20, with ``masked`` False. The others keep their type.

    References
    ----------
    Devlin et al. 2019, arXiv:1810.04805, sec. 3.1, task 1 (15 %, 80/10/10); of proteins, Rives et al. 2021,
    doi:10.1073/pnas.2016239118.

    Examples
    --------
    >>> graph = Data(aatype=torch.arange(20), masked=torch.zeros(20, dtype=torch.bool), y=torch.arange(20))
    >>> shown, y = Masking(masked=1.0, replaced=0.0)(graph, torch.Generator().manual_seed(0))
    >>> bool((shown.aatype[y >= 0] == 20).all()), bool((shown.aatype[y < 0] == graph.aatype[y < 0]).all())
    (True, True)
    """

    fraction: float | tuple[float, float] = 0.15
    masked: float = 0.8
    replaced: float = 0.1

    def __post_init__(self) -> None:
        values = (self.fraction, self.masked, self.replaced)
        low, high = self._limits
        if min(low, self.masked, self.replaced) < 0 or max(high, self.masked + self.replaced) > 1 or low > high:
            raise OptionError(f"Masking: (fraction, masked, replaced) = {values}. Fractions are between 0 and 1.")

    @property
    def _limits(self) -> tuple[float, float]:
        """Least and largest probability that a residue is chosen."""
        return self.fraction if isinstance(self.fraction, tuple) else (self.fraction, self.fraction)

    def __call__(self, graph: Data, generator: Generator) -> tuple[Data, Tensor]:
        """Return the masked graph or batch, and the labels ``(N,)`` int64, −1 for residues that are not chosen.

        ``graph``: with ``aatype``, ``masked``, and the true types in ``y`` ``(N,)``, −1 for X. If nodes are atoms with
        their residue in ``residue``, all atoms of a residue are treated alike.
        """
        truth, (residue, size) = graph.y, _residues(graph)
        known = torch.zeros(size, dtype=torch.bool, device=truth.device)
        known[residue[truth >= 0]] = True
        chance = torch.rand(2, size, generator=generator, device=truth.device)[:, residue]
        other = torch.randint(UNKNOWN, (size,), generator=generator, device=truth.device)[residue]
        low, high = self._limits
        fraction = low if low == high else torch.empty((), device=truth.device).uniform_(low, high, generator=generator)
        chosen = (chance[0] < fraction) & known[residue]
        masked = chosen & (chance[1] < self.masked)
        replaced = chosen & ~masked & (chance[1] < self.masked + self.replaced)
        shown = copy.copy(graph)
        shown.aatype = torch.where(replaced, other, graph.aatype).masked_fill(masked, UNKNOWN)
        shown.masked = graph.masked | masked
        return shown, truth.masked_fill(~chosen, -1)


def _residues(graph: Data) -> tuple[Tensor, int]:
    """Return the residue number of each node, ``(N,)`` int64, and the number of residues."""
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
    InputMasking(
        hidden=BACKBONE_ALONE, visible_types=True, corrupt=Masking(), corrupt_eval=Masking(masked=1.0, replaced=0.0)
    ),
    derive=residue_type,
    doc="Types of 15 % of the residues, from the others. In training 8 of 10 of them are masked, 1 is replaced and 1 "
    "unchanged; in evaluation all are masked.",
)

MASKED_RESIDUE_TYPE = Task(
    "masked_residue_type",
    Target("masked_residue_type", "node", "classification", len(AMINO_ACIDS), AMINO_ACIDS),
    cross_entropy,
    (m.perplexity, m.accuracy),
    "perplexity",
    InputMasking(
        hidden=BACKBONE_ALONE, visible_types=True, corrupt=Masking(fraction=(0.1, 1.0), masked=1.0, replaced=0.0)
    ),
    derive=residue_type,
    doc="Types of 10 to 100 % of the residues, from the backbone and the types of the others: between masked language "
    "modeling and inverse folding. The fraction is drawn for each batch, in evaluation for each protein.",
)

NEXT_RESIDUE = Task(
    "next_residue",
    Target("next_residue", "node", "classification", len(AMINO_ACIDS), AMINO_ACIDS),
    cross_entropy,
    (m.perplexity, m.accuracy),
    "perplexity",
    InputMasking(hidden=BACKBONE_ALONE, visible_types=True, causal=True),
    derive=residue_type,
    doc="Type of each residue from the types before it, for causal models.",
)
