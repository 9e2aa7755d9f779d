"""Scores of published methods, shown beside the models of a benchmark."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, StrictStr

__all__ = ["PublishedScore"]


class PublishedScore(BaseModel):
    """A published score of a method on a tested split; ``[[published]]`` in a spec.

    Parameters
    ----------
    task, split, metric : str
        Where the score belongs.
    method : str
        Name of the method.
    value : float
    trained_on : str
        Training data, if they differ from those of the benchmark; empty if they are the same.
    source : str
        Reference, and how the value was obtained.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: StrictStr
    method: StrictStr
    metric: StrictStr
    value: FiniteFloat
    split: StrictStr = "test"
    trained_on: StrictStr = ""
    source: StrictStr = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and TOML."""
        return self.model_dump()
