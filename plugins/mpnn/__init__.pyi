# Written by tools/stubs.py.
from protgraph_plugins.mpnn.family import FAMILY as FAMILY
from protgraph_plugins.mpnn.layer import MPNN as MPNN
