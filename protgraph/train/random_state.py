"""States of random streams, as plain data and tensors that a checkpoint can contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

__all__ = ["random_state", "set_random_state"]


def random_state(generator: torch.Generator | None = None) -> dict[str, Any]:
    """Return the states of the random streams that a run seeds: torch, CUDA and a generator."""
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "generator": None if generator is None else generator.get_state(),
    }


def set_random_state(state: Mapping[str, Any], generator: torch.Generator | None = None) -> None:
    """Restore the states of :func:`random_state`."""
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"]:
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])
    if generator is not None and state["generator"] is not None:
        generator.set_state(state["generator"].cpu())
