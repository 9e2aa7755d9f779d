"""Task: target, source of the labels, loss and metrics."""

from __future__ import annotations

import numpy as np
from torch import Tensor
from torch.nn import functional

import protgraph as pg
from protgraph_template.metric import template_recall

__all__ = ["TASK", "bend", "focal_loss"]

LIMIT = 105.0  # degrees: about 91 in helices, 120 to 135 in strands


def bend(residues: pg.Residues) -> np.ndarray:
    """Return 1 if the angle CA(n−1), CA(n), CA(n+1) is below 105°, else 0, ``(N,)`` int64; −1 at chain ends."""
    labels = np.full(len(residues), -1, np.int64)
    same = (residues.chain[1:] == residues.chain[:-1]) & (np.diff(residues.seq_pos) == 1)
    inner = np.flatnonzero(same[1:] & same[:-1]) + 1  # with a neighbor on both sides
    a, b = residues.pos[inner - 1] - residues.pos[inner], residues.pos[inner + 1] - residues.pos[inner]
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = (a * b).sum(1) / np.maximum(norms, 1e-9)
    labels[inner] = np.degrees(np.arccos(np.clip(cosine, -1, 1))) < LIMIT
    return labels


def focal_loss(logits: Tensor, y: Tensor) -> Tensor:
    """Compute the mean of ``−(1 − p)² log p`` over known labels, p the probability of the label; 0 without any.

    References
    ----------
    Lin et al. 2017, arXiv:1708.02002, eq. 4.
    """
    known = y >= 0  # −1 is unknown
    log_p = functional.log_softmax(logits[known], 1).gather(1, y[known, None])  # (K, 1)
    return -((1 - log_p.exp()).square() * log_p).sum() / known.sum().clamp(min=1)


TASK = pg.Task(
    name="template_bend",
    target=pg.Target("template_bend", "node", "classification", 2, ("straight", "bent")),
    loss=focal_loss,
    metrics=(template_recall, pg.metrics.get("accuracy")),
    monitor="template_recall",
    derive=bend,
    doc="Whether the CA trace bends by less than 105° at each residue.",
)
