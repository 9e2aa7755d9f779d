"""Layers: maps from named fields to named fields, available by registry name."""
