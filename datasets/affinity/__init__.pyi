# Written by tools/stubs.py.
from protgraph_datasets.affinity.dataset import Affinity as Affinity
