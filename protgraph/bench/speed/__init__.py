"""Measurements of speed: each way of doing one thing beside the others, in one interleaved run.

``protgraph speed NAME`` prints one; a ratio is what to read, since milliseconds are the machine's.
"""

from protgraph.bench.speed.case import Case, Scene
from protgraph.bench.speed.measure import MEASUREMENTS, measure
from protgraph.bench.speed.timing import Measurement, Timing, interleave

__all__ = ["MEASUREMENTS", "Case", "Measurement", "Scene", "Timing", "interleave", "measure"]
