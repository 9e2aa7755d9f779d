"""Paragraph: antibody residues that bind the antigen, with published weights."""

from __future__ import annotations

from protgraph_plugins.paragraph.antibody import binding_loops
from protgraph_plugins.paragraph.family import FAMILY

__all__ = ["FAMILY", "binding_loops"]
