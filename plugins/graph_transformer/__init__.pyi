# Written by tools/stubs.py.
from protgraph_plugins.graph_transformer.family import FAMILY as FAMILY
from protgraph_plugins.graph_transformer.graph_encoding import (
    LaplacianEncoding as LaplacianEncoding,
    RandomWalkEncoding as RandomWalkEncoding,
)
from protgraph_plugins.graph_transformer.layer import GraphTransformer as GraphTransformer
