# Written by tools/stubs.py.
from protgraph_plugins.evoformer.family import FAMILY as FAMILY
from protgraph_plugins.evoformer.msa import (
    MsaColumnAttention as MsaColumnAttention,
    MsaColumnGlobalAttention as MsaColumnGlobalAttention,
    MsaEmbed as MsaEmbed,
    MsaOuterProductMean as MsaOuterProductMean,
    MsaRowAttention as MsaRowAttention,
    MsaTransition as MsaTransition,
)
from protgraph_plugins.evoformer.stack import Evoformer as Evoformer
