"""Write the attention of a model on one protein: heat maps of every head, positional codes, and a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.model import ProteinModel
from protgraph.structure import Residues
from protgraph.visualization.attention_heads import (
    HeadReport,
    contact_map,
    report_heads,
    residue_attention,
    write_heads,
)
from protgraph.visualization.attention_plot import draw_heads, draw_overview, file_name
from protgraph.visualization.position_plot import draw_positions, position_codes

__all__ = ["AttentionReport", "write_attention"]

#: Minimum number of positions in the figure of positional codes.
_MIN_POSITIONS = 64


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
    in_contact = _far_contacts(residues, separation)
    files = []
    _remove_pictures(out)
    for layer, attention in maps.items():
        reports = [r for r in heads if r.layer == layer]
        files.append(
            draw_heads(out / file_name(layer), layer, attention, residues, reports, in_contact=in_contact, title=title)
        )
    files.append(draw_overview(out / "heads.png", heads, title=title))
    codes = position_codes(model, max(_MIN_POSITIONS, int(residues.seq_pos.max()) + 1))
    if codes:
        files.append(draw_positions(out / "positions.png", codes, title=title))
    files.append(write_heads(heads, out / "heads.csv"))
    return AttentionReport(heads, files, tuple(codes))


def _remove_pictures(out: Path) -> None:
    """Remove figures of an earlier report, which may be of a model with other layers."""
    if (out / "heads.csv").is_file():
        for old in (*out.glob("layers_*.png"), out / "positions.png"):
            old.unlink(missing_ok=True)


def _far_contacts(residues: Residues, separation: int) -> np.ndarray | None:
    """Return the ``(L, L)`` bool map of contacts at the minimum separation; None without coordinates."""
    in_contact = contact_map(residues)
    chain, place = residues.chain_number, residues.seq_pos
    in_contact &= (chain[:, None] != chain) | (np.abs(place[:, None] - place) >= separation)
    return None if np.isnan(residues.pos).all() else in_contact
