"""``protgraph export``: write a graph store in a format for streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli.output_path import Overwrite

__all__ = ["export_command"]

ENTRY_POINTS = {"protgraph.commands": {"export": "export_command"}}

_FORMATS = ("litdata",)


def export_command(
    store: Annotated[Path, typer.Argument(help="Graph store of 'protgraph featurize'.")],
    to: Annotated[str, typer.Option("--to", help="Format: litdata.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Write the graphs of a store to a folder that can be streamed from other machines and object stores.

    Each shard becomes a chunk. Train on the folder as on the store: protgraph train --data stream. For a training loop
    of your own, protgraph.data.StreamingDataLoader yields the batches of the store, in the same order; see
    docs/training_at_scale.md. Requires litdata: pip install 'protgraph-pyg[litdata]'.

    \b
    Examples:
      protgraph export graphs --to litdata -o stream
    """
    from protgraph.cli.output_path import check_output_folder
    from protgraph.data.store import open_store
    from protgraph.data.store.litdata_export import export_litdata
    from protgraph.errors import OptionError, suggest
    from protgraph.wording import count_noun

    if to not in _FORMATS:
        raise OptionError(f"--to {to}.{suggest(to, _FORMATS)} Allowed: {', '.join(_FORMATS)}.")
    check_output_folder(out, overwrite=overwrite)
    source = open_store(store)
    export_litdata(source, out, overwrite=overwrite)
    files = list(out.iterdir())
    size = sum(file.stat().st_size for file in files) / 1e6
    typer.echo(f"{count_noun(len(source), 'protein')} in {count_noun(len(files) - 2, 'chunk')}, {size:.1f} MB: {out}")
