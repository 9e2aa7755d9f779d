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
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a store to a folder that litdata streams, residues included; each shard becomes a chunk as it is.

    Parameters
    ----------
    store : GraphStore
    folder : str or Path
        New folder. Copy it to any place that litdata reads.
    overwrite : bool
        Replace an existing folder of litdata; others are never replaced.
    progress : callable, optional
        Called with the number of exported shards and their total.

    Raises
    ------
    MissingExtraError
        litdata is not installed.
    DatasetError
        The folder exists, and is not replaced; or the checksum of a shard differs.
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
        for number in range(len(store.shards)):
            chunks.add_item(number, store.shard_bytes(number))
            if progress is not None:
                progress(number + 1, len(store.shards))
        last = Path(scratch) / "description"
        write_shard_file(last, {"sizes": store.sizes}, {DESCRIPTION: store.description.to_dict()})
        chunks.add_item(len(store.shards), last.read_bytes())
        chunks.done()
        chunks.merge()
    return folder
