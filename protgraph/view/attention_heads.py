"""What heads of attention look at: how far their weights agree with contacts and with distance along the sequence.

For weights A of one head, S = A + Aᵀ is symmetric, and F is S less what its rows and columns make expect, the average
product correction

    F_ij = S_ij - S_i· S_·j / S_··      with S_i· = Σ_j S_ij, S_·j = Σ_i S_ij, S_·· = Σ_ij S_ij.

References
----------
Rao, Meier, Sercu, Ovchinnikov & Rives 2021, "Transformer protein language models are unsupervised structure learners",
ICLR, doi:10.1101/2020.12.15.422761, sec. 3 (symmetrized and corrected maps; contacts are CB within 8 Å, at least 6
residues apart); the correction: Dunn, Wahl & Gloor 2008, doi:10.1093/bioinformatics/btm604, here with sums for means.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.model.attention_maps import AttentionMap
from protgraph.structure import Residues
from protgraph.structure.descriptors.representative_atoms import cb_or_ca

__all__ = [
    "CONTACT",
    "HeadReport",
    "apc",
    "contacts",
    "on_residues",
    "report_heads",
    "symmetrized",
    "write_heads",
]

CONTACT = 8.0
"""Å between CB of two residues in contact (Rao et al. 2021, sec. 3; CASP's definition)."""


@dataclass(frozen=True)
class HeadReport:
    """One head of one layer on one protein; NaN where it is not defined (no structure, no contact, constant weights).

    Parameters
    ----------
    layer : str
        Path in the model, "layers[2] (transformer)".
    head : int
        From 0.
    r_contact : float
        Pearson correlation of F_ij and contact (0 or 1) over pairs that are far enough apart, each once.
    p_at_l, p_at_l5 : float
        Share of contacts among the L and the L/5 such pairs of largest F, L residues.
    r_separation : float
        Spearman correlation of S_ij and ``|seq_pos_i - seq_pos_j|`` over all pairs of one chain, each once.
    mean_separation : float
        ``Σ_ij A_ij |seq_pos_i - seq_pos_j| / Σ_ij A_ij`` within chains, residues.
    pairs : int
        How many pairs r_contact is over: where attention goes along edges, pairs that are edges.
    prevalence : float
        Share of contacts among them: what p_at_l is by chance.
    """

    layer: str
    head: int
    r_contact: float
    p_at_l: float
    p_at_l5: float
    r_separation: float
    mean_separation: float
    pairs: int
    prevalence: float


def symmetrized(weights: np.ndarray) -> np.ndarray:
    """``S = A + Aᵀ``, ``(…, L, L)``."""
    return weights + np.swapaxes(weights, -1, -2)


def apc(maps: np.ndarray) -> np.ndarray:
    """``F_ij = S_ij - S_i· S_·j / S_··``, ``(…, L, L)``; S itself where its sum is 0.

    Examples
    --------
    >>> apc(np.outer([1.0, 2.0], [3.0, 4.0])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    whole = maps.sum((-1, -2), keepdims=True)
    expected = maps.sum(-1, keepdims=True) * maps.sum(-2, keepdims=True)
    return maps - np.divide(expected, whole, out=np.zeros_like(maps), where=whole != 0)


def contacts(residues: Residues, *, cutoff: float = CONTACT) -> np.ndarray:
    """``(L, L)`` bool, which residues have CB within ``cutoff`` Å; no residue with itself.

    Where the file has no CB (glycine), ideal geometry puts one on the backbone; without a backbone, CA counts.
    """
    place = cb_or_ca(residues)
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)  # (L, L), NaN without coordinates
    return (distance < cutoff) & ~np.eye(len(residues), dtype=bool)


def on_residues(found: AttentionMap, residue: Tensor, count: int) -> AttentionMap:
    """A map of atoms as one of residues: what the atoms of i give to those of j together, on average over those of i.

    Parameters
    ----------
    found : AttentionMap
        Of N atoms.
    residue : Tensor
        ``(N,)`` int64, residue of each atom; those from ``count`` on are ligands, and left out.
    count : int
        L.
    """
    belongs = (residue[:, None] == torch.arange(count, device=residue.device)).to(found.weights.dtype)  # (N, L)
    atoms = belongs.sum(0).clamp(min=1)
    weights = (belongs / atoms).t() @ found.weights @ belongs
    visible = None if found.visible is None else (belongs.t() @ found.visible.to(belongs.dtype) @ belongs) > 0
    return AttentionMap(weights, visible)


def report_heads(
    maps: Mapping[str, AttentionMap], residues: Residues, *, separation: int = 6, cutoff: float = CONTACT
) -> list[HeadReport]:
    """Weigh every head of every map against the contacts of the protein.

    Parameters
    ----------
    maps : mapping of str to AttentionMap
        Of this protein, by layer.
    residues : Residues
        Without coordinates, what asks for contacts is NaN.
    separation : int
        Contacts of one chain count from this many residues apart; those between chains always.
    cutoff : float
        Å.
    """
    if separation < 1:
        raise OptionError(f"separation={separation}: pairs are 1 residue apart or more")
    chain, place = residues.chain_number, residues.seq_pos
    same = chain[:, None] == chain
    apart = np.abs(place[:, None] - place)
    upper = np.triu(np.ones_like(same), 1)
    known = ~np.isnan(residues.pos).any(1)
    far = upper & (~same | (apart >= separation)) & known[:, None] & known
    touching = contacts(residues, cutoff=cutoff)
    made = []
    for layer, found in maps.items():
        weights = found.weights.double().cpu().numpy()
        seen = np.ones_like(same) if found.visible is None else symmetrized(found.visible.cpu().numpy())
        pairs, near = far & seen, upper & same & seen
        for head, a in enumerate(weights):
            s = symmetrized(a)
            f, contact = apc(s)[pairs], touching[pairs]
            made.append(HeadReport(
                layer=layer,
                head=head,
                r_contact=_pearson(f, contact),
                p_at_l=_precision(f, contact, len(residues)),
                p_at_l5=_precision(f, contact, max(1, len(residues) // 5)),
                r_separation=_pearson(rankdata(s[near]), rankdata(apart[near])),
                mean_separation=_mean(a * same, apart),
                pairs=int(pairs.sum()),
                prevalence=float(contact.mean()) if contact.size else np.nan,
            ))  # fmt: skip
    return made


def write_heads(reports: Sequence[HeadReport], path: str | Path) -> Path:
    """Write reports as CSV, a row a head."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([f.name for f in fields(HeadReport)])
        for report in reports:
            table.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in astuple(report)])
    return path


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """NaN where one is constant, to rounding."""
    x, y = (np.asarray(v, np.float64) for v in (x, y))
    if x.size < 2 or np.ptp(x) <= 1e-14 * np.abs(x).max() or np.ptp(y) == 0:
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _precision(score: np.ndarray, contact: np.ndarray, top: int) -> float:
    """Share of contacts among the best ``top`` pairs; NaN where there are no contacts at all."""
    if not contact.any():
        return np.nan
    return float(contact[np.argsort(-score, kind="stable")[:top]].mean())


def _mean(weights: np.ndarray, value: np.ndarray) -> float:
    whole = weights.sum()
    return float((weights * value).sum() / whole) if whole > 0 else np.nan
