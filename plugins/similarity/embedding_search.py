"""Search of proteins or residues by the cosine similarity of their embeddings: exact, in blocks.

Not scikit-learn: its ``NearestNeighbors`` with the cosine metric does not break ties by position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protgraph.checkpoint import Checkpoint
from protgraph.errors import CheckpointError, OptionError, SelectionError, suggest
from protgraph.featurize import Failure
from protgraph.inference import Embeddings, ResultTable, embed, embedding_checkpoint
from protgraph.registry import models, trained_models
from protgraph.structure import ReadOptions
from protgraph.structure.io import is_source

__all__ = ["SearchHits", "nearest_by_cosine", "search_embeddings"]

LEVELS = ("protein", "residue")
_QUERIES, _VECTORS = 256, 16_384  # a block of similarities has 32 MB
_DECIMALS = 9  # equal vectors have equal similarities, whatever their place in a block


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
        Model that embeds ``query``; default: the one whose name or path is recorded in ``embeddings``.
    k : int
        Hits per query.
    level : {"protein", "residue"}
        Compare vectors of proteins or of residues; of residues, each residue of the query is a query of its own.
    residue : str, optional
        Only this residue of the query, e.g. "A:42".
    read, device
        See :func:`protgraph.inference.predict`.

    Raises
    ------
    OptionError
        An option is not valid.
    SelectionError
        The query is neither a protein of the embeddings nor a file, or lacks the residue.
    CheckpointError
        The embeddings are of another model.
    """
    _check_search(k, level, residue)
    known = embeddings if isinstance(embeddings, Embeddings) else Embeddings.read(embeddings)
    where = "embeddings" if isinstance(embeddings, Embeddings) else str(embeddings)

    # The query is a protein of the embeddings, which is not a hit of itself.
    if not isinstance(query, Embeddings):
        proteins = [number for number, name in enumerate(known.names) if name == str(query)]
        if proteins:
            queries = _rows(known, np.array(proteins, np.int64), level, residue)
            vectors = _vectors(known, level)
            hits, similarity = nearest_by_cosine(vectors[queries], vectors, k + 1)
            hits, similarity = _without_itself(hits, similarity, queries, k)
            return _ranked(known, known, level, queries, hits, similarity)

    # It has embeddings of its own.
    asked = query if isinstance(query, Embeddings) else _embed_query(query, known, checkpoint, read, device)
    if asked.model_digest != known.model_digest:
        raise CheckpointError(f"{where}: {_other_model('query')}")
    queries = _rows(asked, np.arange(len(asked.files)), level, residue)
    hits, similarity = nearest_by_cosine(_vectors(asked, level)[queries], _vectors(known, level), k)
    ranked = _ranked(asked, known, level, queries, hits, similarity)
    return replace(ranked, failures=asked.failures, notes=asked.notes)


def _check_search(k: int, level: str, residue: str | None) -> None:
    if level not in LEVELS:
        raise OptionError(f"level {level!r}. Allowed: {', '.join(LEVELS)}.{suggest(level, LEVELS)}")
    if k < 1:
        raise OptionError(f"k {k}: the number of hits is 1 or more.")
    if residue is not None and level != "residue":
        raise OptionError(f"residue {residue!r} is for searches of residues. Add level='residue' (--level residue).")


def _vectors(embeddings: Embeddings, level: str) -> np.ndarray:
    return embeddings.protein if level == "protein" else embeddings.node


def _ranked(
    asked: Embeddings, known: Embeddings, level: str, queries: np.ndarray, hits: np.ndarray, similarity: np.ndarray
) -> SearchHits:
    """Return a row per hit; ``hits (Q, k)`` are rows of ``known``, or −1 after the last one."""
    table: list[tuple] = []
    for query_row, rows, values in zip(queries.tolist(), hits.tolist(), similarity.tolist(), strict=True):
        _, name, chains, *residues = _identity(asked, query_row, level)
        label = f"{name} {residues[0] if residues else chains}"
        valid = [(row, value) for row, value in zip(rows, values, strict=True) if row >= 0]
        for rank, (row, value) in enumerate(valid, 1):
            table.append((label, rank, *_identity(known, row, level), value))
    residue_column = ("residue",) if level == "residue" else ()
    return SearchHits(("query", "rank", "file", "protein", "chains", *residue_column, "cosine"), table, [])


def _embed_query(
    query: str | Path,
    known: Embeddings,
    checkpoint: str | Path | Checkpoint | None,
    read: ReadOptions | None,
    device: str,
) -> Embeddings:
    file = str(query).rpartition("#")[0] or str(query)
    if not is_source(query) and not Path(file).exists():
        raise SelectionError(
            f"no protein {str(query)!r} in the embeddings, and no file of this name.{suggest(str(query), known.names)}"
        )
    if checkpoint is None:
        is_name = known.checkpoint.partition("[")[0] in trained_models or known.checkpoint in models
        if not known.checkpoint or not (is_name or Path(known.checkpoint).is_file()):
            recorded = f" {known.checkpoint!r} is not a file." if known.checkpoint else ""
            raise CheckpointError(f"no checkpoint to embed {str(query)!r}.{recorded} Give it with --model FILE.")
        checkpoint = known.checkpoint
    checkpoint = embedding_checkpoint(checkpoint)
    if not known.is_of(checkpoint):
        raise CheckpointError(_other_model(f"checkpoint of task {checkpoint.task!r}"))
    return embed(checkpoint, query, read=read, device=device)


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


def _without_itself(
    rows: np.ndarray, similarity: np.ndarray, queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k hits ``(Q, ≤ k)`` of each query that are not the query itself, which is -1 if it is left."""
    order = np.argsort(rows == queries[:, None], axis=1, kind="stable")[:, :k]  # itself last
    rows = np.take_along_axis(rows, order, 1)
    similarity = np.take_along_axis(similarity, order, 1)
    return np.where(rows == queries[:, None], -1, rows), similarity


def _identity(table: Embeddings, row: int, level: str) -> tuple:
    """Return file, name, chains and, of a residue, its id."""
    if level == "protein":
        return table.files[row], table.names[row], table.chains[row]
    protein = int(np.searchsorted(table.ptr, row, side="right")) - 1
    return *_identity(table, protein, "protein"), str(table.residues[row])


def nearest_by_cosine(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest vectors of each query by cosine similarity, the first ones of equal similarity.

    Besides the vectors, the search needs memory for a block of 16,384 vectors in float64 and its similarities to 256
    queries (32 MB).

    Parameters
    ----------
    queries : ndarray
        ``(Q, D)``.
    vectors : ndarray
        ``(N, D)``.
    k : int
        At most N are returned.

    Returns
    -------
    tuple of ndarray
        ``(Q, k)`` int64 rows of ``vectors``, and ``(Q, k)`` float64 similarities, descending.

    Examples
    --------
    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> rows, similarity = nearest_by_cosine(np.array([[1.0, 0.0]]), vectors, 2)
    >>> rows.tolist(), similarity.tolist()
    ([[0, 2]], [[1.0, 1.0]])
    """
    k = min(k, len(vectors))
    rows = np.empty((len(queries), k), np.int64)
    similarity = np.empty((len(queries), k))
    for start in range(0, len(queries), _QUERIES):
        block = slice(start, start + _QUERIES)
        rows[block], similarity[block] = _nearest_of_block(_unit_vectors(queries[block]), vectors, k)
    return rows, similarity


def _unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return vectors ``(N, D)`` of length one in float64, of the same shape; a zero vector stays zero."""
    vectors = vectors.astype(np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def _nearest_of_block(queries: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    best_rows = np.empty((len(queries), 0), np.int64)
    best = np.empty((len(queries), 0))
    for start in range(0, len(vectors), _VECTORS):
        block = _unit_vectors(vectors[start : start + _VECTORS])
        cosines = (queries @ block.T).round(_DECIMALS)
        block_rows = np.broadcast_to(np.arange(start, start + len(block)), cosines.shape)

        # The best ones so far, and those of this block.
        similarity = np.concatenate([best, cosines], 1)
        rows = np.concatenate([best_rows, block_rows], 1)
        columns = np.stack([_first_largest(values, k) for values in similarity])
        best_rows = np.take_along_axis(rows, columns, 1)
        best = np.take_along_axis(similarity, columns, 1)
    return best_rows, best


def _first_largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the places of the k largest values, descending, the first ones of equal values."""
    if len(values) > k:
        least = np.partition(values, len(values) - k)[len(values) - k]
        places = np.flatnonzero(values >= least)
    else:
        places = np.arange(len(values))
    return places[np.argsort(-values[places], kind="stable")][:k]
