"""A REST catalog in front of another one, which gives each table's credentials with the table."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["vending"]


@contextmanager
def vending(upstream: str, credentials: Mapping[str, str], field: str) -> Iterator[str]:
    """The address of the catalog in front.

    Args:
        upstream: the address of the catalog behind it.
        credentials: what is given with each table.
        field: where they stand in the answer, `config` or `storage-credentials`.
    """

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            # With its own Host, which is signed.
            request = urllib.request.Request(upstream + self.path, body, dict(self.headers), method=self.command)
            try:
                with urllib.request.urlopen(request) as answer:
                    status, content = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, content = error.code, error.read()
            content = _with_credentials(content, credentials, field)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815  # the names are http.server's

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _with_credentials(content: bytes, credentials: Mapping[str, str], field: str) -> bytes:
    try:
        answer: Any = json.loads(content)
    except ValueError:
        return content
    if not isinstance(answer, dict) or "metadata" not in answer:
        return content
    given: Any = {**answer.get("config", {}), **credentials}
    if field == "storage-credentials":
        given = [{"prefix": "s3://", "config": dict(credentials)}]
    return json.dumps({**answer, field: given}).encode()
