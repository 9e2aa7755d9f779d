"""Find proteins that occur in more than one split of prepared graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from protgraph.data.graph.node_level import CA
from protgraph.data.store.graph_store import GraphStore
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.wording import count_noun

__all__ = ["describe_split_overlap"]

_EXAMPLES = 2


def describe_split_overlap(dataset: str, splits: Mapping[str, GraphStore]) -> tuple[str, ...]:
    """Return a message if a protein is in more than one split, with two examples; else nothing.

    Proteins are the same if their residue types are. If a task hides all types, they are the same if the coordinates
    of their CA atoms are.
    """
    first: dict[bytes, tuple[str, str]] = {}
    shared: dict[bytes, str] = {}
    for split, store in splits.items():
        for i, name in enumerate(store.names):
            key = _identity(store, i)
            if key is None:
                continue
            other, where = first.setdefault(key, (name, split))
            if where != split:
                shared.setdefault(key, f"{other!r} ({where}) = {name!r} ({split})")
    if not shared:
        return ()
    examples = ", ".join(list(shared.values())[:_EXAMPLES])
    number = f"{count_noun(len(shared), 'sequence')} of dataset {dataset!r} {'is' if len(shared) == 1 else 'are'}"
    return (
        f"{number} in more than one split: {examples}. Scores on these splits are not those of unseen "
        "proteins. Assign each sequence to one split.",
    )


def _identity(store: GraphStore, i: int) -> bytes | None:
    """Return a digest of the residue types of a protein, or of the positions of its residues; None without both."""
    types, atoms = store.values("aatype", i), store.values("atom_type", i)
    residues = slice(None) if atoms is None else atoms == CA
    if types is not None and (types[residues] != UNKNOWN).any():
        return _digest(types[residues])
    pos = store.values("pos", i)
    if pos is None or not np.isfinite(pos[residues]).all():
        return None
    return _digest(pos[residues])


def _digest(values: np.ndarray) -> bytes:
    """Return 16 bytes, so that the comparison of many proteins does not keep their residues."""
    return hashlib.blake2b(np.ascontiguousarray(values), digest_size=16).digest()
