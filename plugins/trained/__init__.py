"""Trained models that are part of the package, by name: weights, recipe and card of each are in a folder."""

from protgraph_plugins.trained.registered import DDG, DDG_BINDING, LIGAND_SITE, SECONDARY_STRUCTURE

__all__ = ["DDG", "DDG_BINDING", "LIGAND_SITE", "SECONDARY_STRUCTURE"]
