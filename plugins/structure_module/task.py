"""Structure prediction from the sequence: FAPE loss, and lDDT, RMSD and TM-score of CA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from protgraph_plugins.similarity import superpose, superposed_rmsd, tm_distance
from torch import Tensor

from protgraph.data.datasets import Target
from protgraph.featurize import axes
from protgraph.structure.compare import compute_lddt
from protgraph.task import InputMasking, SplitPredictions, Task, as_metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protgraph.structure.residues import Residues

__all__ = ["STRUCTURE_PREDICTION", "fape", "lddt_ca", "rmsd_superposed", "tm_score"]
ENTRY_POINTS = {
    "protgraph.metrics": {"lddt_ca": "lddt_ca", "rmsd_superposed": "rmsd_superposed", "tm_score": "tm_score"},
    "protgraph.tasks": {"structure_prediction": "STRUCTURE_PREDICTION"},
}

_CA = 1  # of N, CA, C, O


def backbone_points(residues: Residues) -> np.ndarray:
    """Return N, CA, C and O relative to the mean of CA, ``(N, 4, 3)`` float32, Å; NaN for missing atoms."""
    points = residues.backbone.astype(np.float64)
    return (points - residues.pos.astype(np.float64).mean(0)).astype(np.float32)


def fape(
    logits: Tensor,
    y: Tensor,
    *,
    clamp: float = 10.0,
    clamped: float = 0.9,
    unit: float = 10.0,
    epsilon: float = 1e-4,
) -> Tensor:
    """Compute FAPE, ``mean_ij min(d_ij, clamp) / unit`` with ``d_ij = √( |T_i⁻¹ ∘ x_j − T*_i⁻¹ ∘ x*_j|² + ε )``.

    Frame-aligned point error between predicted and true (*) atoms: frames T and points x of one protein, both from its
    N, CA, C and O. It is invariant to rotation and translation of either structure, not to reflection.

    ``logits``, ``y``: ``(N, 4, 3)``, Å: N, CA, C and O of each residue of one protein; NaN in ``y`` is unknown. A
    residue without true N, CA and C has no frame. ``clamp``: largest distance in the clamped part of the loss, Å.
    ``unit``: length unit of the loss, Å. ``epsilon``: keeps the gradient finite at 0, Å². Returns ``()``,
    dimensionless; 0 without known atoms.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 28 and sec. 1.11.5.
    """
    mask = ~y.isnan().any(2)  # (N, 4)
    has_frame, y = mask[:, :3].all(1), y.nan_to_num()
    squared = (_local(logits) - _local(y)).square().sum(-1)  # (N, 4 N)
    counts = (has_frame[:, None] & mask.flatten()).to(squared.dtype)
    d = (squared + epsilon).sqrt()
    error = (clamped * d.clamp(max=clamp) + (1 - clamped) * d) * counts
    return error.sum() / (unit * counts.sum().clamp(min=1))


def _local(points: Tensor) -> Tensor:
    """Transform all points into every residue frame (algorithm 21), ``(N, 4, 3)`` to ``(N, 4 N, 3)``."""
    n, ca, c, _ = points.unbind(1)
    return torch.einsum("ikx,ijx->ijk", axes(c - ca, n - ca), points.flatten(0, 1) - ca[:, None])


@as_metric("max")
def lddt_ca(o: SplitPredictions) -> float:
    """Local distance difference test (15 Å) of CA within each chain, mean over chains."""
    return _mean([compute_lddt(predicted, truth).score for truth, predicted in _pairs(o)])


@as_metric("min")
def rmsd_superposed(o: SplitPredictions) -> float:
    """RMSD of CA after superposition of each chain, Å, mean over chains."""
    return _mean([superposed_rmsd(predicted, truth) for truth, predicted in _pairs(o)])


@as_metric("max")
def tm_score(o: SplitPredictions) -> float:
    """TM-score of CA after superposition of all residues of each chain, mean over chains (a lower bound)."""
    values = []
    for truth, predicted in _pairs(o):
        squared = ((superpose(predicted, truth).apply(predicted) - truth) ** 2).sum(1)
        values.append(float((1 / (1 + squared / tm_distance(len(truth)) ** 2)).mean()))
    return _mean(values)


def _pairs(o: SplitPredictions) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield true and predicted CA, ``(L, 3)`` float64, of each chain with three or more known residues."""
    known = SplitPredictions(o.logits[:, _CA], o.y[:, _CA, :1], o.chain)
    for rows in known.chains():
        if len(rows) >= 3:
            yield o.y[rows, _CA].double().numpy(), o.logits[rows, _CA].double().numpy()


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


STRUCTURE_PREDICTION = Task(
    "structure_prediction",
    Target("structure_prediction", "node", "coordinates", 4, ("N", "CA", "C", "O"), unit="Å"),
    fape,
    (lddt_ca, rmsd_superposed, tm_score),
    "lddt_ca",
    InputMasking(hidden={"coordinates", "sidechain", "b_factor"}),
    derive=backbone_points,
    loss_per_protein=True,
    doc="Positions of N, CA, C and O of each residue, from the sequence alone. The loss is FAPE.",
)
