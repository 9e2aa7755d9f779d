"""``protgraph export``: write a graph store in a format for streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protgraph.cli.output_path import Overwrite

__all__ = ["export_command"]

_FORMATS = ("litdata",)


def export_command(
    store: Annotated[Path, typer.Argument(help="Graph store of 'protgraph prepare' or 'protgraph featurize'.")],
    to: Annotated[str, typer.Option("--to", help="Format: litdata.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")],
    shard_size: Annotated[int, typer.Option(help="Megabytes of graphs in a chunk.")] = 32,
    overwrite: Overwrite = False,
) -> None:
    """Write the graphs of a store to a folder that can be streamed from other machines and object stores.

    A chunk has the graphs of one shard. protgraph.data.StreamingDataLoader reads the folder and yields the batches that
    the store gives, in the same order; see docs/training_at_scale.md. The residues beside the graphs are not exported.
    Requires litdata: pip install 'protgraph-pyg[litdata]'.

    \b
    Examples:
      protgraph export graphs --to litdata -o stream
    """
    from protgraph.cli.output_path import check_output_folder
    from protgraph.data.store import GraphStore
    from protgraph.data.store.litdata_export import export_litdata
    from protgraph.errors import OptionError, suggest
    from protgraph.wording import count_noun

    if to not in _FORMATS:
        raise OptionError(f"--to {to}.{suggest(to, _FORMATS)} Allowed: {', '.join(_FORMATS)}.")
    if shard_size < 1:
        raise OptionError(f"--shard-size {shard_size}. Allowed: 1 or more megabytes.")
    check_output_folder(out, overwrite=overwrite)
    source = GraphStore(store)
    export_litdata(source, out, shard_bytes=shard_size << 20, overwrite=overwrite)
    files = list(out.iterdir())
    size = sum(file.stat().st_size for file in files) / 1e6
    typer.echo(f"{count_noun(len(source), 'protein')} in {count_noun(len(files) - 2, 'chunk')}, {size:.1f} MB: {out}")
    if source.has_residues:
        typer.echo("not exported: the residues beside the graphs", err=True)
