# Written by tools/stubs.py.
from protgraph_plugins.proteinmpnn.encoder_embedding import published_encoder as published_encoder
from protgraph_plugins.proteinmpnn.family import FAMILY as FAMILY
from protgraph_plugins.proteinmpnn.gaussian import SOFTEN as SOFTEN, gaussians as gaussians
from protgraph_plugins.proteinmpnn.layers import NodeUpdate as NodeUpdate
