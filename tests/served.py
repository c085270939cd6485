"""Serve a store for the duration of a test, and ask its server."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auxmod.serving.server import Server


@contextlib.contextmanager
def served(store: Path, host: str = "127.0.0.1") -> Iterator[Server]:
    with Server(store, host, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: Server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Send a request; return the status, the headers, and the content: parsed if it is JSON, otherwise bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    is_json = response.headers.get_content_type() == "application/json"
    return response.status, response.headers, json.loads(content) if is_json else content


def raw(server: Server, text: bytes) -> bytes:
    with socket.create_connection(server.socket.getsockname(), timeout=20) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()
