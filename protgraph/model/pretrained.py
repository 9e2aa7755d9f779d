"""Models with published weights, by registry name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.errors import CheckpointError, WiringError
from protgraph.model.build import ProteinModel, as_model_spec, build_model
from protgraph.model.spec import ModelSpec

__all__ = ["PublishedWeights", "pretrained", "published_weights", "with_weights"]


@dataclass(frozen=True, eq=False)
class PublishedWeights:
    """Published weights of a model.

    ``target``: what the weights predict. ``state``: state of the model built for this target. ``task``: what the model
    predicts of a complete structure, for ``protgraph predict``; "" for models that predict otherwise, e.g. residue
    types from the backbone. ``one_chain``: True if the model predicts each chain alone. ``has_vectors``: False if the
    head reads outputs of the networks, e.g. logits to average, which are no embeddings.
    """

    target: Target
    state: Mapping[str, Tensor]
    task: str = ""
    one_chain: bool = False
    has_vectors: bool = True


def pretrained(model: str | ModelSpec | Mapping[str, Any], *, file: str | Path | None = None) -> ProteinModel:
    """Build a model with its published weights, in evaluation mode.

    A model specification has the source of its weights, ``weights="module:function"``. The function is called with the
    model's name and ``file`` and returns :class:`PublishedWeights`.

    Parameters
    ----------
    model : str, ModelSpec or dict
        E.g. ``"proteinmpnn.v_48_020"``.
    file : str or Path, optional
        Weights in the published layout; default: those that are installed.

    Raises
    ------
    WiringError
        If the model has no published weights.
    CheckpointError
        If they do not fit the model.
    """
    spec = as_model_spec(model)
    return with_weights(spec, published_weights(spec, file=file))


def published_weights(spec: ModelSpec, *, file: str | Path | None = None) -> PublishedWeights:
    """Read the published weights of a model; see :func:`pretrained`."""
    if not spec.weights:
        raise WiringError(f"model {spec.name!r} has no published weights. Train it, or use a variant that has them.")
    weights = pkgutil.resolve_name(spec.weights)(spec.name, file)
    assert isinstance(weights, PublishedWeights)  # contract of the function
    return weights


def with_weights(spec: ModelSpec, weights: PublishedWeights) -> ProteinModel:
    """Build a model with published weights, in evaluation mode.

    Raises :class:`CheckpointError` if they do not fit the model.
    """
    built = build_model(spec, weights.target, seed=0)
    try:
        built.load_state_dict(weights.state, strict=True)
    except RuntimeError as e:
        raise CheckpointError(f"published weights do not fit model {spec.name!r}: {' '.join(str(e).split())}") from e
    return built.eval()
