# Written by tools/stubs.py.
from protgraph_plugins.dimenet.basis import SphericalBasis as SphericalBasis
from protgraph_plugins.dimenet.family import FAMILY as FAMILY
from protgraph_plugins.dimenet.line_graph import EdgeCosine as EdgeCosine, LineGraph as LineGraph
