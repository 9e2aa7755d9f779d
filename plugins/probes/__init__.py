"""Probes: linear heads and small MLPs on frozen vectors of a model, on ten tasks."""
