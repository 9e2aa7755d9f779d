"""Parsing of PDB ids and UniProt accessions."""

from __future__ import annotations

import pytest

from protgraph.errors import OptionError, SelectionError
from protgraph.structure.io.accession import Accession, as_accession, parse_accession


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("1ubq", Accession("pdb", "1ubq")),
        ("pdb:1UBQ", Accession("pdb", "1ubq")),
        ("pdb_00001ubq", Accession("pdb", "1ubq")),
        ("P69905", Accession("af", "P69905")),
        ("af:a0a024r1r8", Accession("af", "A0A024R1R8")),
        ("AF-Q9Y6V0-F12", Accession("af", "Q9Y6V0", 12)),
        ("af:AF-P69905-F1-model_v4", Accession("af", "P69905", 1, 4)),
    ],
)
def test_identifiers_of_both_archives_are_parsed(text, entry):
    assert parse_accession(text) == entry


@pytest.mark.parametrize(
    ("text", "data"),
    [("pdb:P69905", "af:P69905"), ("af:1ubq", "pdb:1ubq"), ("1ubq.pdb", "'1ubq.pdb'"),
     ("pdb:ubiquitin", "ubiquitin"), ("", "''")],
)  # fmt: skip
def test_other_strings_raise(text, data):
    with pytest.raises(SelectionError, match=data):
        parse_accession(text)


def test_only_a_prefix_makes_a_path_an_identifier():
    assert as_accession("1ubq") is None and as_accession("dir/pdb:1ubq") is None
    assert as_accession("AF:P69905") == Accession("af", "P69905")
    with pytest.raises(SelectionError):
        as_accession("pdb:x")


def test_addresses_come_from_the_archives_or_the_environment(monkeypatch):
    assert next(parse_accession("1ubq").addresses("bcif")).endswith("/1ubq.bcif.gz")
    versions = [a.rsplit("_v", 1)[1] for a in parse_accession("P69905").addresses("cif")]
    assert versions == ["6.cif", "5.cif", "4.cif"]
    assert len(list(parse_accession("AF-P69905-F1-model_v5").addresses("cif"))) == 1
    monkeypatch.setenv("PROTGRAPH_PDB_URL", "file:///mirror/{id}.cif.gz")
    assert list(parse_accession("1UBQ").addresses("cif")) == ["file:///mirror/1ubq.cif.gz"]
    with pytest.raises(OptionError, match="'pdb'.*bcif, cif"):
        next(parse_accession("1ubq").addresses("pdb"))
