"""Files and databases of foldcomp, compressed protein chains of about 16 bytes per residue."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FoldcompDatabase": "protgraph_plugins.foldcomp.database",
    "FoldcompReader": "protgraph_plugins.foldcomp.reader",
    "open_foldcomp_database": "protgraph_plugins.foldcomp.database",
}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
