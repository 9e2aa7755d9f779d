"""Protein language models of Hugging Face transformers by one interface: ESM-2, SaProt, ESM-C, ProtT5 and Ankh.

All sequences are tokens of ESM-2 (:mod:`protgraph_plugins.esm.vocabulary`). A :class:`TokenTable` translates them to
those of a network.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from protgraph_plugins.esm.checkpoint import (
    TINY_WIDTH,
    WIDTHS,
    checkpoint_errors,
    checkpoint_folder,
    import_transformers,
    load_esm,
    quiet_transformers,
    random_seed,
)
from protgraph_plugins.esm.vocabulary import END, LETTERS_3DI, PAD, START, TOKENS

from protgraph.errors import CheckpointError, MissingExtraError

__all__ = [
    "ESM_TABLE",
    "TokenTable",
    "checkpoint_width",
    "language_model_kind",
    "load_language_model",
    "load_token_table",
    "shared_language_model",
]

#: A token of SaProt is a residue type and a 3Di letter; ``#`` is an unknown one.
_UNKNOWN = "#"


class TokenTable(NamedTuple):
    """Translation of tokens of ESM-2 to those of a network.

    Parameters
    ----------
    ids : ndarray
        ``(33,)`` int64, or ``(21 · 33,)`` with 3Di letters: the token t with letter k is number ``33 k + t``; k = 0 is
        an unknown letter.
    has_start : bool
        Sequences begin with a special token.
    """

    ids: np.ndarray
    has_start: bool = True

    @property
    def reads_structure(self) -> bool:
        """True if tokens have 3Di letters."""
        return len(self.ids) > len(TOKENS)

    @property
    def pad(self) -> int:
        """Token of padding."""
        return int(self.ids[PAD])

    def translate(self, tokens: np.ndarray) -> np.ndarray:
        """Return the tokens of the network for tokens ``(T + 2,)`` with start and end, ``(T + 1,)`` without a start."""
        return self.ids[tokens if self.has_start else tokens[1:]]


ESM_TABLE = TokenTable(np.arange(len(TOKENS)))


def language_model_kind(checkpoint: str, *, revision: str | None = None) -> str:
    """Return "esm", "saprot", "esmc" or "t5" (ProtT5, Ankh), from the configuration of a checkpoint.

    Raises
    ------
    CheckpointError
        The checkpoint is another network.
    """
    if random_seed(checkpoint) is not None:
        return "esm"
    folder = checkpoint_folder(checkpoint, revision=revision)
    with checkpoint_errors(checkpoint):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = str(config.get("model_type"))
    if kind not in ("esm", "esmc", "t5"):
        raise CheckpointError(
            f"not a protein language model: {checkpoint!r} is a {kind!r} model. Use ESM-2, ESM-C, SaProt, ProtT5 or "
            "Ankh."
        )
    is_pairs = kind == "esm" and config.get("vocab_size") == len(_saprot_tokens())
    return "saprot" if is_pairs else kind


def load_language_model(checkpoint: str, *, revision: str | None = None) -> Any:
    """Load the network of a checkpoint in evaluation mode, float32, on the CPU; of T5, the encoder.

    Parameters
    ----------
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.

    Raises
    ------
    MissingExtraError
        transformers is not installed, or too old for ESM-C.
    CheckpointError
        The checkpoint is missing, incomplete, or another network.
    """
    kind = language_model_kind(checkpoint, revision=revision)
    if kind == "esm":
        return load_esm(checkpoint, revision=revision)
    transformers = import_transformers()
    name = {"saprot": "EsmModel", "esmc": "EsmcModel", "t5": "T5EncoderModel"}[kind]
    if not hasattr(transformers, name):
        raise MissingExtraError(f"{checkpoint!r} requires transformers ≥ 5.24. Install it: pip install -U transformers")
    options = {"add_pooling_layer": False} if kind == "saprot" else {}
    is_folder = Path(checkpoint).is_dir()
    with checkpoint_errors(checkpoint), quiet_transformers(transformers, bars=not is_folder):
        model, report = getattr(transformers, name).from_pretrained(
            checkpoint, revision=revision or "main", output_loading_info=True, **options
        )
    absent = [key for key in sorted(report["missing_keys"]) if "contact_head." not in key and "position_ids" not in key]
    if absent:
        raise CheckpointError(f"incomplete checkpoint: {checkpoint!r}. It lacks {absent[0]!r} of its config.json.")
    return model.float().eval()


@lru_cache(maxsize=8)
def load_token_table(checkpoint: str, *, revision: str | None = None) -> TokenTable:
    """Return the token table of a checkpoint, from its own tokenizer.

    Raises
    ------
    CheckpointError
        The tokenizer is missing, or lacks an amino acid.
    """
    kind = language_model_kind(checkpoint, revision=revision)
    if kind == "esm":
        return ESM_TABLE
    if kind == "esmc":
        return _table(import_transformers().EsmcTokenizer().get_vocab(), checkpoint)
    if kind == "saprot":
        return _saprot_table()
    return _t5_table(checkpoint, revision)


def _table(numbers: dict[str, int], checkpoint: str) -> TokenTable:
    """Return the table of a vocabulary with the names of ESM-2's tokens; other tokens are X."""
    _check_letters(numbers, checkpoint)
    return TokenTable(np.array([numbers.get(token, numbers["X"]) for token in TOKENS]))


def _t5_table(checkpoint: str, revision: str | None) -> TokenTable:
    """Return the table of a T5 vocabulary, whose letters may have a mark of a space; a masked residue is X."""
    transformers = import_transformers()
    try:
        with checkpoint_errors(checkpoint):
            tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint, revision=revision or "main")
    except ImportError as e:  # of the reader of spiece.model
        raise MissingExtraError(
            f"the tokenizer of {checkpoint!r} requires another package ({str(e).strip().splitlines()[0]}). Install it: "
            "pip install sentencepiece protobuf"
        ) from e
    vocabulary = tokenizer.get_vocab()
    numbers = {token.removeprefix("▁"): number for token, number in vocabulary.items()}
    _check_letters(numbers, checkpoint)
    ids = np.array([numbers.get(token, numbers["X"]) for token in TOKENS])
    ids[PAD], ids[END] = tokenizer.pad_token_id, tokenizer.eos_token_id
    return TokenTable(ids, has_start=False)


def _check_letters(numbers: dict[str, int], checkpoint: str) -> None:
    for letter in "ACDEFGHIKLMNPQRSTVWYX":
        if letter not in numbers:
            raise CheckpointError(
                f"wrong vocabulary: {checkpoint!r} has no token {letter!r}. Use a protein language model."
            )


def _saprot_tokens() -> list[str]:
    """Return the vocabulary of SaProt: five special tokens, then each residue type with each 3Di letter.

    Order of ``saprot/utils/foldseek_util.py`` and ``vocab.txt`` of westlake-repl/SaProt (Su et al. 2024).
    """
    pairs = [residue + letter for residue in "ACDEFGHIKLMNPQRSTVWY#" for letter in "pynwrqhgdlvtmfsaeikc#"]
    return ["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *pairs]


def _saprot_table() -> TokenTable:
    """Return the table of SaProt, with a block of 33 tokens for each 3Di letter; an unknown residue is ``#``."""
    numbers = {token: number for number, token in enumerate(_saprot_tokens())}
    special = {START: "<cls>", PAD: "<pad>", END: "<eos>"}
    ids = []
    for letter in f"{_UNKNOWN}{LETTERS_3DI}":
        for number, token in enumerate(TOKENS):
            pair = token + letter if token + letter in numbers else _UNKNOWN + letter
            ids.append(numbers[special.get(number, pair)])
    return TokenTable(np.array(ids))


@lru_cache(maxsize=2)
def shared_language_model(checkpoint: str, revision: str | None, digest: str) -> Any:
    """Return the network that the featurizers of a process share; the digest distinguishes changed files."""
    return load_language_model(checkpoint, revision=revision).requires_grad_(False)


def checkpoint_width(checkpoint: str, *, revision: str | None = None) -> int:
    """Return the number of channels of a checkpoint; published names of ESM-2 need no download."""
    if checkpoint in WIDTHS:
        return WIDTHS[checkpoint]
    if random_seed(checkpoint) is not None:
        return TINY_WIDTH
    language_model_kind(checkpoint, revision=revision)
    folder = checkpoint_folder(checkpoint, revision=revision)
    with checkpoint_errors(checkpoint):
        return int(import_transformers().AutoConfig.from_pretrained(folder).hidden_size)
