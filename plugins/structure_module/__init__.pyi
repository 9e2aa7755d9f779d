# Written by tools/stubs.py.
from protgraph_plugins.structure_module.family import FAMILY as FAMILY
from protgraph_plugins.structure_module.pair import PairEmbed as PairEmbed
from protgraph_plugins.structure_module.triangle import (
    TriangleAttention as TriangleAttention,
    TriangleMultiplication as TriangleMultiplication,
)
