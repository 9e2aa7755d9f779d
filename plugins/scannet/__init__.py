"""ScanNet: binding sites of proteins, antibodies and disordered proteins from learned spatio-chemical filters."""

from __future__ import annotations

from protgraph_plugins.scannet.family import FAMILY

__all__ = ["FAMILY"]
