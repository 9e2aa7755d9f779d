"""Structures from sequences: ``structure_prediction``, its loss over frames, and metrics after superposition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.featurize.frame import axes
from protgraph.task.input_masking import InputMasking
from protgraph.task.metrics import METRICS, as_metric
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from biotite.structure import AtomArray

    from protgraph.structure.residues.residues import Residues

__all__ = ["STRUCTURE_PREDICTION", "fape", "lddt_ca", "rmsd_superposed", "tm_score"]
ENTRY_POINTS = {"protgraph.tasks": {"structure_prediction": "STRUCTURE_PREDICTION"}}

_CA = 1  # of N, CA, C, O


def backbone_points(residues: Residues) -> np.ndarray:
    """N, CA, C and O of each residue, ``(N, 4, 3)`` float32, Å, about the mean of CA; NaN where one is missing."""
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
    """``mean_ij min(d_ij, clamp) / unit`` with ``d_ij = √( |T_i⁻¹ ∘ x_j − T*_i⁻¹ ∘ x*_j|² + ε )``.

    How far amiss each residue sees all atoms: frames T and points x of one protein, both from its N, CA, C and O.
    Turning or moving the predicted or the true structure changes nothing; mirroring one does.

    Parameters
    ----------
    logits, y : Tensor
        ``(N, 4, 3)``, Å: N, CA, C and O of each residue of one protein; NaN in ``y`` is unknown. A residue without true
        N, CA and C has no frame.
    clamp : float
        Å, the largest distance that counts,
    clamped : float
        in this part of the loss; the rest has no clamp. The paper leaves it off in one of ten batches, by chance.
    unit : float
        Å.
    epsilon : float
        Å², keeps the gradient finite at 0.

    Returns
    -------
    Tensor
        ``()``, dimensionless; 0 where nothing is known.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 28 and sec. 1.11.5.
    """
    there = ~y.isnan().any(2)  # (N, 4)
    framed, y = there[:, :3].all(1), y.nan_to_num()
    far = (_seen(logits) - _seen(y)).square().sum(-1)  # (N, 4 N)
    counts = (framed[:, None] & there.flatten()).to(far.dtype)
    d = (far + epsilon).sqrt()
    amiss = (clamped * d.clamp(max=clamp) + (1 - clamped) * d) * counts
    return amiss.sum() / (unit * counts.sum().clamp(min=1))


def _seen(points: Tensor) -> Tensor:
    """Every point in every residue's frame, ``(N, 4, 3)`` to ``(N, 4 N, 3)``; algorithm 21 makes the frames."""
    n, ca, c, _ = points.unbind(1)
    return torch.einsum("ikx,ijx->ijk", axes(c - ca, n - ca), points.flatten(0, 1) - ca[:, None])


@as_metric("max")
def lddt_ca(o: SplitPredictions) -> float:
    """Local distance difference test (15 Å) of CA within each chain, mean over chains."""
    from biotite.structure import lddt

    return _mean([lddt(truth, said) for truth, said in _pairs(o)])


@as_metric("min")
def rmsd_superposed(o: SplitPredictions) -> float:
    """Root of the mean squared distance of CA, Å, of each chain laid upon the true one, mean over chains."""
    from biotite.structure import rmsd, superimpose

    return _mean([rmsd(truth, superimpose(truth, said)[0]) for truth, said in _pairs(o)])


@as_metric("max")
def tm_score(o: SplitPredictions) -> float:
    """TM-score of CA of each chain laid upon the true one by all its residues, mean over chains (a lower bound)."""
    from biotite.structure import superimpose
    from biotite.structure import tm_score as tm

    values = []
    for truth, said in _pairs(o):
        every = np.arange(len(truth))
        values.append(tm(truth, superimpose(truth, said)[0], every, every))
    return _mean(values)


def _pairs(o: SplitPredictions) -> Iterator[tuple[AtomArray, AtomArray]]:
    """True and predicted CA of each chain of three or more known residues."""
    from biotite.structure import AtomArray

    known = SplitPredictions(o.logits[:, _CA], o.y[:, _CA, :1], o.chain)
    for rows in known.chains():
        if len(rows) < 3:
            continue
        made = []
        for points in (o.y, o.logits):
            ca = points[rows, _CA].double()
            array = AtomArray(len(rows))
            array.res_id[:], array.res_name[:], array.atom_name[:] = np.arange(len(rows)), "ALA", "CA"
            array.coord = (ca - ca.mean(0)).float().numpy()  # an AtomArray has float32
            made.append(array)
        yield made[0], made[1]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


METRICS.update({metric.name: metric for metric in (lddt_ca, rmsd_superposed, tm_score)})

STRUCTURE_PREDICTION = Task(
    "structure_prediction",
    Target("structure_prediction", "node", "coordinates", 4, ("N", "CA", "C", "O"), unit="Å"),
    fape,
    (lddt_ca, rmsd_superposed, tm_score),
    "lddt_ca",
    InputMasking(hidden={"coordinates", "sidechain", "b_factor"}),
    derive=backbone_points,
    loss_per_protein=True,
    doc="Where N, CA, C and O of each residue lie, from the sequence alone; the loss is FAPE.",
)
