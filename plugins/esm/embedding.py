"""Compute embeddings of sequences, cached on disk by checkpoint, layer and sequence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from protgraph_plugins.esm.alignment import chain_tokens, check_window_options, split_windows
from protgraph_plugins.esm.checkpoint import DEFAULT, checkpoint_digest
from protgraph_plugins.esm.language_model import load_token_table, shared_language_model
from protgraph_plugins.esm.states import hidden_states
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.structure.io import cache_dir
from protgraph.structure.residues import ALPHABET, UNKNOWN

__all__ = ["Embedder", "embed_sequences"]


@dataclass(frozen=True)
class Embedder:
    """ESM hidden states of chains, with a cache on disk.

    Parameters
    ----------
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.
    layer : int
        Index of the hidden state in transformers; -1 is the last.
    max_len : int
        Maximal number of residues of one input.
    long : {"error", "chunk"}
        Treatment of longer chains; see :func:`protgraph_plugins.esm.alignment.split_windows`.
    folder : Path, optional
        Folder of the cache; by default ``esm`` in :func:`protgraph.structure.io.cache_dir`.

    Notes
    -----
    Cache key: fingerprint of the checkpoint, layer, and SHA-256 of the tokens (and of ``max_len`` for longer chains).
    Values are float32. A damaged file is recomputed.
    """

    checkpoint: str = DEFAULT
    revision: str | None = None
    layer: int = -1
    max_len: int = 1022
    long: str = "error"
    folder: Path | None = None

    def __call__(self, sequences: Sequence[np.ndarray], *, subject: str = "a chain") -> list[np.ndarray]:
        """Return ``(T, D)`` float32 for each sequence of tokens ``(T,)``; equal sequences are computed once.

        Raises
        ------
        FieldError
            A sequence is too long; ``subject`` names it in the message.
        CheckpointError
            The checkpoint is not available.
        """
        digest = checkpoint_digest(self.checkpoint, revision=self.revision)
        folder = (cache_dir() / "esm" if self.folder is None else self.folder) / digest / f"layer{self.layer}"
        keys = [self._key(tokens) for tokens in sequences]
        cached: dict[str, np.ndarray] = {}
        missing: dict[str, np.ndarray] = {}
        for key, tokens in zip(keys, sequences, strict=True):
            split_windows(len(tokens), max_len=self.max_len, long=self.long, subject=subject)
            if key not in cached and key not in missing:
                states = _read(folder / key[:2] / f"{key}.safetensors")
                (missing if states is None else cached)[key] = tokens if states is None else states
        for key, states in zip(missing, self._compute(list(missing.values()), digest), strict=True):
            _write(folder / key[:2] / f"{key}.safetensors", states)
            cached[key] = states
        return [cached[key] for key in keys]

    def _key(self, tokens: np.ndarray) -> str:
        is_small = not len(tokens) or int(tokens.max()) < 256  # without 3Di letters
        checksum = hashlib.sha256(tokens.astype(np.uint8 if is_small else np.uint16).tobytes())
        if len(tokens) > self.max_len:
            checksum.update(f" {self.max_len}".encode())
        return checksum.hexdigest()

    def _compute(self, sequences: Sequence[np.ndarray], digest: str) -> list[np.ndarray]:
        if not sequences:
            return []
        model = shared_language_model(self.checkpoint, self.revision, digest)
        table = load_token_table(self.checkpoint, revision=self.revision)
        windows = [split_windows(len(tokens), max_len=self.max_len, long=self.long) for tokens in sequences]
        inputs = [w.tokens(tokens) for tokens, of_sequence in zip(sequences, windows, strict=True) for w in of_sequence]
        with torch.no_grad():
            states = iter(hidden_states(model, inputs, layer=self.layer, table=table))
        embeddings = []
        for of_sequence in windows:
            kept = [next(states)[w.keep.start - w.start : w.keep.stop - w.start] for w in of_sequence]
            embeddings.append(np.ascontiguousarray(torch.cat(kept).float().cpu().numpy()))
        return embeddings


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
    """Compute embeddings of sequences in one-letter codes, batched by length.

    Parameters
    ----------
    sequences : sequence of str
        Letters other than the twenty become X.
    checkpoint, revision, layer, max_len, long, folder
        See :class:`Embedder`.

    Returns
    -------
    list of ndarray
        ``(T, D)`` float32 each, one row per letter.
    """
    check_window_options("join", long, max_len)
    empty = [number for number, sequence in enumerate(sequences) if not sequence]
    if empty:
        raise OptionError(f"empty sequence at index {empty[0]}.")
    type_of_letter = {letter: number for number, letter in enumerate(ALPHABET)}
    tokens = []
    for sequence in sequences:
        types = np.array([type_of_letter.get(letter, UNKNOWN) for letter in sequence])
        tokens.append(chain_tokens(np.arange(len(types)), types, gaps="join"))
    embedder = Embedder(checkpoint, revision, layer, max_len, long, None if folder is None else Path(folder))
    return embedder(tokens, subject="a sequence")


def _read(path: Path) -> np.ndarray | None:
    try:
        return load_file(path)["states"]
    except (OSError, SafetensorError, KeyError):
        return None


def _write(path: Path, states: np.ndarray) -> None:
    with atomic_write(path) as temporary:
        save_file({"states": np.ascontiguousarray(states)}, temporary)
