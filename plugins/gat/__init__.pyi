# Written by tools/stubs.py.
from protgraph_plugins.gat.family import FAMILY as FAMILY
from protgraph_plugins.gat.layer import GAT as GAT
