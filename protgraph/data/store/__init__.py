"""Graph stores: many proteins in memory-mapped shards, and batches of them."""

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches, pack
from protgraph.data.store.open_store import is_store, open_store
from protgraph.data.store.store_description import ShardEntry
from protgraph.data.store.store_writer import write_store

__all__ = ["GraphStore", "ProteinBatches", "ShardEntry", "is_store", "open_store", "pack", "write_store"]
