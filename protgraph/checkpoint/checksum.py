"""SHA-256 of weights, with or without the header of a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["checksum_of", "weights_digest"]


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
