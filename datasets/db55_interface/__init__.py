"""db55_interface: interface residues of the docking benchmark 5.5, unbound partners."""

from protgraph_datasets.db55_interface.dataset import Db55Interface

__all__ = ["Db55Interface"]
