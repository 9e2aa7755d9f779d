"""Command ``protgraph data prepare``: convert the source of a dataset once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["prepare_dataset_command"]

ENTRY_POINTS = {"protgraph.commands": {"data.prepare": "prepare_dataset_command"}}


def prepare_dataset_command(
    name: Annotated[str, typer.Argument(help="Dataset, see 'protgraph data list'.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="Folder of the source: a clone of its repository, or its archives.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download the source at the commit of the card.")
    ] = False,
    mirror: Annotated[
        list[str] | None,
        typer.Option(help="Address to try first, with {repository}, {commit} and {path}; repeat for more."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use files that were downloaded before.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write. Default: in the cache folder.")
    ] = None,
) -> None:
    """Convert the source of a dataset, once: proteins alone, labels, checksums.

    Ligands (but for those of 'affinity'), nucleic acids and partner chains are removed from the structures. Proteins,
    residues and labels of each split are counted and compared with the card. An interrupted run is continued. The
    folder can also be used as structures with a label table: --data FOLDER/structures --labels
    FOLDER/residue_labels.parquet.

    \b
    Examples:
      protgraph data prepare dna_site --from GraphSite/
      protgraph data prepare dna_site --download
    """
    from protgraph_plugins.published.preparation import prepare_dataset
    from protgraph_plugins.published.prepared_dataset import PreparedDataset
    from protgraph_plugins.published.source_download import download_source

    from protgraph import registry
    from protgraph.errors import DatasetError, OptionError, list_first

    known = registry.datasets.create(name)
    if not isinstance(known, PreparedDataset):
        if not known.is_prepared:
            raise DatasetError(f"dataset {name!r} reads the files of others, {known.place}. Prepare each of these.")
        raise DatasetError(f"dataset {name!r} is part of its package and needs no preparation.")
    dataset = known if out is None else type(known)(folder=str(out))
    if (source is None) == (not download):
        raise OptionError("data prepare: give either --from FOLDER or --download.")
    if source is None:
        source = download_source(
            dataset.card, dataset.card_path.parent, mirrors=tuple(mirror or ()), offline=offline or None
        )
    result = prepare_dataset(dataset, source)
    reused = f", {result.reused} of them there before" if result.reused else ""
    typer.echo(f"{result.folder}: {result.proteins} proteins{reused}; counts as on the card")
    if result.without_ca:
        number = len(result.without_ca)
        typer.echo(f"note: {number} labeled residues without CA atom are left out: {list_first(result.without_ca, 10)}")
    if result.failures:
        table = result.folder / "failures.tsv"
        typer.echo(
            f"note: {result.failures} variants without a value, or that do not fit their structure, are left out, see "
            f"{table}"
        )
