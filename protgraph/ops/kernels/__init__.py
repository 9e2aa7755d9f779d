"""Fused operations for single devices, behind :mod:`protgraph.ops`: attention along edges on CPUs, Triton on GPUs.

The plain formulas in :class:`protgraph.ops.Edges` give the same values; tests compare both.
"""
