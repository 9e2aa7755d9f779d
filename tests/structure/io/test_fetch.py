"""Against a server in a thread that cuts, lies, fails and recovers as it is told."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from protgraph.errors import FetchError, NotInArchiveError, OfflineError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.fetch import fetch


class Server:
    """Serves ``files`` by path; ``script`` says what goes wrong with the next answers."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.script: list[str] = []
        self.asked: list[tuple[str, str | None]] = []
        self.tag = '"1"'
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args) -> None: ...

            def do_GET(self) -> None:
                outer.answer(self)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, h: BaseHTTPRequestHandler) -> None:
        ranged = h.headers.get("Range")
        self.asked.append((h.path, ranged))
        trouble = self.script.pop(0) if self.script else ""
        if trouble.isdigit() or h.path not in self.files:
            h.send_response(int(trouble) if trouble else 404)
            h.send_header("Content-Length", "0")
            h.end_headers()
            return
        content, begin = self.files[h.path], 0
        if ranged and h.headers.get("If-Range") == self.tag:
            begin = int(ranged.removeprefix("bytes=").removesuffix("-"))
        h.send_response(206 if begin else 200)
        if begin:
            h.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if trouble != "untagged":
            h.send_header("ETag", self.tag)
        h.send_header("Content-Length", str(len(content) - begin + (7 if trouble == "long" else 0)))
        h.end_headers()
        h.wfile.write(content[begin : len(content) // 2] if trouble in ("cut", "untagged") else content[begin:])


@pytest.fixture
def server(structures_dir, monkeypatch, tmp_path):
    served = Server()
    served.files["/1crn.bcif.gz"] = gzip.compress((structures_dir / "1crn.bcif").read_bytes(), mtime=0)
    monkeypatch.setenv("PROTGRAPH_PDB_BCIF_URL", served.address + "/{id}.bcif.gz")
    monkeypatch.setenv("PROTGRAPH_AF_BCIF_URL", served.address + "/AF-{id}-F{fragment}-model_v{version}.bcif")
    monkeypatch.setenv("PROTGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PROTGRAPH_OFFLINE", raising=False)
    thread = threading.Thread(target=served.http.serve_forever, daemon=True)
    thread.start()
    yield served
    served.http.shutdown()
    served.http.server_close()
    thread.join()


def get(name: str = "1crn", **options):
    return fetch(name, **{"backoff": 0.001, "timeout": 5, **options})


def test_a_file_is_fetched_once_and_kept(server, tmp_path, structures_dir):
    path = get("pdb:1CRN")
    assert path == tmp_path / "cache" / "structures" / "1crn.bcif.gz" == get()
    assert path.read_bytes() == server.files["/1crn.bcif.gz"] and len(server.asked) == 1
    record = json.loads(path.with_name("1crn.bcif.gz.json").read_text())
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sorted(p.name for p in path.parent.iterdir()) == ["1crn.bcif.gz", "1crn.bcif.gz.json"]
    assert clean(load_structure("pdb:1crn")).sequence == clean(load_structure(structures_dir / "1crn.bcif")).sequence
    assert load_structure("pdb:1crn").name == "1crn"


def test_a_cut_download_goes_on_where_it_stopped(server):
    whole = server.files["/1crn.bcif.gz"]
    server.script = ["cut"]
    assert get().read_bytes() == whole
    assert server.asked == [("/1crn.bcif.gz", None), ("/1crn.bcif.gz", f"bytes={len(whole) // 2}-")]


def test_a_later_call_goes_on_too(server):
    server.script = ["cut"]
    with pytest.raises(FetchError, match="given up after 1 attempts .*bytes of"):
        get(retries=0)
    assert get().read_bytes() == server.files["/1crn.bcif.gz"] and server.asked[1][1] is not None


def test_a_file_that_changed_meanwhile_is_fetched_anew(server):
    server.script = ["cut"]
    with pytest.raises(FetchError):
        get(retries=0)
    server.tag = '"2"'
    assert get().read_bytes() == server.files["/1crn.bcif.gz"]


def test_without_a_validator_nothing_is_resumed(server):
    server.script = ["untagged"]
    assert get().read_bytes() == server.files["/1crn.bcif.gz"] and server.asked[1][1] is None


def test_less_than_was_promised_is_no_file(server, tmp_path):
    server.script = ["long"] * 9
    with pytest.raises(FetchError, match=r"given up after 2 attempts .*bytes of \d+ arrived"):
        get(retries=1)
    assert not (tmp_path / "cache" / "structures" / "1crn.bcif.gz").exists()


def test_servers_in_trouble_are_asked_again(server):
    server.script = ["503", "500", "429"]
    assert get().exists() and len(server.asked) == 4


def test_other_refusals_are_final(server):
    server.script = ["403"]
    with pytest.raises(FetchError, match="HTTP 403"):
        get()
    assert len(server.asked) == 1


def test_an_unknown_entry_is_an_error_with_a_hint(server):
    get()
    with pytest.raises(NotInArchiveError, match="'1crm'.*'1crn'"):
        get("1crm")
    with pytest.raises(NotInArchiveError, match="'1ub0'"):
        get("1ubo")


def test_the_newest_version_of_a_model_is_found(server, structures_dir):
    server.files["/AF-P69905-F1-model_v5.bcif"] = (structures_dir / "1crn.bcif").read_bytes()
    path = get("af:P69905")
    assert path.name == "AF-P69905-F1.bcif"
    assert [a for a, _ in server.asked] == [f"/AF-P69905-F1-model_v{v}.bcif" for v in (6, 5)]
    with pytest.raises(NotInArchiveError, match="AlphaFold DB has no entry 'AF-P68871-F1'"):
        get("af:P68871")


def test_a_digest_that_does_not_fit_is_an_error(server, tmp_path):
    with pytest.raises(FetchError, match="SHA-256 is .*, not 00"):
        get(sha256="00" * 32)
    assert not list((tmp_path / "cache" / "structures").iterdir())


def test_a_page_in_place_of_a_file_is_an_error(server, tmp_path):
    server.files["/1crn.bcif.gz"] = b"<html>Please log in</html>"
    with pytest.raises(FetchError, match="no structure.*html"):
        get()
    assert not list((tmp_path / "cache" / "structures").iterdir())


def test_a_file_damaged_in_the_cache_is_fetched_again(server):
    path = get()
    path.write_bytes(path.read_bytes()[:-4])
    assert get().read_bytes() == server.files["/1crn.bcif.gz"]


def test_offline_takes_the_cache_only(server, monkeypatch):
    with pytest.raises(OfflineError, match=r"1crn is not in .*structures"):
        get(offline=True)
    kept = get()
    assert get(offline=True) == kept
    monkeypatch.setenv("PROTGRAPH_OFFLINE", "1")
    assert get() == kept
    with pytest.raises(OfflineError):
        load_structure("pdb:1ubq")
    assert len(server.asked) == 1


def test_a_server_that_is_not_there_is_an_error(server, monkeypatch):
    monkeypatch.setenv("PROTGRAPH_PDB_BCIF_URL", "http://127.0.0.1:9/{id}.bcif")
    with pytest.raises(FetchError, match="given up after 2 attempts"):
        get(retries=1)


def test_several_at_once_fetch_one_file_once(server):
    with ThreadPoolExecutor(6) as pool:
        paths = set(pool.map(lambda _: get(), range(12)))
    assert len(paths) == 1 and len(server.asked) == 1
