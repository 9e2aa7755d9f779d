"""Properties that are computed once, which ``torch.compile`` can trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

__all__ = ["computed_once"]


def computed_once(function: Callable[[Any], Any]) -> property:
    """Make a method without arguments a property that is computed at most once for each object.

    Within a compiled function it is computed where it is read; the compiler joins equal expressions.
    """
    # Not functools.cached_property: its lock in Python 3.11 cannot be traced by torch.compile (torch 2.13, 2026-11-22).
    name = function.__name__

    @wraps(function)
    def compute_once(instance: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(instance)
        values = vars(instance)
        if name not in values:
            values[name] = function(instance)
        return values[name]

    return property(compute_once)
