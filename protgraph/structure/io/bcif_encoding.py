"""What undoes the encodings of a BinaryCIF column, in numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = ["decode"]

_TYPES = {1: "<i1", 2: "<i2", 3: "<i4", 4: "<u1", 5: "<u2", 6: "<u4", 32: "<f4", 33: "<f8"}


def decode(data: bytes, encodings: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """The values of a column.

    Parameters
    ----------
    data : bytes
        As the file has them.
    encodings : sequence of mapping
        In the order in which the writer went through them.

    Returns
    -------
    ndarray
        ``(rows,)`` of the type that the encodings say. It may be read-only.

    Raises
    ------
    LookupError, TypeError, ValueError
        The encodings are not of the specification, or the data are not what they say.

    References
    ----------
    Sehnal et al. 2020, doi:10.1371/journal.pcbi.1008247, and the BinaryCIF specification 0.3.

    Examples
    --------
    >>> packed = {"kind": "IntegerPacking", "byteCount": 1, "isUnsigned": False, "srcSize": 3}
    >>> decode(bytes([1, 127, 1, 2]), [packed, {"kind": "ByteArray", "type": 1}]).tolist()
    [1, 128, 2]
    """
    values: Any = data
    for encoding in reversed(encodings):
        values = _DECODERS[encoding["kind"]](values, encoding)
    return values


def _byte_array(data: bytes, e: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(data, _TYPES[e["type"]])


def _fixed_point(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    return (data / e["factor"]).astype(_TYPES[e["srcType"]], copy=False)


def _interval_quantization(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    values = (data * (e["max"] - e["min"]) / (e["numSteps"] - 1)).astype(_TYPES[e["srcType"]], copy=False)
    return values + e["min"]


def _run_length(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    """Pairs of a value and how often it comes."""
    return _sized(np.repeat(data[::2], data[1::2]).astype(_TYPES[e["srcType"]], copy=False), e)


def _delta(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    return np.cumsum(data, dtype=_TYPES[e["srcType"]]) + e["origin"]


def _integer_packing(data: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    """A number is the sum of all up to the next that is neither the smallest nor the largest of its type."""
    limits = np.iinfo(data.dtype)
    goes_on = data == limits.max
    if limits.min < 0:
        goes_on |= data == limits.min
    if not goes_on.any():
        return _sized(data.astype("<i4"), e)
    sums = np.cumsum(data, dtype=np.int64)[~goes_on]
    return _sized(np.diff(sums, prepend=0).astype("<i4"), e)


def _string_array(data: bytes, e: Mapping[str, Any]) -> np.ndarray:
    """Numbers of texts, which are pieces of one; −1 is the empty text."""
    text, bounds = e["stringData"], decode(e["offsets"], e["offsetEncoding"]).tolist()
    texts = np.array([*(text[a:b] for a, b in pairwise(bounds)), ""], dtype="U")
    number = decode(data, e["dataEncoding"])
    if len(number) and number.min() < -1:
        raise ValueError(f"a text has the number {number.min()}")
    return texts[number]


def _sized(values: np.ndarray, e: Mapping[str, Any]) -> np.ndarray:
    if len(values) != e["srcSize"]:
        raise ValueError(f"{len(values)} values in place of {e['srcSize']}")
    return values


_DECODERS: dict[str, Callable[[Any, Mapping[str, Any]], np.ndarray]] = {
    "ByteArray": _byte_array,
    "FixedPoint": _fixed_point,
    "IntervalQuantization": _interval_quantization,
    "RunLength": _run_length,
    "Delta": _delta,
    "IntegerPacking": _integer_packing,
    "StringArray": _string_array,
}
