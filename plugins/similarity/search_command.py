"""``protgraph search``: find proteins or residues with similar embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protgraph.cli import Overwrite, TableOutput, reads_structures, with_standard_input

if TYPE_CHECKING:
    from protgraph.structure import ReadOptions

__all__ = ["search_command"]

ENTRY_POINTS = {"protgraph.commands": {"search": "search_command"}}

_SHOWN_HITS = 50


@reads_structures()
def search_command(
    query: Annotated[
        str, typer.Argument(help="Structure or FASTA file, pdb:1ubq, or the name of a protein of the embeddings.")
    ],
    embeddings: Annotated[Path, typer.Option("--in", help="Embeddings of 'protgraph embed', .npz.")],
    model: Annotated[
        Path | None, typer.Option(help="Checkpoint that embeds QUERY.  [default: the one that made the embeddings]")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Hits per query.")] = 10,
    level: Annotated[str, typer.Option(help="Compare proteins or residues: protein, residue.")] = "protein",
    residue: Annotated[str | None, typer.Option(help="Only this residue of QUERY, e.g. A:42.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the hits to this file, .csv, .parquet, or '-'.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1.")] = "auto",
    overwrite: Overwrite = False,
    *,
    read: ReadOptions,
) -> None:
    """Find the proteins or residues whose embeddings have the largest cosine similarity to a query.

    All vectors are compared, without an index. A protein of the embeddings is not a hit of itself. Embeddings of
    another checkpoint are refused.

    \b
    Examples:
      protgraph search 1ubq.cif --in vectors.npz
      protgraph search 1ubq --in vectors.npz --level residue --residue A:42 -o hits.csv
    """
    from protgraph_plugins.similarity.embedding_search import search_embeddings

    from protgraph.cli import report_failures
    from protgraph.inference import TABLE_SUFFIXES
    from protgraph.wording import count_noun

    if query == "-":
        query = str(with_standard_input([Path(query)])[0])
    output = TableOutput(out, inputs=[query, embeddings, model], overwrite=overwrite, suffixes=TABLE_SUFFIXES)
    hits = search_embeddings(
        query, embeddings, checkpoint=model, k=k, level=level, residue=residue, read=read, device=device
    )
    for note in hits.notes:
        typer.echo(note, err=True)
    if hits.rows:
        output.print(hits.text(_SHOWN_HITS))
        output.write(hits, count_noun(len(hits.rows), "hit"))
    report_failures(hits.failures, output.path, any_succeeded=bool(hits.rows))
