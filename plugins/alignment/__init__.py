"""Multiple sequence alignments: reading them, features from them, and couplings between residues."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "AlignedSequences": "protgraph_plugins.alignment.formats",
    "read_alignment": "protgraph_plugins.alignment.formats",
    "align_protein": "protgraph_plugins.alignment.library",
    "alignment_files": "protgraph_plugins.alignment.library",
    "ABSENT": "protgraph_plugins.alignment.profile",
    "AlignmentReader": "protgraph_plugins.alignment.reader",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
