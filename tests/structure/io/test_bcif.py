"""What is passed over is missing, what is kept is what a full decoder finds."""

from __future__ import annotations

import msgpack
import pytest

from protgraph.structure.io.bcif import unpack_categories


def _pack(*categories: dict, first: str = "name") -> bytes:
    order = [{first: c[first], **c} for c in categories]
    return msgpack.packb({"version": "0.3", "dataBlocks": [{"header": "X", "categories": order}], "encoder": "me"})


def test_kept_categories_are_those_of_a_full_decoder(shared_data):
    content = (shared_data / "formats" / "3wip.bcif").read_bytes()
    whole, part = msgpack.unpackb(content, raw=False), unpack_categories(content, ["_atom_site", "_cell"])
    wanted = [c for c in whole["dataBlocks"][0]["categories"] if c["name"] in ("_atom_site", "_cell")]
    assert part["dataBlocks"][0]["categories"] == wanted
    assert {k: v for k, v in part.items() if k != "dataBlocks"} == {
        k: v for k, v in whole.items() if k != "dataBlocks"
    }


@pytest.mark.parametrize("first", ["name", "columns"])
def test_the_order_of_keys_does_not_matter(first):
    a, b = ({"name": name, "rowCount": 1, "columns": [{"name": "x"}]} for name in ("_a", "_b"))
    found = unpack_categories(_pack(a, b, first=first), ["_b"])
    assert found["dataBlocks"] == [{"header": "X", "categories": [b]}]


@pytest.mark.parametrize("end", [-1, -40, 8])
def test_a_cut_file_is_an_error(end):
    content = _pack({"name": "_a", "rowCount": 1, "columns": [{"name": "x" * 60}]})
    with pytest.raises(ValueError, match="cut off"):
        unpack_categories(content[:end], ["_b"])


def test_bytes_after_the_end_are_an_error():
    content = _pack({"name": "_a", "rowCount": 1, "columns": []})
    with pytest.raises(ValueError, match="3 bytes after the end"):
        unpack_categories(content + b"abc", ["_a"])
