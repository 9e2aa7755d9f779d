"""ESM checkpoints through Hugging Face transformers: by name, from a folder, or random."""

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

from protgraph.data.graph.esm_vocabulary import MASK, PAD, TOKENS
from protgraph.errors import CheckpointError, MissingExtraError, OptionError

__all__ = ["DEFAULT", "WIDTHS", "checkpoint_digest", "checkpoint_width", "load_esm", "shared_esm"]

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
"""Widths of the published checkpoints (Lin et al. 2023, doi:10.1126/science.ade2574, table S1), so that a model of
theirs can be described without a download."""

_RANDOM = re.compile(r"random:tiny(?::(\d+))?")
_TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_WEIGHTS = ("*.safetensors", "*.bin")
#: Weights that an embedding does without.
_UNUSED = re.compile(r"contact_head\.|pooler\.|position_ids$|inv_freq$")


def load_esm(checkpoint: str = DEFAULT, *, revision: str | None = None) -> Any:
    """An ESM model in evaluation mode, float32, on the CPU.

    Parameters
    ----------
    checkpoint : str
        Name on the Hugging Face hub, or a local folder as ``save_pretrained`` writes it; ``"random:tiny"``, or with a
        seed ``"random:tiny:7"``, is a small network with random weights, which knows nothing: for tests, and to tell
        what a trained one knows.
    revision : str, optional
        Branch, tag or commit of a name on the hub.

    Returns
    -------
    transformers.EsmModel
        Without pooling; ``contact_head`` is None where the checkpoint has no weights for it.

    Raises
    ------
    MissingExtraError
        transformers is not installed.
    CheckpointError
        It is not there, or it is no ESM model with the 33 tokens of :mod:`protgraph.data.graph.esm_vocabulary`.

    Notes
    -----
    transformers keeps what it downloads; with ``HF_HUB_OFFLINE=1`` nothing but that is used.
    """
    transformers = _transformers()
    seed = _seed(checkpoint)
    if seed is not None:
        return _tiny(transformers, seed)
    _check_folder(checkpoint, transformers, revision)
    with _saying(checkpoint), _quiet(transformers, bars=not Path(checkpoint).is_dir()):
        model, told = transformers.EsmModel.from_pretrained(
            checkpoint,
            revision=revision or "main",
            add_pooling_layer=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # said below
        )
    misfits = (key if isinstance(key, str) else key[0] for key in told["mismatched_keys"])
    absent = [*sorted(told["missing_keys"]), *misfits]
    if any("contact_head." in name for name in absent):
        model.contact_head = None
    wrong = [name for name in absent if not _UNUSED.search(name)]
    if wrong:
        raise CheckpointError(f"{checkpoint!r} is no complete ESM model of its config.json: {wrong[0]!r} is not there")
    return model.float().eval()


@lru_cache(maxsize=2)
def shared_esm(checkpoint: str, revision: str | None, digest: str) -> Any:
    """One instance that featurizers of a process share and never change; the digest keeps it from being outdated."""
    return load_esm(checkpoint, revision=revision).requires_grad_(False)


def checkpoint_width(checkpoint: str, *, revision: str | None = None) -> int:
    """Channels of its embeddings; of published names without asking anybody."""
    if checkpoint in WIDTHS:
        return WIDTHS[checkpoint]
    if _seed(checkpoint) is not None:
        return _TINY["hidden_size"]
    return int(_check_folder(checkpoint, _transformers(), revision).hidden_size)


def checkpoint_digest(checkpoint: str, *, revision: str | None = None) -> str:
    """What tells two checkpoints apart: the commit of a name on the hub, a digest of a folder's weights."""
    if _seed(checkpoint) is not None:
        return f"{checkpoint.replace(':', '_')}-torch{torch.__version__}"
    folder = _folder(checkpoint, _transformers(), revision)
    if folder.parent.name == "snapshots":  # how the hub's cache lays out a commit
        return folder.name
    files = [folder / "config.json", *sorted(p for pattern in _WEIGHTS for p in folder.glob(pattern))]
    return _digest_of(tuple((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files))


@lru_cache(maxsize=8)
def _digest_of(files: tuple[tuple[str, int, int], ...]) -> str:
    whole = hashlib.sha256()
    for name, _, _ in files:
        with open(name, "rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:24]


def _seed(checkpoint: str) -> int | None:
    """Of a random network; None for any other."""
    found = _RANDOM.fullmatch(checkpoint)
    if found is None and checkpoint.startswith("random:"):
        raise OptionError(f"checkpoint={checkpoint!r}: a random one is 'random:tiny', with a seed 'random:tiny:7'")
    return None if found is None else int(found[1] or 0)


def _tiny(transformers: Any, seed: int) -> Any:
    """ESM-2's architecture, small, with the same float32 weights whatever torch's default type."""
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
            return transformers.EsmModel(config, add_pooling_layer=False).eval()
        finally:
            torch.set_default_dtype(before)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as e:
        raise MissingExtraError("ESM needs Hugging Face transformers: pip install 'protgraph-pyg[esm]'") from e
    return transformers


def _folder(checkpoint: str, transformers: Any, revision: str | None) -> Path:
    """Where its configuration lies, downloaded if need be."""
    if Path(checkpoint).is_dir():
        if not (Path(checkpoint) / "config.json").is_file():
            raise CheckpointError(f"folder {checkpoint!r} holds no config.json: is it what save_pretrained wrote?")
        return Path(checkpoint)
    found = _on_the_hub(checkpoint, transformers, revision or "main")
    if isinstance(found, CheckpointError):
        raise found
    return found


@lru_cache(maxsize=32)
def _on_the_hub(checkpoint: str, transformers: Any, revision: str) -> Path | CheckpointError:
    """The hub is asked once a process, whatever it answers: each protein of a dataset asks here."""
    try:
        with _saying(checkpoint):
            return Path(transformers.utils.cached_file(checkpoint, "config.json", revision=revision)).parent
    except CheckpointError as e:
        return e


def _check_folder(checkpoint: str, transformers: Any, revision: str | None) -> Any:
    """Its configuration, if it is one of ESM with our tokens."""
    folder = _folder(checkpoint, transformers, revision)
    with _saying(checkpoint):
        kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
        config = transformers.EsmConfig.from_pretrained(folder)
    if kind != "esm" or getattr(config, "is_folding_model", False):
        raise CheckpointError(f"{checkpoint!r} is a {kind!r} model; ESM-2's are named facebook/esm2_…")
    vocabulary = folder / "vocab.txt"
    tokens = tuple(vocabulary.read_text(encoding="utf-8").split()) if vocabulary.is_file() else TOKENS
    if config.vocab_size != len(TOKENS) or config.mask_token_id != MASK or tokens != TOKENS:
        raise CheckpointError(f"{checkpoint!r} has {config.vocab_size} tokens that are not the {len(TOKENS)} of ESM-2")
    return config


@contextmanager
def _saying(checkpoint: str) -> Iterator[None]:
    """What transformers and the hub raise, as one error that says what to do."""
    try:
        yield
    except (OSError, ValueError) as e:
        reason = str(e).strip().partition("\n")[0][:200]
        raise CheckpointError(
            f"ESM checkpoint {checkpoint!r} cannot be had: {reason}\n"
            "Without a network, give a local folder, or fill the hub's cache before: hf download "
            f"{checkpoint if checkpoint in WIDTHS else DEFAULT}"
        ) from e


@contextmanager
def _quiet(transformers: Any, *, bars: bool) -> Iterator[None]:
    """Without the report of the language model's head, which an embedding leaves out; bars are for downloads."""
    logging = transformers.utils.logging
    before, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if shown:
            logging.enable_progress_bar()
