"""Recipes of trained models: from a TOML file to weights, calibration and a model card."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "Recipe": "protgraph_plugins.recipes.recipe",
    "card_page": "protgraph_plugins.recipes.card",
    "comparisons_of": "protgraph_plugins.recipes.card",
    "evaluate_recipe": "protgraph_plugins.recipes.run",
    "example_noun": "protgraph_plugins.recipes.card",
    "run_recipe": "protgraph_plugins.recipes.run",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
