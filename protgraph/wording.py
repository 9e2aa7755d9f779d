"""Numbers with singular or plural nouns, for messages."""

from __future__ import annotations

__all__ = ["count_noun"]


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun.

    Examples
    --------
    >>> count_noun(1, "chain"), count_noun(2, "chain")
    ('1 chain', '2 chains')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
