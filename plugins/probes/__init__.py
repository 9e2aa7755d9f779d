"""Probes: scores of simple heads on frozen vectors, ``protgraph bench probes``."""
