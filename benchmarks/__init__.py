"""Measurements of speed: each way of doing one thing beside the others, in one interleaved run.

``protgraph speed NAME`` prints one; a ratio is what to read, since milliseconds are the machine's.
"""

from benchmarks.case import Case, Scene
from benchmarks.measure import MEASUREMENTS, measure
from benchmarks.timing import Measurement, Timing, interleave

__all__ = ["MEASUREMENTS", "Case", "Measurement", "Scene", "Timing", "interleave", "measure"]
