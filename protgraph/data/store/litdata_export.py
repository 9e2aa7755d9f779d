"""Graph stores as litdata folders, for streaming from other file systems and object stores.

An item of litdata is a shard of the store, in a chunk of its own. The last item has the description of the store and
the sizes of its proteins.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.shard_file import write_shard_file
from protgraph.data.store.shard_writer import SHARD_BYTES, ShardWriter
from protgraph.errors import DatasetError, MissingExtraError
from protgraph.file_io import atomic_write

__all__ = ["export_litdata", "require_litdata"]


def require_litdata() -> None:
    """Raise :class:`MissingExtraError` if litdata is not installed."""
    try:
        import litdata  # noqa: F401
    except ImportError as e:
        raise MissingExtraError(f"streaming requires litdata ({e}): pip install 'protgraph-pyg[litdata]'") from e


def export_litdata(
    store: GraphStore,
    folder: str | Path,
    *,
    shard_bytes: int = SHARD_BYTES,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the graphs of a store to a folder that litdata streams; residues beside the graphs are left out.

    Parameters
    ----------
    store : GraphStore
    folder : str or Path
        New folder. Copy it to any place that litdata reads.
    shard_bytes : int
        Bytes of graphs in a chunk.
    overwrite : bool
        Replace an existing folder of litdata; others are never replaced.
    progress : callable, optional
        Called with the number of exported proteins and their total.

    Raises
    ------
    MissingExtraError
        litdata is not installed.
    DatasetError
        The folder exists, and is not replaced.
    OutputFileError
        A file cannot be written.
    """
    require_litdata()
    folder = Path(folder)
    if folder.exists() and not (overwrite and (folder / "index.json").is_file()):
        hint = "overwrite=True replaces it" if (folder / "index.json").is_file() else "it is not a folder of litdata"
        raise DatasetError(f"{str(folder)!r} exists; {hint}. Use another folder.")
    with (
        atomic_write(folder, folder=True, overwrite=overwrite) as temporary,
        tempfile.TemporaryDirectory(dir=temporary) as scratch,
    ):
        from litdata.streaming.writer import BinaryWriter

        from protgraph.data.store.litdata_chunks import DESCRIPTION, shard_chunk_loader

        chunks = BinaryWriter(str(temporary), chunk_size=1, item_loader=shard_chunk_loader()())

        def add(number: int, shard: Path) -> None:
            chunks.add_item(number, shard.read_bytes())
            shard.unlink()

        writer = ShardWriter(scratch, shard_bytes=shard_bytes, info=store.info, on_shard=add)
        for number, graph in enumerate(store, 1):
            writer.add(graph)
            if progress is not None:
                progress(number, len(store))
        description = writer.close()
        last = Path(scratch) / "description"
        write_shard_file(last, {"sizes": store.sizes}, {DESCRIPTION: description.to_dict()})
        add(len(description.shards), last)
        chunks.done()
        chunks.merge()
    return folder
