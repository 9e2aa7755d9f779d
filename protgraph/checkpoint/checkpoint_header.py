"""Schema of the JSON header of a checkpoint, and SHA-256 of weights, with or without a header."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec
from protgraph.evaluation.calibration import CalibrationMap

__all__ = [
    "ADAPTER_VERSION",
    "AdapterBase",
    "CheckpointHeader",
    "ComponentSource",
    "FORMAT",
    "FORMAT_VERSION",
    "OLDEST_VERSION",
    "SourceKind",
    "checksum_of",
    "upgrade_header",
    "weights_digest",
]

FORMAT, FORMAT_VERSION = "protgraph-checkpoint", 3
#: Version of files that have adapters. Files of version 2 and later are read.
ADAPTER_VERSION, OLDEST_VERSION = 4, 2


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


#: Kinds of components whose code predictions depend on.
SourceKind: TypeAlias = Literal["featurizer", "layer", "head", "task"]


class ComponentSource(_Strict):
    """Registry name of a component, and the distribution, object and code behind it."""

    kind: SourceKind
    name: str
    source: str  # "distribution version", "import FILE", or "session"
    object: str  # "module:attribute"
    # SHA-256 of the code of a component of an imported file or of a session; None for those of distributions
    digest: str | None = None


class AdapterBase(_Strict):
    """Weights to which the low-rank terms of a file are added."""

    source: str | None  # of a starting point; None for the initial weights of the model
    seed: int  # of the initial weights
    digest: str  # SHA-256 of the weights of the layers
    lora: dict[str, int]  # pattern → rank


class CheckpointHeader(_Strict):
    """Everything but the weights of a checkpoint, as plain data; ``other_graphs`` are further members."""

    format: str
    format_version: int
    version: str
    graph: dict[str, Any]
    other_graphs: list[dict[str, Any]]
    target: Target
    task: str
    hidden: list[str]
    one_chain: bool
    visible_types: bool
    threshold: list[float] | None
    calibration: CalibrationMap | None
    fields: dict[str, FieldSpec]
    components: list[ComponentSource]
    metrics: dict[str, dict[str, float | None]]
    trained: dict[str, Any]
    base: AdapterBase | None = None  # of a file of version 4, which has adapters and other trained weights only
    sha256: str | None = None


# --- older versions --------------------------------------------------------------------------------------------------


def _from_2_to_3(content: dict[str, Any]) -> dict[str, Any]:
    """Add what version 3 introduced: further members of an ensemble, and the calibration."""
    return content | {"format_version": 3, "other_graphs": [], "calibration": None}


#: Version → function that returns the header of the next one, whose files have the same tensors.
_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {2: _from_2_to_3}


def upgrade_header(content: dict[str, Any]) -> dict[str, Any]:
    """Return the header of an older file as that of the present version, in one step per version."""
    while content["format_version"] in _UPGRADES:
        content = _UPGRADES[content["format_version"]](content)
    return content


# --- checksums -------------------------------------------------------------------------------------------------------


def weights_digest(model: nn.Module) -> str:
    """Compute the SHA-256 of the weights of a model; it does not depend on the file that they are in."""
    return checksum_of({}, {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()})


def checksum_of(content: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    """Compute the SHA-256 of the header of a file, without its key "sha256", and of all weights, of any shapes."""
    header = {key: value for key, value in content.items() if key != "sha256"}
    checksum = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, weight in sorted(weights.items()):
        checksum.update(f"\0{name}\0{weight.dtype}\0{tuple(weight.shape)}\0".encode())
        checksum.update(weight.reshape(-1).view(torch.uint8).numpy().data)
    return checksum.hexdigest()
