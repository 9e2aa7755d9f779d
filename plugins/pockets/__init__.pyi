# Written by tools/stubs.py.
from protgraph_plugins.pockets.find import (
    PocketFinder as PocketFinder,
    ProteinPockets as ProteinPockets,
    find_pockets as find_pockets,
)
from protgraph_plugins.pockets.pockets import Pocket as Pocket, pockets_of as pockets_of
from protgraph_plugins.pockets.spheres import (
    AlphaSpheres as AlphaSpheres,
    alpha_spheres as alpha_spheres,
    smooth_step as smooth_step,
)
