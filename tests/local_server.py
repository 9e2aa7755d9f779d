"""HTTP server on this machine that truncates, fails and recovers by a script."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Server", "running"]


class Server:
    """Serve ``files`` by path; ``script`` lists the faults of the next answers."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.script: list[str] = []
        self.requests: list[tuple[str, str | None]] = []
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
        self.requests.append((h.path, ranged))
        fault = self.script.pop(0) if self.script else ""
        if fault.isdigit() or h.path not in self.files:
            h.send_response(int(fault) if fault else 404)
            h.send_header("Content-Length", "0")
            h.end_headers()
            return
        content, begin = self.files[h.path], 0
        if ranged and h.headers.get("If-Range") == self.tag:
            begin = int(ranged.removeprefix("bytes=").removesuffix("-"))
        h.send_response(206 if begin else 200)
        if begin:
            h.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if fault != "untagged":
            h.send_header("ETag", self.tag)
        h.send_header("Content-Length", str(len(content) - begin + (7 if fault == "long" else 0)))
        h.end_headers()
        h.wfile.write(content[begin : len(content) // 2] if fault in ("cut", "untagged") else content[begin:])


@contextmanager
def running() -> Iterator[Server]:
    """Yield a server that answers until the block ends."""
    served = Server()
    thread = threading.Thread(target=served.http.serve_forever, daemon=True)
    thread.start()
    yield served
    served.http.shutdown()
    served.http.server_close()
    thread.join()
