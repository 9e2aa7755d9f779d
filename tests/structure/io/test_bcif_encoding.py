"""What biotite's encoders wrote is decoded to what it was; what is not of the specification is an error."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure.io import pdbx

from protgraph.structure.io.bcif_encoding import decode

RUNS = np.repeat([7, -3, 70000, 7], [4, 1, 300, 2]).astype(np.int32)
NUMBERS = np.array([0, 1, -1, 126, 127, 128, 254, 255, -127, -128, -129, 40000, -40000, 3], np.int32)
TEXTS = np.array(["CA", "", "N", "CA", "Å", "OXT", "CA"])
FIXED = pdbx.FixedPointEncoding(1000)


@pytest.mark.parametrize(
    ("values", "encodings"),
    [
        (NUMBERS, []),
        (NUMBERS, [pdbx.IntegerPackingEncoding(1)]),
        (NUMBERS, [pdbx.IntegerPackingEncoding(2)]),
        (abs(NUMBERS), [pdbx.IntegerPackingEncoding(1)]),
        (NUMBERS[:3], [pdbx.IntegerPackingEncoding(1)]),
        (RUNS, [pdbx.RunLengthEncoding()]),
        (RUNS, [pdbx.RunLengthEncoding(), pdbx.IntegerPackingEncoding(1)]),
        (RUNS, [pdbx.DeltaEncoding(), pdbx.RunLengthEncoding(), pdbx.IntegerPackingEncoding(2)]),
        (NUMBERS / 1000, [FIXED, pdbx.DeltaEncoding(), pdbx.IntegerPackingEncoding(2)]),
        ((NUMBERS / 1000).astype(np.float32), [pdbx.FixedPointEncoding(1000)]),
        (TEXTS, [pdbx.StringArrayEncoding(data_encoding=[pdbx.IntegerPackingEncoding(1), pdbx.ByteArrayEncoding()])]),
        (np.array(["", ""]), [pdbx.StringArrayEncoding()]),
    ],
)
def test_what_biotite_encodes_is_decoded_to_the_same_values_and_type(values, encodings):
    if values.dtype.kind != "U":
        encodings = [*encodings, pdbx.ByteArrayEncoding()]
    content = pdbx.BinaryCIFData(values, encodings).serialize()
    found = decode(content["data"], content["encoding"])
    assert np.array_equal(found, values)
    assert np.array_equal(found, pdbx.BinaryCIFData.deserialize(content).array)
    assert found.dtype.kind == values.dtype.kind
    if values.dtype.kind != "i":
        assert found.dtype == values.dtype


def test_interval_quantization_equals_its_definition():
    steps = [{"kind": "IntervalQuantization", "min": -1.0, "max": 3.0, "numSteps": 5, "srcType": 33}]
    found = decode(bytes([0, 1, 4]), [*steps, {"kind": "ByteArray", "type": 4}])
    assert found.tolist() == [-1.0, 0.0, 3.0]


BYTES = {"kind": "ByteArray", "type": 1}


@pytest.mark.parametrize(
    ("data", "encodings"),
    [
        (bytes([5, 2]), [{"kind": "RunLength", "srcType": 3, "srcSize": 3}, BYTES]),
        (bytes([5, 2, 5]), [{"kind": "RunLength", "srcType": 3, "srcSize": 2}, BYTES]),
        (bytes([5, 254]), [{"kind": "RunLength", "srcType": 3, "srcSize": 2}, BYTES]),
        (bytes([5, 2]), [{"kind": "IntegerPacking", "srcSize": 3}, BYTES]),
        (bytes([5, 127]), [{"kind": "IntegerPacking", "srcSize": 2}, BYTES]),
        (bytes(7), [{"kind": "ByteArray", "type": 33}]),
        (bytes(8), [{"kind": "ByteArray", "type": 7}]),
        (bytes(8), [{"kind": "Zip"}]),
    ],
)
def test_what_is_not_of_the_specification_is_an_error(data, encodings):
    with pytest.raises((LookupError, ValueError)):
        decode(data, encodings)


@pytest.mark.parametrize("number", [3, -2])
def test_a_text_that_is_not_there_is_an_error(number):
    kinds = {"dataEncoding": [BYTES], "offsetEncoding": [BYTES], "offsets": bytes([0, 1, 3]), "stringData": "abc"}
    assert decode(bytes([0, 1, 255]), [{"kind": "StringArray", **kinds}]).tolist() == ["a", "bc", ""]
    with pytest.raises((LookupError, ValueError)):
        decode(np.array([number], np.int8).tobytes(), [{"kind": "StringArray", **kinds}])
