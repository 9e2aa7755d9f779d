"""Numbers with their nouns, as messages say them."""

from __future__ import annotations

__all__ = ["count_noun"]


def count_noun(number: int, noun: str) -> str:
    """A number and its noun.

    Examples
    --------
    >>> counted(1, "chain"), counted(2, "chain")
    ('1 chain', '2 chains')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
