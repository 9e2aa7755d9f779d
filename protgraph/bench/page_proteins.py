"""Best and worst proteins of the HTML report in 3D: the page of ``protgraph view`` for each, with one copy of Mol*."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from protgraph.bench.protein_view import ProteinView
from protgraph.errors import MissingExtraError
from protgraph.visualization.molstar import molstar_script, pack_base64
from protgraph.visualization.page import scene_page

__all__ = ["ProteinBoxes"]

#: Characters of the scenes of one report; with Mol* and the charts, the report has at most 6 MB.
_MAX_SCENES = 3_000_000
#: Place of Mol* in a scene, which the script of the report fills in.
_MOLSTAR = "molstar of the report"


class ProteinBoxes:
    """Boxes of the proteins of one report, which share one copy of Mol*."""

    def __init__(self) -> None:
        try:
            self._script, self._note = molstar_script(), ""
        except MissingExtraError as e:
            self._script, self._note = "", f"3D pictures are left out: {e}"
        self._left = _MAX_SCENES
        self._count = 0

    def boxes(self, views: Sequence[ProteinView], metric: str) -> str:
        """Return a box per protein, of which one is open, or a list of the proteins without the extra ``view``."""
        parts = [self._box(view, metric) for view in views]
        note = f'<p class="quiet">{escape(self._note)}</p>' if self._note and views else ""
        return "".join(parts) + note

    def shared(self) -> str:
        """Return what all boxes use, for the end of the page."""
        return f'<script type="text/plain" id="molstar">{self._script}</script>' if self._count else ""

    def _box(self, view: ProteinView, metric: str) -> str:
        title = (
            f"<b>{escape(view.name)}</b> {view.rank}, {escape(metric)} {view.value:.3f}, "
            f"{len(view.scene.residues)} residues"
        )
        packed = pack_base64(scene_page(view.scene, molstar=_MOLSTAR).encode()) if self._script else ""
        if not packed or len(packed) > self._left:
            reason = "" if not packed else "; not in 3D, as the page would exceed 6 MB"
            return f'<p class="protein">{title}{reason}</p>'
        self._left -= len(packed)
        self._count += 1
        is_open = " open" if self._count == 1 else ""
        return (
            f'<details class="protein" name="protein" data-title="{escape(view.name)}"{is_open}>'
            f'<summary>{title}</summary><script type="text/plain">{packed}</script></details>'
        )
