"""Numbers in messages: with singular or plural nouns, and with the digits that matter."""

from __future__ import annotations

__all__ = ["count_noun", "format_figure"]


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun.

    Examples
    --------
    >>> count_noun(1, "chain"), count_noun(2, "chain")
    ('1 chain', '2 chains')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_figure(value: float) -> str:
    """Return a number with four decimals, or with four significant digits if it is small or large.

    Examples
    --------
    >>> format_figure(0.47312), format_figure(1.23456e-9), format_figure(123456.7)
    ('0.4731', '1.235e-09', '1.235e+05')
    """
    return f"{value:.4f}" if value == 0 or 0.01 <= abs(value) < 1000 else f"{value:.4g}"
