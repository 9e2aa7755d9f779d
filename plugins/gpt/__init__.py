"""Causal language models of protein sequences (GPT), and sequences that are sampled from causal models."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FAMILY": "protgraph_plugins.gpt.family",
    "GeneratedSequence": "protgraph_plugins.gpt.generation",
    "generate": "protgraph_plugins.gpt.generation",
    "sample_classes": "protgraph_plugins.gpt.sampling",
    "sampling_probabilities": "protgraph_plugins.gpt.sampling",
    "write_generated": "protgraph_plugins.gpt.generation",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
