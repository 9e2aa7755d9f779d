"""Decompress gzip, with isal if it is installed (extra ``isal``): 2 to 8 times as fast as Python's zlib, same bytes.

Not zlib-ng: 1.8 times as fast as Python's zlib on mmCIF, isal 8 times (isal 1.9.1, zlib-ng 1.1.0, 2026-11-22).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

__all__ = ["gunzip"]


def gunzip(data: bytes) -> bytes:
    """Return the decompressed bytes of one or more gzip members.

    Raises
    ------
    EOFError, OSError, zlib.error
        The data are cut off or damaged.
    """
    return _decompressor()(data)


@cache
def _decompressor() -> Callable[[bytes], bytes]:
    if not find_spec("isal"):
        return gzip.decompress
    igzip, failure = import_module("isal.igzip"), import_module("isal.isal_zlib").error

    def decompress(data: bytes) -> bytes:
        try:
            return igzip.decompress(data)
        except failure as e:
            raise zlib.error(str(e)) from e

    return decompress
