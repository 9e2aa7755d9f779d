"""cryptic_pocket: residues that line a cryptic pocket, on apo structures."""

from protgraph_datasets.cryptic_pocket.dataset import CrypticPocket

__all__ = ["CrypticPocket"]
