"""db55_pairs: residue–residue contacts between the unbound partners of the docking benchmark 5.5."""

from protgraph_datasets.db55_pairs.dataset import Db55Pairs

__all__ = ["Db55Pairs"]
