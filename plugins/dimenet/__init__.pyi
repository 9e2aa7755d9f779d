# Written by tools/stubs.py.
from protgraph_plugins.dimenet.basis import SphericalBasis as SphericalBasis
from protgraph_plugins.dimenet.family import FAMILY as FAMILY
