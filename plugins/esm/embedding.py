"""Embeddings of sequences that are computed once and kept: by checkpoint, layer and sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from protgraph_plugins.esm.alignment import check_window_options, chain_tokens, split_windows
from protgraph_plugins.esm.checkpoint import DEFAULT, checkpoint_digest, shared_esm
from protgraph_plugins.esm.states import hidden_states
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.structure.io import cache_dir

__all__ = ["Embedder", "embed_sequences"]

_ALPHABET = "ACDEFGHIKLMNPQRSTVWYX"


@dataclass(frozen=True)
class Embedder:
    """ESM's hidden states of chains, read from disk where they have been computed before.

    Parameters
    ----------
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.
    layer : int
        Which hidden state, as transformers counts them; -1 is the last.
    max_len : int
        Residues that are read at once.
    long : {"error", "chunk"}
        What becomes of longer chains; see :func:`protgraph_plugins.esm.alignment.split_windows`.
    folder : Path, optional
        Where embeddings are kept; None: ``esm`` in :func:`protgraph.structure.io.cache_dir`.

    Notes
    -----
    An embedding is kept under the digest of its checkpoint, its layer, and the SHA-256 of its tokens (and of
    ``max_len`` where the chain is longer), as float32. A damaged file is made again.
    """

    checkpoint: str = DEFAULT
    revision: str | None = None
    layer: int = -1
    max_len: int = 1022
    long: str = "error"
    folder: Path | None = None

    def __call__(self, sequences: Sequence[np.ndarray], *, what: str = "a chain") -> list[np.ndarray]:
        """``(T, D)`` float32 of each sequence of tokens ``(T,)``; equal ones are computed once.

        Raises
        ------
        FieldError
            One is too long; ``what`` says of what.
        CheckpointError
            The checkpoint cannot be had.
        """
        digest = checkpoint_digest(self.checkpoint, revision=self.revision)
        place = (cache_dir() / "esm" if self.folder is None else self.folder) / digest / f"layer{self.layer}"
        keys = [self._key(tokens) for tokens in sequences]
        known: dict[str, np.ndarray] = {}
        missing: dict[str, np.ndarray] = {}
        for key, tokens in zip(keys, sequences, strict=True):
            split_windows(len(tokens), max_len=self.max_len, long=self.long, what=what)
            if key not in known and key not in missing:
                kept = _read(place / key[:2] / f"{key}.safetensors")
                (missing if kept is None else known)[key] = tokens if kept is None else kept
        for key, made in zip(missing, self._compute(list(missing.values()), digest), strict=True):
            _write(place / key[:2] / f"{key}.safetensors", made)
            known[key] = made
        return [known[key] for key in keys]

    def _key(self, tokens: np.ndarray) -> str:
        whole = hashlib.sha256(tokens.astype(np.uint8).tobytes())
        if len(tokens) > self.max_len:
            whole.update(f" {self.max_len}".encode())
        return whole.hexdigest()

    def _compute(self, sequences: Sequence[np.ndarray], digest: str) -> list[np.ndarray]:
        if not sequences:
            return []
        model = shared_esm(self.checkpoint, self.revision, digest)
        cut = [split_windows(len(tokens), max_len=self.max_len, long=self.long) for tokens in sequences]
        read = [w.tokens(tokens) for tokens, parts in zip(sequences, cut, strict=True) for w in parts]
        with torch.no_grad():
            states = iter(hidden_states(model, read, layer=self.layer))
        made = []
        for parts in cut:
            kept = [next(states)[w.keep.start - w.start : w.keep.stop - w.start] for w in parts]
            made.append(np.ascontiguousarray(torch.cat(kept).float().cpu().numpy()))
        return made


def embed_sequences(
    sequences: Sequence[str],
    *,
    checkpoint: str = DEFAULT,
    revision: str | None = None,
    layer: int = -1,
    max_len: int = 1022,
    long: str = "error",
    folder: str | Path | None = None,
) -> list[np.ndarray]:
    """Embeddings of sequences in one-letter codes, batched by length; so a whole dataset's are computed at once.

    Parameters
    ----------
    sequences : sequence of str
        Letters other than the twenty become X.
    checkpoint, revision, layer, max_len, long, folder
        See :class:`Embedder`.

    Returns
    -------
    list of ndarray
        ``(T, D)`` float32 each, one row a letter.
    """
    check_window_options("join", long, max_len)
    empty = [number for number, sequence in enumerate(sequences) if not sequence]
    if empty:
        raise OptionError(f"sequence {empty[0]} is empty")
    types = [np.array([max(_ALPHABET.find(letter), -1) % 21 for letter in sequence]) for sequence in sequences]
    tokens = [chain_tokens(np.arange(len(t)), t, gaps="join") for t in types]
    embedder = Embedder(checkpoint, revision, layer, max_len, long, None if folder is None else Path(folder))
    return embedder(tokens, what="a sequence")


def _read(path: Path) -> np.ndarray | None:
    try:
        return load_file(path)["states"]
    except (OSError, SafetensorError, KeyError):
        return None


def _write(path: Path, states: np.ndarray) -> None:
    with atomic_write(path) as temporary:
        save_file({"states": np.ascontiguousarray(states)}, temporary)
