"""Measurements of speed: each way of doing one thing beside the others, in one interleaved run.

``protgraph speed NAME`` prints one; a ratio is what to read, since milliseconds are the machine's.
"""

from benchmarks.layer_case import LayerInputs, SpeedCase
from benchmarks.measurements import MEASUREMENTS, measure
from benchmarks.timing import Measurement, Timing, interleave

__all__ = ["MEASUREMENTS", "SpeedCase", "Measurement", "LayerInputs", "Timing", "interleave", "measure"]
