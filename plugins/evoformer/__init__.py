"""The Evoformer of AlphaFold 2 on alignments: its layers, the block, and a model family."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FAMILY": "protgraph_plugins.evoformer.family",
    "Evoformer": "protgraph_plugins.evoformer.stack",
    "MsaColumnAttention": "protgraph_plugins.evoformer.msa",
    "MsaColumnGlobalAttention": "protgraph_plugins.evoformer.msa",
    "MsaEmbed": "protgraph_plugins.evoformer.msa",
    "MsaOuterProductMean": "protgraph_plugins.evoformer.msa",
    "MsaRowAttention": "protgraph_plugins.evoformer.msa",
    "MsaTransition": "protgraph_plugins.evoformer.msa",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
