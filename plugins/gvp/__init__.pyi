# Written by tools/stubs.py.
from protgraph_plugins.gvp.family import FAMILY as FAMILY
from protgraph_plugins.gvp.perceptron import (
    GVP as GVP,
    ScalarVector as ScalarVector,
    ScalarVectorDropout as ScalarVectorDropout,
    ScalarVectorNorm as ScalarVectorNorm,
    ScalarVectorWidths as ScalarVectorWidths,
)
