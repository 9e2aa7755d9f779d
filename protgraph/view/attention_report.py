"""The attention of a model on one protein as a folder: pictures of every head, of positions, and a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.model import ProteinModel
from protgraph.structure import Residues
from protgraph.view.attention_heads import HeadReport, contacts, on_residues, report_heads, write_heads
from protgraph.view.attention_plot import draw_heads, draw_overview, file_name
from protgraph.view.position_plot import draw_positions, position_codes

__all__ = ["AttentionReport", "write_attention"]

#: Places in the picture of positions: at least these, however short the protein.
_PLACES = 64


@dataclass(frozen=True)
class AttentionReport:
    """What was written.

    Parameters
    ----------
    heads : list of HeadReport
    files : list of Path
        A picture for each layer, then of all heads, then of positions where the model has some, and the table.
    positions : tuple of str
        Where the model tells places apart by a positional encoding; edges and features may tell them apart too.
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
    """Show what a model attends to in one protein; pictures of an earlier report in the folder go.

    Parameters
    ----------
    model : ProteinModel
    residues : Residues
        The protein; without coordinates, contacts are left out.
    graph : ProteinGraph
        What the model sees of it: ``model.plan.precompute(residues)``.
    out : str or Path
        Folder to write to.
    title : str
        What stands above every picture.
    separation : int
        Contacts of one chain count from this many residues apart.

    Raises
    ------
    WiringError
        The model has no layer with attention.
    """
    out, model = Path(out), model.eval()
    maps = {layer: found[0] for layer, found in model.attention(graph).items()}
    if "residue" in graph:  # nodes are atoms
        maps = {layer: on_residues(found, graph.residue, len(residues)) for layer, found in maps.items()}
    heads = report_heads(maps, residues, separation=separation)
    touching = _far_contacts(residues, separation)
    files = []
    _remove_pictures(out)
    for layer, found in maps.items():
        own = [r for r in heads if r.layer == layer]
        files.append(draw_heads(out / file_name(layer), layer, found, residues, own, touching=touching, title=title))
    files.append(draw_overview(out / "heads.png", heads, title=title))
    codes = position_codes(model, max(_PLACES, int(residues.seq_pos.max()) + 1))
    if codes:
        files.append(draw_positions(out / "positions.png", codes, title=title))
    files.append(write_heads(heads, out / "heads.csv"))
    return AttentionReport(heads, files, tuple(codes))


def _remove_pictures(out: Path) -> None:
    """Take away the pictures of an earlier report, of a model with other layers maybe: its table is replaced too."""
    if (out / "heads.csv").is_file():
        for old in (*out.glob("layers_*.png"), out / "positions.png"):
            old.unlink(missing_ok=True)


def _far_contacts(residues: Residues, separation: int) -> np.ndarray | None:
    """``(L, L)`` bool; None without coordinates."""
    touching = contacts(residues)
    chain, place = residues.chain_number, residues.seq_pos
    touching &= (chain[:, None] != chain) | (np.abs(place[:, None] - place) >= separation)
    return None if np.isnan(residues.pos).all() else touching
