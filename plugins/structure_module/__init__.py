"""From a sequence to backbone frames; see :mod:`protgraph_plugins.structure_module.family`."""

from __future__ import annotations

from protgraph_plugins.structure_module.family import FAMILY

__all__ = ["FAMILY"]
