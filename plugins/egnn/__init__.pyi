# Written by tools/stubs.py.
from protgraph_plugins.egnn.family import FAMILY as FAMILY
from protgraph_plugins.egnn.layer import EGNN as EGNN
