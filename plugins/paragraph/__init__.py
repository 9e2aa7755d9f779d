"""Paragraph: which residues of an antibody bind; see :mod:`protgraph_plugins.paragraph.family`."""

from __future__ import annotations

from protgraph_plugins.paragraph.antibody import binding_loops
from protgraph_plugins.paragraph.family import FAMILY

__all__ = ["FAMILY", "binding_loops"]
