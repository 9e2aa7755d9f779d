"""Models with published weights: what was trained elsewhere, under a registry name."""

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

__all__ = ["PublishedWeights", "pretrained"]


@dataclass(frozen=True, eq=False)
class PublishedWeights:
    """Weights that somebody trained.

    Parameters
    ----------
    target : Target
        What they predict.
    state : mapping of str to Tensor
        The state of the model graph built for this target.
    """

    target: Target
    state: Mapping[str, Tensor]


def pretrained(model: str | ModelSpec | Mapping[str, Any], *, file: str | Path | None = None) -> ProteinModel:
    """The model of a registry name with its published weights, in evaluation mode.

    A model graph states where they come from: ``weights="module:function"``. The function is given the graph's name and
    ``file``, and returns :class:`PublishedWeights`.

    Parameters
    ----------
    model : str, ModelSpec or dict
        ``"proteinmpnn.v_48_020"``, say.
    file : str or Path, optional
        Weights of the same kind, in the published layout; by default those that are installed.

    Raises
    ------
    WiringError
        The model has none.
    CheckpointError
        They do not fit it.
    """
    graph = as_model_spec(model)
    if not graph.weights:
        raise WiringError(f"model {graph.name!r} has no published weights: train it, or name a variant that has them")
    found = pkgutil.resolve_name(graph.weights)(graph.name, file)
    built = build_model(graph, found.target, seed=0)
    try:
        built.load_state_dict(found.state, strict=True)
    except RuntimeError as e:
        raise CheckpointError(f"published weights do not fit model {graph.name!r}: {' '.join(str(e).split())}") from e
    return built.eval()
