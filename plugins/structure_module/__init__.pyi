# Written by tools/stubs.py.
from protgraph_plugins.structure_module.family import FAMILY as FAMILY
from protgraph_plugins.structure_module.pair import PairEmbed as PairEmbed
from protgraph_plugins.structure_module.task import (
    STRUCTURE_PREDICTION as STRUCTURE_PREDICTION,
    fape as fape,
    lddt_ca as lddt_ca,
    rmsd_superposed as rmsd_superposed,
    tm_score as tm_score,
)
from protgraph_plugins.structure_module.triangle import (
    TriangleAttention as TriangleAttention,
    TriangleMultiplication as TriangleMultiplication,
)
