"""Recipes of trained models: from a TOML file to weights, calibration and a model card."""

from protgraph.recipes.recipe import Recipe
from protgraph.recipes.run import evaluate_recipe, run_recipe

__all__ = ["Recipe", "evaluate_recipe", "run_recipe"]
