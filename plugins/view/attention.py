"""Attention of a model in one protein: agreement of its heads with contacts and sequence separation, and the figures.

For weights A of one head, S = A + Aᵀ is symmetric, and F is S with the average product correction

    F_ij = S_ij - S_i· S_·j / S_··      with S_i· = Σ_j S_ij, S_·j = Σ_i S_ij, S_·· = Σ_ij S_ij.

References
----------
Rao, Meier, Sercu, Ovchinnikov & Rives 2021, "Transformer protein language models are unsupervised structure learners",
ICLR, doi:10.1101/2020.12.15.422761, sec. 3 (symmetrized and corrected maps; contacts are CB within 8 Å, at least 6
residues apart); the correction: Dunn, Wahl & Gloor 2008, doi:10.1093/bioinformatics/btm604, here with sums for means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.view.attention_figures import (
    draw_heads,
    draw_overview,
    draw_positions,
    file_name,
    position_codes,
)
from torch import Tensor

from protgraph.data import ProteinGraph
from protgraph.errors import OptionError
from protgraph.inference import ResultTable
from protgraph.model import AttentionMap, ProteinModel
from protgraph.structure import Residues
from protgraph.structure.descriptors import cb_or_ca
from protgraph.task import mean_ranks, pearson_correlation

__all__ = [
    "AttentionReport",
    "HeadReport",
    "apc",
    "contact_map",
    "report_heads",
    "residue_attention",
    "symmetrized",
    "write_attention",
    "write_heads",
]

#: Å, maximum CB distance of a contact, as in the task "contact".
_CONTACT_CUTOFF = 8.0
#: Minimum number of positions in the figure of positional codes.
_MIN_POSITIONS = 64


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


@dataclass(frozen=True)
class AttentionReport:
    """Files and numbers of one report.

    Parameters
    ----------
    heads : list of HeadReport
    files : list of Path
        One figure per layer, one of all heads, one of positional codes if the model has any, and the table.
    positions : tuple of str
        Parts of the model with a positional encoding; edges and features may encode positions too.
    """

    heads: list[HeadReport]
    files: list[Path]
    positions: tuple[str, ...]


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


def contact_map(residues: Residues, *, cutoff: float = _CONTACT_CUTOFF) -> np.ndarray:
    """Compute the ``(L, L)`` bool map of pairs with CB within ``cutoff`` Å, without the diagonal.

    Without CB in the file (glycine), CB has ideal geometry; without a backbone, CA is used.
    """
    cb = cb_or_ca(residues)
    distance = np.linalg.norm(cb[:, None] - cb[None], axis=-1)  # (L, L), NaN without coordinates
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
    maps: Mapping[str, AttentionMap], residues: Residues, *, separation: int = 6, cutoff: float = _CONTACT_CUTOFF
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
    if separation < 1:
        raise OptionError(f"separation={separation}. Allowed: 1 or more residues.")
    is_far, in_chain, apart = _pairs(residues, separation)
    upper = np.triu(np.ones_like(in_chain), 1)
    has_position = ~np.isnan(residues.pos).any(1)
    is_far &= upper & has_position[:, None] & has_position
    in_contact = contact_map(residues, cutoff=cutoff)
    reports = []
    for layer, attention in maps.items():
        weights = attention.weights.double().cpu().numpy()  # (H, L, L)
        visible = np.ones_like(in_chain)
        if attention.visible is not None:
            visible = symmetrized(attention.visible.cpu().numpy())
        pairs, pairs_in_chain = is_far & visible, upper & in_chain & visible
        contact = in_contact[pairs]
        for head, a in enumerate(weights):
            s = symmetrized(a)
            f = apc(s)[pairs]
            ranks = [mean_ranks(torch.from_numpy(values[pairs_in_chain])) for values in (s, apart)]
            reports.append(HeadReport(
                layer=layer,
                head=head,
                r_contact=pearson_correlation(torch.from_numpy(f), torch.from_numpy(contact)),
                p_at_l=_precision(f, contact, len(residues)),
                p_at_l5=_precision(f, contact, max(1, len(residues) // 5)),
                r_separation=pearson_correlation(*ranks),
                mean_separation=_mean(a * in_chain, apart),
                pairs=int(pairs.sum()),
                prevalence=float(contact.mean()) if contact.size else np.nan,
            ))  # fmt: skip
    return reports


def write_heads(reports: Sequence[HeadReport], path: str | Path) -> Path:
    """Write reports as CSV, one row per head; an existing file is replaced."""
    columns = tuple(f.name for f in fields(HeadReport))
    rows = []
    for report in reports:
        rows.append(tuple(f"{value:.6g}" if isinstance(value, float) else value for value in astuple(report)))
    return ResultTable(columns, rows).write(path)


def write_attention(
    model: ProteinModel,
    residues: Residues,
    graph: ProteinGraph,
    out: str | Path,
    *,
    title: str = "",
    separation: int = 6,
) -> AttentionReport:
    """Write figures and a table of a model's attention in one protein; figures of an earlier report are removed.

    Parameters
    ----------
    model : ProteinModel
    residues : Residues
        Without coordinates, contacts are left out.
    graph : ProteinGraph
        Input of the model: ``model.plan.precompute(residues)``.
    out : str or Path
        Output folder.
    title : str
        Title of every figure.
    separation : int
        Minimum separation of contacts within a chain, residues.

    Raises
    ------
    WiringError
        The model has no attention layer.
    """
    out, model = Path(out), model.eval()
    maps = {layer: attention[0] for layer, attention in model.attention(graph).items()}
    if "residue" in graph:  # nodes are atoms
        maps = {layer: residue_attention(attention, graph.residue, len(residues)) for layer, attention in maps.items()}
    heads = report_heads(maps, residues, separation=separation)
    far_contacts = None
    if not np.isnan(residues.pos).all():
        far_contacts = contact_map(residues) & _pairs(residues, separation).is_far

    # Figures of an earlier report may be of a model with other layers.
    if (out / "heads.csv").is_file():
        for old in (*out.glob("layers_*.png"), out / "positions.png"):
            old.unlink(missing_ok=True)
    files = []
    for layer, attention in maps.items():
        path = out / file_name(layer)
        reports = [r for r in heads if r.layer == layer]
        files.append(draw_heads(path, layer, attention, residues, reports, in_contact=far_contacts, title=title))
    files.append(draw_overview(out / "heads.png", heads, title=title))
    codes = position_codes(model, max(_MIN_POSITIONS, int(residues.seq_pos.max()) + 1))
    if codes:
        files.append(draw_positions(out / "positions.png", codes, title=title))
    files.append(write_heads(heads, out / "heads.csv"))
    return AttentionReport(heads, files, tuple(codes))


class _Pairs(NamedTuple):
    """Pairs of residues: maps ``(L, L)``."""

    is_far: np.ndarray
    """bool, at the minimum separation within a chain, or in different chains."""
    in_chain: np.ndarray
    """bool, in the same chain."""
    apart: np.ndarray
    """int64, difference of the places in the sequences."""


def _pairs(residues: Residues, separation: int) -> _Pairs:
    chain, position = residues.chain_number, residues.seq_pos
    in_chain = chain[:, None] == chain
    apart = np.abs(position[:, None] - position)
    return _Pairs(~in_chain | (apart >= separation), in_chain, apart)


def _precision(score: np.ndarray, contact: np.ndarray, top: int) -> float:
    """Compute the fraction of contacts among the best ``top`` pairs; NaN without any contact."""
    if not contact.any():
        return np.nan
    return float(contact[np.argsort(-score, kind="stable")[:top]].mean())


def _mean(weights: np.ndarray, value: np.ndarray) -> float:
    total = weights.sum()
    return float((weights * value).sum() / total) if total > 0 else np.nan
