"""Checks of the numeric options of featurizers."""

from __future__ import annotations

from protgraph.errors import OptionError

__all__ = ["check_integer", "check_number"]


def check_integer(name: str, option: str, value: int, *, minimum: int, maximum: int | None = None) -> int:
    """Return an option of the featurizer ``name`` that is an integer from ``minimum`` to ``maximum``.

    Raises
    ------
    OptionError
        The value is not an integer, or is out of range.

    Examples
    --------
    >>> check_integer("knn", "k", 0, minimum=1)
    Traceback (most recent call last):
    protgraph.errors.OptionError: knn: invalid k=0. Use an integer of at least 1.
    """
    if isinstance(value, int) and minimum <= value and (maximum is None or value <= maximum):
        return value
    allowed = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    raise OptionError(f"{name}: invalid {option}={value!r}. Use an integer {allowed}.")


def check_number(
    name: str,
    option: str,
    value: float,
    *,
    zero: bool = False,
    below: float | None = None,
    unit: str = "",
) -> float:
    """Return an option of the featurizer ``name`` that is a number above 0 and below ``below``.

    Parameters
    ----------
    name, option : str
        Registry name of the featurizer, and name of its option.
    value : float
    zero : bool
        Allow 0.
    below : float, optional
        Upper limit, not allowed itself.
    unit : str
        Unit of the limits, for the message.

    Raises
    ------
    OptionError
        The value is not a number, or is out of range.

    Examples
    --------
    >>> check_number("radius", "radius", -1.0, unit="Å")
    Traceback (most recent call last):
    protgraph.errors.OptionError: radius: invalid radius=-1.0. Use a number above 0 Å.
    """
    is_number = isinstance(value, int | float)
    if is_number and (value > 0 or (zero and value == 0)) and (below is None or value < below):
        return value
    lowest = "of at least 0" if zero else "above 0"
    highest = "" if below is None else f" and below {below:g}"
    raise OptionError(f"{name}: invalid {option}={value!r}. Use a number {lowest}{highest}{unit and f' {unit}'}.")
