"""Contact prediction from the sequence: labels, and precision of the most probable contacts.

P@L, P@L/2 and P@L/5 are those of Rao et al. 2019 (TAPE, arXiv:1906.08230) and 2021 (doi:10.1101/2020.12.15.422761):
contacts are CB atoms closer than 8 Å, pairs fewer than 6 positions apart do not count. L is the number of residues with
coordinates. Ranges have no upper bound here: 12 means 12 positions or more, where papers often mean 12 to 23.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.structure.descriptors.backbone_geometry import beta_carbon
from protgraph.structure.residues.residues import Residues
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import binary_cross_entropy, known_labels
from protgraph.task.metrics import Metric
from protgraph.task.predictions import ResiduePairs, SplitPredictions
from protgraph.task.task import Task

__all__ = ["CONTACT", "CONTACT_CUTOFF", "PRECISIONS", "beta_carbons", "contact_labels", "precision", "top_rows"]
ENTRY_POINTS = {
    "protgraph.metrics": {
        "precision_l2_12": "precision_l2_12",
        "precision_l2_24": "precision_l2_24",
        "precision_l2_6": "precision_l2_6",
        "precision_l5_12": "precision_l5_12",
        "precision_l5_24": "precision_l5_24",
        "precision_l5_6": "precision_l5_6",
        "precision_l_12": "precision_l_12",
        "precision_l_24": "precision_l_24",
        "precision_l_6": "precision_l_6",
    },
    "protgraph.tasks": {"contact": "CONTACT"},
}

#: Largest CB distance of a contact (CASP), exclusive, Å.
CONTACT_CUTOFF = 8.0
#: Smallest sequence separations of the metrics, each without upper bound.
SEPARATIONS = (6, 12, 24)


def beta_carbons(residues: Residues) -> np.ndarray:
    """Return CB of each residue, ``(N, 1, 3)`` float32, Å.

    A missing CB (glycine, or missing in the file) is placed by ideal geometry; see
    :func:`protgraph.structure.descriptors.backbone_geometry.virtual_cb`. NaN if N, CA or C is missing too.
    """
    return beta_carbon(residues)[:, None].astype(np.float32)


def contact_labels(graph: Data, generator: Generator | None = None) -> tuple[Data, Tensor]:
    """Return the graph or batch unchanged, and the contact labels of all ordered pairs of each protein.

    Returns ``(Σ_b L_b², 1)`` float32, row-major, protein after protein: 1 if two CB are closer than 8 Å; NaN if one of
    them is unknown, and for residues of one chain fewer than 6 positions apart.
    """
    sizes = graph.sizes if "sizes" in graph else (graph.num_nodes,)
    parts = (graph.y[:, 0].double().split(sizes), graph.chain.split(sizes), graph.seq_pos.split(sizes))
    labels = []
    for pos, chain, seq_pos in zip(*parts, strict=True):
        pos = pos - pos.nanmean(0)
        distance = torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist")  # (L, L)
        near_in_chain = (chain[:, None] == chain) & ((seq_pos[:, None] - seq_pos).abs() < SEPARATIONS[0])
        label = (distance < CONTACT_CUTOFF).float().masked_fill(distance.isnan() | near_in_chain, torch.nan)
        labels.append(label.view(-1, 1))
    return graph, torch.cat(labels)


def _pairs_of(o: SplitPredictions) -> ResiduePairs:
    """Return the residue pairs of the rows; the predictions of this task have them."""
    assert o.pairs is not None
    return o.pairs


def top_rows(o: SplitPredictions) -> Tensor:
    """Select the rows ``(K,)`` of one protein for :func:`precision`: the L most probable per separation, with ties."""
    pairs = _pairs_of(o)
    size, is_top = int(pairs.sizes[0]), torch.zeros(len(o.y), dtype=torch.bool)
    for separation in SEPARATIONS:
        rows = ((pairs.separation >= separation) & known_labels(o.y[:, 0])).nonzero().flatten()
        if len(rows):
            logits = o.logits[rows, 0]
            is_top[rows[logits >= logits.topk(min(size, len(rows))).values[-1]]] = True
    return is_top.nonzero().flatten()


def precision(o: SplitPredictions, *, divisor: int, separation: int) -> float:
    """Compute the fraction of contacts among the ``max(L // divisor, 1)`` most probable pairs, mean over proteins.

    Only pairs of known label at least ``separation`` apart count. Proteins without such a pair are left out. If there
    are fewer pairs than ``L // divisor``, all of them count. Ties at the cut count with their expected number of
    contacts, so that the precision of a constant prediction is the frequency of contacts.
    """
    pairs = _pairs_of(o)
    mask = ((pairs.separation >= separation) & known_labels(o.y[:, 0])).nonzero().flatten()
    count = torch.bincount(pairs.protein[mask], minlength=len(pairs.sizes)).tolist()
    values = []
    for rows, size in zip(mask.split(count), pairs.sizes.tolist(), strict=True):
        if len(rows):
            most = min(max(size // divisor, 1), len(rows))
            logits, true = o.logits[rows, 0], o.y[rows, 0].double()
            cut = logits.topk(most).values[-1]
            above, equal = logits > cut, logits == cut
            values.append((true[above].sum() + (most - above.sum()) * true[equal].mean()) / most)
    return float(torch.stack(values).mean()) if values else float("nan")


def _metric(divisor: int, separation: int) -> Metric:
    function = partial(precision, divisor=divisor, separation=separation)
    most = "L" if divisor == 1 else f"L/{divisor}"
    function.__doc__ = (
        f"Precision of the {most} most probable contacts at least {separation} apart, mean over proteins."
    )
    return Metric(f"precision_l{'' if divisor == 1 else divisor}_{separation}", "max", function)


precision_l_6 = _metric(1, 6)
precision_l2_6 = _metric(2, 6)
precision_l5_6 = _metric(5, 6)
precision_l_12 = _metric(1, 12)
precision_l2_12 = _metric(2, 12)
precision_l5_12 = _metric(5, 12)
precision_l_24 = _metric(1, 24)
precision_l2_24 = _metric(2, 24)
precision_l5_24 = _metric(5, 24)
#: Metrics of contact prediction.
PRECISIONS = (
    precision_l_6,
    precision_l2_6,
    precision_l5_6,
    precision_l_12,
    precision_l2_12,
    precision_l5_12,
    precision_l_24,
    precision_l2_24,
    precision_l5_24,
)

CONTACT = Task(
    "contact",
    Target("contact", "pair", "multilabel", 1, ("contact",), separation=SEPARATIONS[0]),
    binary_cross_entropy,
    PRECISIONS,
    "precision_l5_6",
    InputMasking(hidden={"coordinates", "sidechain", "b_factor"}, corrupt=contact_labels),
    derive=beta_carbons,
    stored_target=Target("beta_carbon", "node", "coordinates", 1, ("CB",), unit="Å"),
    select_rows=top_rows,
    doc="Pairs of residues at least 6 positions apart with CB closer than 8 Å (ideal CB for glycine), from the "
    "sequence alone.",
)
