"""Import what the child processes of ``protgraph doctor`` need, once, in the process that they fork from.

A module that cannot be imported here fails again in :func:`protgraph.cli.doctor_load.load_distribution`, which reports
it; an error here would end the process that all children start from.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

__all__ = ["PRELOAD"]

#: Imported before any plugin, so that what these modules change is not attributed to it.
PRELOAD = (
    *("torch", "torch_geometric", "e3nn.o3", "lightning", "biotite.structure", "scipy.spatial", "pyarrow"),
    *("protgraph.nn", "protgraph.featurize", "protgraph.model", "protgraph.task", "protgraph.train"),
)

for _name in PRELOAD:
    with suppress(Exception):
        import_module(_name)
