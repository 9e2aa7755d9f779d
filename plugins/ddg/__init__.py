"""Mutation effects: features of the surroundings of a mutated residue, and a network on them."""

from __future__ import annotations
