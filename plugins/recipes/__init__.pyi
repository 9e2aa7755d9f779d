# Written by tools/stubs.py.
from protgraph_plugins.recipes.card import (
    card_page as card_page,
    comparisons_of as comparisons_of,
    example_noun as example_noun,
)
from protgraph_plugins.recipes.recipe import Recipe as Recipe
from protgraph_plugins.recipes.run import evaluate_recipe as evaluate_recipe, run_recipe as run_recipe
