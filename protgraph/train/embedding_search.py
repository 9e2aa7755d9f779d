"""Search proteins or residues by the similarity of their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.errors import CheckpointError, OptionError, SelectionError, suggest
from protgraph.failure import Failure
from protgraph.structure.io.read_options import ReadOptions
from protgraph.train.checkpoint import Checkpoint, load_checkpoint
from protgraph.train.embed import embed
from protgraph.train.embedding_table import Embeddings, digest_of_model
from protgraph.train.nearest import nearest_by_cosine
from protgraph.train.result_table import ResultTable, Row

__all__ = ["SearchHits", "search_embeddings"]

LEVELS = ("protein", "residue")


@dataclass(frozen=True, eq=False, repr=False)
class SearchHits(ResultTable):
    """Most similar proteins or residues of each query.

    Parameters
    ----------
    columns : tuple of str
        query, rank (from 1), file, protein, chains, residue (of residues), cosine.
    rows : list of tuple
        By query, then by descending similarity.
    failures : list of Failure
        Queries that could not be used.
    notes : tuple of str
        Messages for the user.
    """

    failures: list[Failure]
    notes: tuple[str, ...] = ()


def search_embeddings(
    query: str | Path | Embeddings,
    embeddings: str | Path | Embeddings,
    *,
    checkpoint: str | Path | Checkpoint | None = None,
    k: int = 10,
    level: str = "protein",
    residue: str | None = None,
    read: ReadOptions | None = None,
    device: str = "auto",
) -> SearchHits:
    """Find the proteins or residues with the most similar embeddings, by cosine similarity.

    Parameters
    ----------
    query : str, Path or Embeddings
        Protein of ``embeddings`` by name, which is not a hit of itself; or a structure or FASTA file, which is
        embedded; or embeddings of the same model.
    embeddings : str, Path or Embeddings
        Where to search: an ``.npz`` file of :meth:`Embeddings.write`.
    checkpoint : str, Path or Checkpoint, optional
        Model that embeds ``query``; default: the checkpoint whose path is recorded in ``embeddings``.
    k : int
        Hits per query.
    level : {"protein", "residue"}
        Compare vectors of proteins or of residues; of residues, each residue of the query is a query of its own.
    residue : str, optional
        Only this residue of the query, e.g. "A:42".
    read, device
        See :func:`protgraph.train.predict`.

    Raises
    ------
    OptionError
        An option is not valid.
    SelectionError
        The query is neither a protein of the embeddings nor a file, or lacks the residue.
    CheckpointError
        The embeddings are of another model.
    """
    if level not in LEVELS:
        raise OptionError(f"level {level!r}. Allowed: {', '.join(LEVELS)}.{suggest(level, LEVELS)}")
    if k < 1:
        raise OptionError(f"k {k}: the number of hits is 1 or more.")
    if residue is not None and level != "residue":
        raise OptionError(f"residue {residue!r} is for searches of residues. Add level='residue' (--level residue).")
    known = embeddings if isinstance(embeddings, Embeddings) else Embeddings.read(embeddings)
    inside = _proteins_named(known, query)
    if len(inside):
        asked = known
    else:
        asked = query if isinstance(query, Embeddings) else _embed_query(query, known, checkpoint, read, device)
        _check_model(asked, known, str(embeddings) if not isinstance(embeddings, Embeddings) else "embeddings")
    proteins = inside if len(inside) else np.arange(len(asked.files))
    queries = _rows(asked, proteins, level, residue)
    excluded = queries if len(inside) else None
    rows, similarity = _nearest(asked, queries, known, level, k, excluded)
    table = _table(asked, queries, known, rows, similarity, level)
    columns = ("query", "rank", "file", "protein", "chains", *(("residue",) if level == "residue" else ()), "cosine")
    own = [] if asked is known else asked.failures
    return SearchHits(columns, table, own, () if asked is known else asked.notes)


def _proteins_named(known: Embeddings, query: str | Path | Embeddings) -> np.ndarray:
    """Return the numbers of the proteins with this name; none for embeddings."""
    if isinstance(query, Embeddings):
        return np.zeros(0, np.int64)
    return np.array([p for p, name in enumerate(known.names) if name == str(query)], int)


def _embed_query(
    query: str | Path,
    known: Embeddings,
    checkpoint: str | Path | Checkpoint | None,
    read: ReadOptions | None,
    device: str,
) -> Embeddings:
    from protgraph.structure.io.sources import is_source

    file = str(query).rpartition("#")[0] or str(query)
    if not is_source(query) and not Path(file).exists():
        raise SelectionError(
            f"no protein {str(query)!r} in the embeddings, and no file of this name.{suggest(str(query), known.names)}"
        )
    if checkpoint is None:
        if not known.checkpoint or not Path(known.checkpoint).is_file():
            recorded = f" {known.checkpoint!r} is not a file." if known.checkpoint else ""
            raise CheckpointError(f"no checkpoint to embed {str(query)!r}.{recorded} Give it with --model FILE.")
        checkpoint = known.checkpoint
    checkpoint = checkpoint if isinstance(checkpoint, Checkpoint) else load_checkpoint(checkpoint)
    if known.model_digest != digest_of_model(checkpoint.model):
        raise CheckpointError(_other_model(f"checkpoint of task {checkpoint.task!r}"))
    return embed(checkpoint, query, read=read, device=device)


def _check_model(asked: Embeddings, known: Embeddings, where: str) -> None:
    if asked.model_digest != known.model_digest:
        raise CheckpointError(f"{where}: {_other_model('query')}")


def _other_model(what: str) -> str:
    return f"the {what} and the embeddings are of different models. Embed both with the same checkpoint."


def _rows(asked: Embeddings, proteins: np.ndarray, level: str, residue: str | None) -> np.ndarray:
    """Return the rows of the vectors of the query, ``(Q,)`` int64."""
    if level == "protein":
        return proteins
    rows = np.concatenate([np.arange(asked.ptr[p], asked.ptr[p + 1]) for p in proteins] or [np.zeros(0, np.int64)])
    if residue is None:
        return rows
    chosen = rows[asked.residues[rows] == residue]
    if not len(chosen) and len(rows):
        hint = suggest(residue, asked.residues[rows].tolist())
        raise SelectionError(f"no residue {residue!r} in the query. Residues are written as 'A:42' or 'H:100B'.{hint}")
    return chosen


def _nearest(
    asked: Embeddings, queries: np.ndarray, known: Embeddings, level: str, k: int, excluded: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and similarities ``(Q, ≤ k)`` of the hits; −1 for none."""
    name = "protein" if level == "protein" else "node"
    more = k if excluded is None else k + 1  # the query itself is found too
    rows, similarity = nearest_by_cosine(getattr(asked, name)[queries], getattr(known, name), more)
    return _without(rows, similarity, excluded, k)


def _without(
    rows: np.ndarray, similarity: np.ndarray, excluded: np.ndarray | None, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k hits of each query that are not the query itself."""
    if excluded is None:
        return rows, similarity
    order = np.argsort(rows == excluded[:, None], axis=1, kind="stable")[:, :k]  # itself last
    rows, similarity = np.take_along_axis(rows, order, 1), np.take_along_axis(similarity, order, 1)
    return np.where(rows == excluded[:, None], -1, rows), similarity


def _table(
    asked: Embeddings, queries: np.ndarray, known: Embeddings, rows: np.ndarray, similarity: np.ndarray, level: str
) -> list[Row]:
    table: list[Row] = []
    for query, hits, values in zip(_labels(asked, queries, level), rows, similarity.tolist(), strict=True):
        valid = [(int(row), value) for row, value in zip(hits, values, strict=True) if row >= 0]
        table += [(query, rank, *_identity(known, row, level), value) for rank, (row, value) in enumerate(valid, 1)]
    return table


def _labels(asked: Embeddings, queries: np.ndarray, level: str) -> Sequence[str]:
    found = [_identity(asked, int(row), level) for row in queries]
    return [f"{own[1]} {own[2]}" if level == "protein" else f"{own[1]} {own[3]}" for own in found]


def _identity(table: Embeddings, row: int, level: str) -> Row:
    """Return file, name, chains and, of a residue, its id."""
    p = row if level == "protein" else int(np.searchsorted(table.ptr, row, side="right")) - 1
    protein = (table.files[p], table.names[p], table.chains[p])
    return protein if level == "protein" else (*protein, str(table.residues[row]))
