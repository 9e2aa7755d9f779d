"""Load ESM checkpoints through Hugging Face transformers: by name, from a folder, or with random weights."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from protgraph_plugins.esm.vocabulary import MASK, PAD, TOKENS

from protgraph.errors import CheckpointError, MissingExtraError, OptionError
from protgraph.structure.io import is_offline

__all__ = [
    "DEFAULT",
    "TINY_WIDTH",
    "WIDTHS",
    "checkpoint_digest",
    "checkpoint_errors",
    "checkpoint_folder",
    "import_transformers",
    "load_esm",
    "load_masked_lm",
    "quiet_transformers",
    "random_seed",
]

DEFAULT = "facebook/esm2_t6_8M_UR50D"
"""The smallest published ESM-2: 8 million parameters."""

WIDTHS = {
    "facebook/esm2_t6_8M_UR50D": 320,
    "facebook/esm2_t12_35M_UR50D": 480,
    "facebook/esm2_t30_150M_UR50D": 640,
    "facebook/esm2_t33_650M_UR50D": 1280,
    "facebook/esm2_t36_3B_UR50D": 2560,
    "facebook/esm2_t48_15B_UR50D": 5120,
}
"""Widths of the published checkpoints (Lin et al. 2023, doi:10.1126/science.ade2574, table S1), so that
models can be described without a download."""

_RANDOM = re.compile(r"random:tiny(?::(\d+))?")
_TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
TINY_WIDTH = _TINY["hidden_size"]
"""Channels of ``"random:tiny"``."""
_WEIGHTS = ("*.safetensors", "*.bin")
#: Weights that embeddings do not use.
_UNUSED = re.compile(r"contact_head\.|pooler\.|position_ids$|inv_freq$")


def load_esm(checkpoint: str = DEFAULT, *, revision: str | None = None) -> Any:
    """Load an ESM model in evaluation mode, float32, on the CPU.

    Parameters
    ----------
    checkpoint : str
        Name on the Hugging Face hub, or a local folder written by ``save_pretrained``. ``"random:tiny"``, or with a
        seed ``"random:tiny:7"``, is a small network with random weights, for tests and controls.
    revision : str, optional
        Branch, tag or commit of a name on the hub.

    Returns
    -------
    transformers.EsmModel
        Without pooling; ``contact_head`` is None if the checkpoint has no weights for it.

    Raises
    ------
    MissingExtraError
        transformers is not installed.
    CheckpointError
        The checkpoint is missing, or is not an ESM model with the 33 tokens of
        :mod:`protgraph_plugins.esm.vocabulary`.

    Notes
    -----
    transformers caches downloads; with ``HF_HUB_OFFLINE=1`` only the cache is used.
    """
    transformers = import_transformers()
    seed = random_seed(checkpoint)
    if seed is not None:
        return _tiny(transformers, seed)
    _check_folder(checkpoint, transformers, revision)
    with checkpoint_errors(checkpoint), quiet_transformers(transformers, bars=not Path(checkpoint).is_dir()):
        model, info = transformers.EsmModel.from_pretrained(
            checkpoint,
            revision=revision or "main",
            add_pooling_layer=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported below
        )
    misfits = (key if isinstance(key, str) else key[0] for key in info["mismatched_keys"])
    absent = [*sorted(info["missing_keys"]), *misfits]
    if any("contact_head." in name for name in absent):
        model.contact_head = None
    wrong = [name for name in absent if not _UNUSED.search(name)]
    if wrong:
        raise CheckpointError(f"incomplete ESM checkpoint: {checkpoint!r}. It lacks {wrong[0]!r} of its config.json.")
    return model.float().eval()


def load_masked_lm(checkpoint: str = DEFAULT, *, revision: str | None = None) -> Any:
    """Load an ESM model with its language model head, in evaluation mode, float32, on the CPU.

    Parameters
    ----------
    checkpoint, revision
        See :func:`load_esm`.

    Returns
    -------
    transformers.EsmForMaskedLM
        ``esm`` is the model of :func:`load_esm`, and ``lm_head`` maps its states to logits of the 33 tokens.

    Raises
    ------
    MissingExtraError, CheckpointError
        See :func:`load_esm`; also if the checkpoint has no language model head.
    """
    transformers = import_transformers()
    seed = random_seed(checkpoint)
    if seed is not None:
        return _tiny(transformers, seed, masked_lm=True)
    _check_folder(checkpoint, transformers, revision)
    with checkpoint_errors(checkpoint), quiet_transformers(transformers, bars=not Path(checkpoint).is_dir()):
        model, info = transformers.EsmForMaskedLM.from_pretrained(
            checkpoint, revision=revision or "main", output_loading_info=True, ignore_mismatched_sizes=True
        )
    misfits = (key if isinstance(key, str) else key[0] for key in info["mismatched_keys"])
    wrong = [name for name in (*sorted(info["missing_keys"]), *misfits) if not _UNUSED.search(name)]
    if wrong:
        raise CheckpointError(
            f"incomplete ESM checkpoint: {checkpoint!r}. It lacks {wrong[0]!r}, which scores of mutations require. Use "
            "one of facebook/esm2_…, or a folder written by EsmForMaskedLM.save_pretrained."
        )
    return model.float().eval()


def checkpoint_digest(checkpoint: str, *, revision: str | None = None) -> str:
    """Return the fingerprint of a checkpoint: the commit of a name on the hub, or a checksum of a folder's weights."""
    if random_seed(checkpoint) is not None:
        return f"{checkpoint.replace(':', '_')}-torch{torch.__version__}"
    folder = checkpoint_folder(checkpoint, revision=revision)
    if folder.parent.name == "snapshots":  # layout of a commit in the cache of the hub
        return folder.name
    files = [folder / "config.json", *sorted(p for pattern in _WEIGHTS for p in folder.glob(pattern))]
    return _digest_of(tuple((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files))


@lru_cache(maxsize=8)
def _digest_of(files: tuple[tuple[str, int, int], ...]) -> str:
    checksum = hashlib.sha256()
    for name, _, _ in files:
        with open(name, "rb") as file:
            checksum.update(hashlib.file_digest(file, "sha256").digest())
    return checksum.hexdigest()[:24]


def random_seed(checkpoint: str) -> int | None:
    """Return the seed of a random network, or None."""
    match = _RANDOM.fullmatch(checkpoint)
    if match is None and checkpoint.startswith("random:"):
        raise OptionError(f"invalid checkpoint: {checkpoint!r}. Use 'random:tiny', or with a seed 'random:tiny:7'.")
    return None if match is None else int(match[1] or 0)


def _tiny(transformers: Any, seed: int, *, masked_lm: bool = False) -> Any:
    """Return a small ESM-2 with random float32 weights that do not depend on torch's default dtype."""
    config = transformers.EsmConfig(
        **_TINY,
        vocab_size=len(TOKENS),
        mask_token_id=MASK,
        pad_token_id=PAD,
        position_embedding_type="rotary",
        token_dropout=True,
        emb_layer_norm_before=False,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            model = (
                transformers.EsmForMaskedLM(config)
                if masked_lm
                else transformers.EsmModel(config, add_pooling_layer=False)
            )
            return model.eval()
        finally:
            torch.set_default_dtype(before)


def import_transformers() -> Any:
    """Return the package transformers; raise :class:`MissingExtraError` if it is not installed."""
    try:
        import transformers
    except ImportError as e:
        raise MissingExtraError(
            "ESM requires Hugging Face transformers. Install it: pip install 'protgraph-pyg[esm]'"
        ) from e
    return transformers


def checkpoint_folder(checkpoint: str, *, revision: str | None = None) -> Path:
    """Return the folder of a checkpoint's configuration, downloaded if necessary."""
    transformers = import_transformers()
    if Path(checkpoint).is_dir():
        if not (Path(checkpoint) / "config.json").is_file():
            raise CheckpointError(f"no config.json in folder {checkpoint!r}. Use a folder written by save_pretrained.")
        return Path(checkpoint)
    folder = _hub_folder(checkpoint, transformers, revision or "main")
    if isinstance(folder, CheckpointError):
        raise folder
    return folder


@lru_cache(maxsize=32)
def _hub_folder(checkpoint: str, transformers: Any, revision: str) -> Path | CheckpointError:
    """Query the hub once per process, also if it fails, since every protein of a dataset calls this."""
    options = {"revision": revision, "local_files_only": is_offline()}
    try:
        with checkpoint_errors(checkpoint):
            return Path(transformers.utils.cached_file(checkpoint, "config.json", **options)).parent
    except CheckpointError as e:
        return e


def _check_folder(checkpoint: str, transformers: Any, revision: str | None) -> Any:
    """Return the configuration of a checkpoint, checked to be ESM with the 33 tokens."""
    folder = checkpoint_folder(checkpoint, revision=revision)
    with checkpoint_errors(checkpoint):
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
        config = transformers.EsmConfig.from_pretrained(folder)
    if kind != "esm" or getattr(config, "is_folding_model", False):
        raise CheckpointError(f"not an ESM checkpoint: {checkpoint!r} is a {kind!r} model. Use one of facebook/esm2_….")
    vocabulary = folder / "vocab.txt"
    tokens = tuple(vocabulary.read_text(encoding="utf-8").split()) if vocabulary.is_file() else TOKENS
    if config.vocab_size != len(TOKENS) or config.mask_token_id != MASK or tokens != TOKENS:
        raise CheckpointError(
            f"wrong vocabulary: {checkpoint!r} has {config.vocab_size} tokens. Required: the {len(TOKENS)} of ESM-2."
        )
    return config


@contextmanager
def checkpoint_errors(checkpoint: str) -> Iterator[None]:
    """Convert errors of transformers and the hub to a CheckpointError."""
    try:
        yield
    except (OSError, ValueError) as e:
        reason = str(e).strip().partition("\n")[0][:200]
        raise CheckpointError(
            f"ESM checkpoint not available: {checkpoint!r} ({reason}).\n"
            "Without a network, use a local folder, or fill the cache of the hub first: hf download "
            f"{checkpoint if checkpoint in WIDTHS else DEFAULT}"
        ) from e


@contextmanager
def quiet_transformers(transformers: Any, *, bars: bool) -> Iterator[None]:
    """Silence the loading report, since the language model head is not used; keep progress bars for downloads."""
    logging = transformers.utils.logging
    before, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if had_bar:
            logging.enable_progress_bar()
