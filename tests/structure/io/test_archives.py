"""Accessions of archives, and downloads from a local server that truncates, fails and recovers by a script."""

from __future__ import annotations

import gzip
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from protgraph.errors import FetchError, NotInArchiveError, OfflineError, OptionError, SelectionError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.archives import Accession, as_accession, fetch, parse_accession
from tests.local_server import running


@pytest.fixture
def server(structures_dir, monkeypatch, tmp_path):
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PROTGRAPH_OFFLINE", raising=False)
    with running() as served:
        served.files["/1crn.bcif.gz"] = gzip.compress((structures_dir / "1crn.bcif").read_bytes(), mtime=0)
        monkeypatch.setenv("PROTGRAPH_PDB_BCIF_URL", served.address + "/{id}.bcif.gz")
        monkeypatch.setenv("PROTGRAPH_AF_BCIF_URL", served.address + "/AF-{id}-F{fragment}-model_v{version}.bcif")
        yield served


def get(name: str = "1crn", **options):
    return fetch(name, **{"backoff": 0.001, "timeout": 5, **options})


def _files(tmp_path) -> list[str]:
    return [p.name for p in (tmp_path / "cache" / "structures").iterdir() if p.is_file()]


def test_a_file_is_downloaded_once_and_cached(server, tmp_path, structures_dir):
    path = get("pdb:1CRN")
    assert path == tmp_path / "cache" / "structures" / "1crn.bcif.gz" == get()
    assert path.read_bytes() == server.files["/1crn.bcif.gz"] and len(server.requests) == 1
    record = json.loads(path.with_name("1crn.bcif.gz.json").read_text())
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sorted(p.name for p in path.parent.iterdir()) == ["1crn.bcif.gz", "1crn.bcif.gz.json", "locks"]
    assert clean(load_structure("pdb:1crn")).sequence == clean(load_structure(structures_dir / "1crn.bcif")).sequence
    assert load_structure("pdb:1crn").name == "1crn"


def test_a_truncated_download_is_resumed(server):
    whole = server.files["/1crn.bcif.gz"]
    server.script = ["cut"]
    assert get().read_bytes() == whole
    assert server.requests == [("/1crn.bcif.gz", None), ("/1crn.bcif.gz", f"bytes={len(whole) // 2}-")]


def test_a_later_call_resumes_too(server):
    server.script = ["cut"]
    with pytest.raises(FetchError, match="1crn.bcif.gz"):
        get(retries=0)
    assert get().read_bytes() == server.files["/1crn.bcif.gz"] and server.requests[1][1] is not None


def test_a_file_that_changed_is_downloaded_from_the_start(server):
    server.script = ["cut"]
    with pytest.raises(FetchError):
        get(retries=0)
    server.tag = '"2"'
    assert get().read_bytes() == server.files["/1crn.bcif.gz"]


def test_without_a_validator_nothing_is_resumed(server):
    server.script = ["untagged"]
    assert get().read_bytes() == server.files["/1crn.bcif.gz"] and server.requests[1][1] is None


def test_fewer_bytes_than_announced_raise(server, tmp_path):
    server.script = ["long"] * 2  # the second answer is the rest, 7 bytes
    with pytest.raises(FetchError, match="0 of 7"):
        get(retries=1)
    assert not (tmp_path / "cache" / "structures" / "1crn.bcif.gz").exists()
    assert len(server.requests) == 2


def test_temporary_server_errors_are_retried(server):
    server.script = ["503", "500", "429"]
    assert get().exists() and len(server.requests) == 4


def test_other_http_errors_are_not_retried(server):
    server.script = ["403"]
    with pytest.raises(FetchError, match="HTTP 403"):
        get()
    assert len(server.requests) == 1


def test_an_unknown_entry_raises_with_similar_ids(server):
    get()
    with pytest.raises(NotInArchiveError, match="'1crm'.*'1crn'"):
        get("1crm")
    with pytest.raises(NotInArchiveError, match="'1ub0'"):
        get("1ubo")


def test_the_newest_version_of_a_model_is_found(server, structures_dir):
    server.files["/AF-P69905-F1-model_v5.bcif"] = (structures_dir / "1crn.bcif").read_bytes()
    path = get("af:P69905")
    assert path.name == "AF-P69905-F1.bcif"
    assert [a for a, _ in server.requests] == [f"/AF-P69905-F1-model_v{v}.bcif" for v in (6, 5)]
    with pytest.raises(NotInArchiveError, match="AF-P68871-F1"):
        get("af:P68871")


def test_a_wrong_checksum_raises(server, tmp_path):
    with pytest.raises(FetchError, match="00" * 32):
        get(sha256="00" * 32)
    assert not _files(tmp_path)


def test_a_web_page_instead_of_a_structure_raises(server, tmp_path):
    server.files["/1crn.bcif.gz"] = b"<html>Please log in</html>"
    with pytest.raises(FetchError, match="html"):
        get()
    assert not _files(tmp_path)


def test_a_damaged_cached_file_is_downloaded_again(server):
    path = get()
    path.write_bytes(path.read_bytes()[:-4])
    assert get().read_bytes() == server.files["/1crn.bcif.gz"]


def test_offline_uses_the_cache_only(server, monkeypatch):
    with pytest.raises(OfflineError, match="1crn.*structures"):
        get(offline=True)
    cached = get()
    assert get(offline=True) == cached
    monkeypatch.setenv("PROTGRAPH_OFFLINE", "1")
    assert get() == cached
    with pytest.raises(OfflineError):
        load_structure("pdb:1ubq")
    assert len(server.requests) == 1


def test_an_unreachable_server_raises(server, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_PDB_BCIF_URL", "http://127.0.0.1:9/{id}.bcif")
    with pytest.raises(FetchError, match="127.0.0.1:9/1crn") as e:
        get(retries=1)
    assert str(e.value).startswith("cannot fetch 1crn") and "Give a file" in str(e.value)


def test_concurrent_calls_download_a_file_once(server):
    with ThreadPoolExecutor(6) as pool:
        paths = set(pool.map(lambda _: get(), range(12)))
    assert len(paths) == 1 and len(server.requests) == 1


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
