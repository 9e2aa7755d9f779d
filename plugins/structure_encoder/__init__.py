"""Encoder of protein structures: vectors per residue, pretrained on unlabeled chains."""

from __future__ import annotations

from protgraph_plugins.structure_encoder.family import FAMILY
from protgraph_plugins.structure_encoder.tasks import MASKED_GEOMETRY, MULTIVIEW_CONTRAST

__all__ = ["FAMILY", "MASKED_GEOMETRY", "MULTIVIEW_CONTRAST"]
