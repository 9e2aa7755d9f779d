# Written by tools/stubs.py.
from protgraph_plugins.pocketnet.family import FAMILY as FAMILY
from protgraph_plugins.pocketnet.pockets import (
    PocketNet as PocketNet,
    PointPocket as PointPocket,
    cluster_points as cluster_points,
)
