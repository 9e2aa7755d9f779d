"""Graph stores: many proteins in memory-mapped shards, and batches of them."""

from protgraph.data.store.graph_store import GraphStore, open_store
from protgraph.data.store.loader import ProteinBatches, pack
from protgraph.data.store.store_description import (
    META,
    ShardEntry,
    StoreDescription,
    StoreFiles,
    is_store,
    read_description,
    shard_path,
    stores,
)
from protgraph.data.store.store_writer import write_store

__all__ = [
    "META",
    "GraphStore",
    "ProteinBatches",
    "ShardEntry",
    "StoreDescription",
    "StoreFiles",
    "is_store",
    "open_store",
    "pack",
    "read_description",
    "shard_path",
    "stores",
    "write_store",
]
