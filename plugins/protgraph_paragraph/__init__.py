"""Paragraph: which residues of an antibody bind; see :mod:`protgraph_paragraph.family`."""

from __future__ import annotations

from protgraph_paragraph.antibody import binding_loops
from protgraph_paragraph.family import FAMILY

__all__ = ["FAMILY", "binding_loops"]
