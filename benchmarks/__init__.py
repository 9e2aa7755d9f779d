"""Speed measurements of the checkout: protgraph, plain implementations and other libraries, timed in turns.

``python -m benchmarks NAME`` prints one measurement. Compare its ratios: milliseconds depend on the machine.

Files: ``speed_<name>.py`` has the measurement of that name; ``cases_<family>.py`` layers of ``speed_layers``, each with
a second implementation; ``plain_<family>.py`` such implementations, which tests use as references too. The folder is
not part of the installed package.
"""

from benchmarks.cost_table import CostTable
from benchmarks.layer_case import LayerInputs, SpeedCase
from benchmarks.measurements import COSTS, MEASUREMENTS, ON_GPU, measure, measure_costs
from benchmarks.timing import Measurement, Timing, interleave

__all__ = [
    "COSTS",
    "CostTable",
    "LayerInputs",
    "MEASUREMENTS",
    "Measurement",
    "ON_GPU",
    "SpeedCase",
    "Timing",
    "interleave",
    "measure",
    "measure_costs",
]
