"""Agreement of attention heads with contacts and with the distance along the sequence.

For weights A of one head, S = A + Aᵀ is symmetric, and F is S with the average product correction

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
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.model.attention_maps import AttentionMap
from protgraph.structure import Residues
from protgraph.structure.descriptors.representative_atoms import cb_or_ca
from protgraph.task.contact_prediction import CONTACT_CUTOFF

__all__ = [
    "HeadReport",
    "apc",
    "contact_map",
    "report_heads",
    "residue_attention",
    "symmetrized",
    "write_heads",
]


@dataclass(frozen=True)
class HeadReport:
    """One head of one layer on one protein; NaN if undefined (no structure, no contact, constant weights).

    Parameters
    ----------
    layer : str
        Path in the model, e.g. "layers[2] (transformer)".
    head : int
        Index of the head.
    r_contact : float
        Pearson correlation of F_ij and contact (0 or 1) over pairs at the minimum separation, each once.
    p_at_l, p_at_l5 : float
        Fraction of contacts among the L and the L/5 such pairs with the largest F, for L residues.
    r_separation : float
        Spearman correlation of S_ij and ``|seq_pos_i - seq_pos_j|`` over all pairs within chains, each once.
    mean_separation : float
        ``Σ_ij A_ij |seq_pos_i - seq_pos_j| / Σ_ij A_ij`` within chains, residues.
    pairs : int
        Number of pairs of r_contact. For attention along edges, only pairs with an edge.
    prevalence : float
        Fraction of contacts among them: the expected p_at_l of a random ranking.
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
    """Compute ``S = A + Aᵀ``, ``(…, L, L)`` to the same shape."""
    return weights + np.swapaxes(weights, -1, -2)


def apc(maps: np.ndarray) -> np.ndarray:
    """Compute ``F_ij = S_ij - S_i· S_·j / S_··``, ``(…, L, L)`` to the same shape; S if its sum is 0.

    Examples
    --------
    >>> apc(np.outer([1.0, 2.0], [3.0, 4.0])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    total = maps.sum((-1, -2), keepdims=True)
    expected = maps.sum(-1, keepdims=True) * maps.sum(-2, keepdims=True)
    return maps - np.divide(expected, total, out=np.zeros_like(maps), where=total != 0)


def contact_map(residues: Residues, *, cutoff: float = CONTACT_CUTOFF) -> np.ndarray:
    """Compute the ``(L, L)`` bool map of pairs with CB within ``cutoff`` Å, without the diagonal.

    Without CB in the file (glycine), CB has ideal geometry; without a backbone, CA is used.
    """
    place = cb_or_ca(residues)
    distance = np.linalg.norm(place[:, None] - place[None], axis=-1)  # (L, L), NaN without coordinates
    return (distance < cutoff) & ~np.eye(len(residues), dtype=bool)


def residue_attention(atom_map: AttentionMap, residue: Tensor, count: int) -> AttentionMap:
    """Convert an attention map of atoms to residues: sum over the atoms of j, mean over the atoms of i.

    Parameters
    ----------
    atom_map : AttentionMap
        Map of N atoms.
    residue : Tensor
        ``(N,)`` int64, residue of each atom; indices from ``count`` on are ligands, and left out.
    count : int
        Number of residues L.
    """
    belongs = (residue[:, None] == torch.arange(count, device=residue.device)).to(atom_map.weights.dtype)  # (N, L)
    atoms = belongs.sum(0).clamp(min=1)
    weights = (belongs / atoms).t() @ atom_map.weights @ belongs
    visible = None if atom_map.visible is None else (belongs.t() @ atom_map.visible.to(belongs.dtype) @ belongs) > 0
    return AttentionMap(weights, visible)


def report_heads(
    maps: Mapping[str, AttentionMap], residues: Residues, *, separation: int = 6, cutoff: float = CONTACT_CUTOFF
) -> list[HeadReport]:
    """Compare every head of every map with the contacts and the sequence of the protein.

    Parameters
    ----------
    maps : mapping of str to AttentionMap
        Maps of this protein, by layer.
    residues : Residues
        Without coordinates, values about contacts are NaN.
    separation : int
        Minimum separation of pairs within a chain, residues; pairs between chains always count.
    cutoff : float
        Maximum CB distance of a contact, Å.
    """
    from scipy.stats import rankdata  # 0.4 s, which other pictures do not need

    if separation < 1:
        raise OptionError(f"separation={separation}. Allowed: 1 or more residues.")
    chain, place = residues.chain_number, residues.seq_pos
    same = chain[:, None] == chain
    apart = np.abs(place[:, None] - place)
    upper = np.triu(np.ones_like(same), 1)
    has_position = ~np.isnan(residues.pos).any(1)
    far = upper & (~same | (apart >= separation)) & has_position[:, None] & has_position
    in_contact = contact_map(residues, cutoff=cutoff)
    reports = []
    for layer, attention in maps.items():
        weights = attention.weights.double().cpu().numpy()
        seen = np.ones_like(same) if attention.visible is None else symmetrized(attention.visible.cpu().numpy())
        pairs, near = far & seen, upper & same & seen
        for head, a in enumerate(weights):
            s = symmetrized(a)
            f, contact = apc(s)[pairs], in_contact[pairs]
            reports.append(HeadReport(
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
    return reports


def write_heads(reports: Sequence[HeadReport], path: str | Path) -> Path:
    """Write reports as CSV, one row per head; an existing file is replaced."""
    path = Path(path)
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([f.name for f in fields(HeadReport)])
        for report in reports:
            table.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in astuple(report)])
    return path


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Compute the Pearson correlation; NaN if one is constant up to rounding."""
    x, y = (np.asarray(v, np.float64) for v in (x, y))
    if x.size < 2 or np.ptp(x) <= 1e-14 * np.abs(x).max() or np.ptp(y) == 0:
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _precision(score: np.ndarray, contact: np.ndarray, top: int) -> float:
    """Compute the fraction of contacts among the best ``top`` pairs; NaN without any contact."""
    if not contact.any():
        return np.nan
    return float(contact[np.argsort(-score, kind="stable")[:top]].mean())


def _mean(weights: np.ndarray, value: np.ndarray) -> float:
    total = weights.sum()
    return float((weights * value).sum() / total) if total > 0 else np.nan
