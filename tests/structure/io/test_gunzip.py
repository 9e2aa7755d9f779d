"""gzip data are decompressed with and without isal to the same bytes; damaged data raise."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest

from protgraph.structure.io import gunzip as module
from protgraph.structure.io.gunzip import gunzip

TEXT = np.random.default_rng(1).integers(65, 80, 20_000).astype(np.uint8).tobytes()
PACKED = gzip.compress(TEXT)
DAMAGED = {
    "cut in the header of the data": PACKED[:30],
    "cut in the checksum": PACKED[:-3],
    "wrong checksum": PACKED[:-8] + bytes(8),
    "damaged data": PACKED[:15] + b"\xff" * 3 + PACKED[18:],
    "no data": b"\x1f\x8b\x08\0",
}


@pytest.fixture(params=["isal", "zlib"])
def library(request, monkeypatch):
    if request.param == "isal":
        pytest.importorskip("isal", reason="isal is not installed")
    else:
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    module._decompressor.cache_clear()
    yield request.param
    module._decompressor.cache_clear()


def test_the_library_is_used(library):
    gunzip(PACKED)
    assert (module._decompressor() is gzip.decompress) == (library == "zlib")


def test_bytes_are_equal(library):
    assert gunzip(PACKED) == TEXT
    assert gunzip(PACKED + PACKED) == TEXT + TEXT and gunzip(PACKED + b"\0\0") == TEXT
    assert gunzip(gzip.compress(b"")) == b""


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_data_raise(library, data):
    with pytest.raises((EOFError, OSError, zlib.error)):
        gunzip(data)
