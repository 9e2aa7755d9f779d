"""How good a model's sequences are: perplexity of native types, how many of them it draws, and what for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.design.run import design_sequences, score_sequences
from protgraph.design.spec import DesignSpec
from protgraph.errors import OptionError
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues
from protgraph.structure.residues.alphabet import UNKNOWN

__all__ = ["DesignMetrics", "evaluate_design"]


@dataclass(frozen=True, eq=False)
class DesignMetrics:
    """What a model does on proteins whose sequences are known.

    Parameters
    ----------
    metrics : dict of str to float
        ``perplexity`` is exp of the mean of ``-log p`` over all residues, each told the native types before it, log p
        averaged over random orders (teacher forcing); ``perplexity_mean`` is the mean over chains of each one's.
        ``recovery`` is the share of all residues whose native type is drawn; ``recovery_mean`` and ``recovery_median``
        are of the shares in each chain.
    confusion : ndarray
        ``(20, 20)`` int64: how often a residue of the type of the row was drawn as the type of the column.
    residues : int
        Residues that count: with a whole backbone, of one of the 20 types.
    """

    metrics: dict[str, float]
    confusion: np.ndarray
    residues: int


def evaluate_design(
    model: ProteinModel,
    proteins: Sequence[Residues],
    *,
    samples: int = 1,
    temperature: float = 0.1,
    orders: int = 4,
    seed: int = 0,
) -> DesignMetrics:
    """Score the native sequences of proteins, and draw others for all their residues.

    Parameters
    ----------
    model : ProteinModel
        With a decoder.
    proteins : sequence of Residues
    samples : int
        Sequences drawn for each protein, for recovery.
    temperature : float
        Of the drawing.
    orders : int
        Random orders, for perplexity.
    seed : int

    Raises
    ------
    OptionError
        No protein.
    """
    if not proteins:
        raise OptionError("there is no protein to assess a model on")
    losses, shares, right = [], [], np.zeros((UNKNOWN, UNKNOWN), np.int64)
    for told in score_sequences(model, proteins, orders=orders, seed=seed):
        known = (told.residues.aatype != UNKNOWN) & ~np.isnan(told.each)
        losses += [-told.each[rows] for rows in _chains(told.residues, known)]
    wish = DesignSpec()
    for made in design_sequences(model, proteins, wish, copies=samples, temperature=temperature, seed=seed):
        native = made.residues.aatype
        counted = made.designed & (native != UNKNOWN)
        drawn = made.aatype[:, counted]
        shares += [(made.aatype[:, rows] == native[rows]).mean() for rows in _chains(made.residues, counted)]
        np.add.at(right, (np.broadcast_to(native[counted], drawn.shape), drawn), 1)
    whole = np.concatenate(losses)
    metrics = {
        "perplexity": np.exp(whole.mean()),
        "recovery": np.trace(right) / right.sum(),
        "recovery_median": np.median(shares),
        "perplexity_mean": np.mean([np.exp(one.mean()) for one in losses]),
        "recovery_mean": np.mean(shares),
    }
    return DesignMetrics({name: float(value) for name, value in metrics.items()}, right, len(whole))


def _chains(residues: Residues, counted: np.ndarray) -> list[np.ndarray]:
    """Rows of each chain that count, of chains that have any."""
    rows = [np.flatnonzero((residues.chain == name) & counted) for name in residues.chain_names]
    return [own for own in rows if len(own)]
