"""The HTTP server: a fixed set of addresses, with limits on size, time and connections. Standard library only.

No path of a request ever becomes a path on disk: pages are read once at the start, and runs are named by their ids.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from auxmod.errors import UserError, require
from auxmod.serving.answers import Answers
from auxmod.serving.gate import RefusedError, gate_of, written
from auxmod.serving.library import Library

BODY = 64 * 1024
"""The longest request body, in bytes."""
SECONDS = 30.0
"""Time limit for a whole request to arrive, for its answer to be taken, and for an idle connection to stay open."""
CONNECTIONS = 200
CURVES = 32
"""The most curves that one request may ask for."""
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PORT = "choose another --port, or 0 for any free one"
HOST = "give --host an address or a name of this machine, such as 127.0.0.1, or 0.0.0.0 for all its addresses"
NEWS, ANSWER = "/api/news", "/api/answer"
Reply = tuple[str, bytes]
"""Content type and content."""


class Server(ThreadingHTTPServer):
    """The pages of one store, on one address."""

    daemon_threads, block_on_close, request_queue_size = True, False, CONNECTIONS

    def __init__(self, store: Path, host: str, port: int) -> None:
        require(bool(host), f"--host is empty: {HOST}.")  # a socket would listen everywhere
        self.library, self.answers = Library(store), Answers()
        self.slots = threading.BoundedSemaphore(CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, TypeError) as error:  # TypeError: a name that is none in any encoding
            why = getattr(error, "strerror", None) or error
            cure = PORT if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES) else HOST
            raise UserError(f"Nothing can be served at {host}, port {port} ({why}): {cure}.") from None
        self.bound, self.port = self.socket.getsockname()[:2]
        self.gate = gate_of(self.bound, host, self.port, secrets.token_urlsafe(24))
        self.static = pages()

    @property
    def url(self) -> str:
        """The address to open, with the token if there is one."""
        return f"http://{written(self.bound)}:{self.port}/" + (f"?token={self.gate.token}" if self.gate.token else "")

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's own looks up this machine's name, which may take long

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.slots.acquire(blocking=False):
            try:
                return super().process_request(request, client_address)
            except RuntimeError:  # no thread could be started, so none will release the slot
                self.slots.release()
                raise
        with contextlib.suppress(OSError):
            request.send(b"HTTP/1.1 503 Too many connections\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a broken connection does not matter, and `Handler.respond` answers errors of this server."""

    # -- replies -----------------------------------------------------------------------------------------------

    def news(self, query: str) -> Reply:
        """What is new since the version `since`, and each `curve` that is asked for by its run's id."""
        try:
            asked = parse_qs(query, max_num_fields=CURVES + 1)
            since = int(asked.get("since", ["0"])[0])
        except ValueError:
            raise RefusedError(400, f"Ask for since=VERSION and at most {CURVES} times curve=ID.") from None
        return _json({"store": str(self.library.store), **self.library.news(since, set(asked.get("curve", [])))})

    def answer(self, asked: Any) -> Reply:
        """A model's answer to one row of numbers."""
        run, x = (asked.get("run"), asked.get("x")) if isinstance(asked, dict) else (None, None)
        if not isinstance(run, str) or not isinstance(x, list) or not all(type(each) is int for each in x):
            raise RefusedError(400, 'Send {"run": ID, "x": [whole numbers]}.')
        directory = self.library.model(run)
        if directory is None:
            raise RefusedError(404, "There is no run of that id with a checkpoint.")
        return _json(self.answers.ask(directory, x))


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version, server_version, sys_version = "HTTP/1.1", "auxmod", ""
    disable_nagle_algorithm = True
    deadline = 0.0

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Timed(self))

    def handle_one_request(self) -> None:
        self.deadline = time.monotonic() + SECONDS
        super().handle_one_request()

    def do_GET(self) -> None:
        self.respond(self._get)

    def do_POST(self) -> None:
        self.respond(self._post)

    def respond(self, reply: Callable[[str, str], Reply | None]) -> None:
        """Send the reply, or a sentence that says why there is none."""
        try:
            if made := reply(*_address(self.path)):
                self._send(200, *made)
        except RefusedError as refusal:
            self.send_error(refusal.status, refusal.sentence)
        except UserError as error:
            self.send_error(422, str(error))
        except ConnectionError:
            self.close_connection = True
        except TimeoutError:
            self.send_error(408, f"The request has not come whole within {SECONDS:g} seconds.")
        except Exception:
            traceback.print_exc()
            self.send_error(500, "The server could not answer; where it runs, it says why.")

    def _get(self, path: str, query: str) -> Reply | None:
        gate, token = self.server.gate, parse_qs(query).get("token", [""])[0] if path == "/" else ""
        if token and gate.is_token(token):  # into a cookie, out of the address bar and the history
            cookie = f"{gate.cookie}={token}; HttpOnly; SameSite=Lax; Path=/"
            self._send(303, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie})
            return None
        gate.admit(self.headers, navigation=path == "/")
        if path in self.server.static:
            return self.server.static[path]
        if path == NEWS:
            return self.server.news(query)
        raise _unknown("POST" if path == ANSWER else None)

    def _post(self, path: str, _: str) -> Reply:
        self.server.gate.admit(self.headers, navigation=False)
        if path == ANSWER:
            return self.server.answer(self._body())
        raise _unknown("GET" if path == NEWS or path in self.server.static else None)

    def _body(self) -> Any:
        if self.headers.get_content_type() != "application/json":  # a form of another site cannot send JSON
            raise RefusedError(415, "Send JSON, with Content-Type: application/json.")
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or "Transfer-Encoding" in self.headers:
            raise RefusedError(411, "Say with Content-Length how long the body is.")
        if not (lengths[0].isascii() and lengths[0].isdigit()):
            raise RefusedError(400, "Content-Length must be a whole number.")
        if len(lengths[0]) > 9 or int(lengths[0]) > BODY:
            raise RefusedError(413, f"The body may have at most {BODY} bytes.")
        try:
            return json.loads(self.rfile.read(int(lengths[0])))
        except (ValueError, RecursionError):
            raise RefusedError(400, "The body is not JSON.") from None

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.connection.settimeout(SECONDS)
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in (HEADERS | own | (headers or {})).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the error as JSON and close the connection; whatever else the client has sent is discarded."""
        self.close_connection, self.request_version = True, self.protocol_version  # else nonsense gets no status line
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        headers = {"Allow": "GET, POST"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        with contextlib.suppress(OSError):
            self._send(status, *_json({"error": message or status.phrase}), headers)
            self._drain()

    def _drain(self) -> None:
        """Read on for up to a second: a client still sending when the connection closes would lose the answer."""
        self.connection.shutdown(socket.SHUT_WR)
        self.deadline = time.monotonic() + 1.0
        while self.rfile.read1(BODY):
            pass

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a page that polls would fill the terminal."""


class _Timed(io.RawIOBase):
    """What a connection sends, until the request's deadline: a client that sends slowly cannot hold a thread."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.handler.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.handler.connection.settimeout(left)
        return int(self.handler.connection.recv_into(buffer))


def _unknown(method: str | None) -> RefusedError:
    """The error for an unknown address, or for one that takes only ``method``."""
    return RefusedError(405, f"Use {method}.") if method else RefusedError(404, "There is no such address here.")


def _address(target: str) -> tuple[str, str]:
    """Path and query of a request's target."""
    try:
        address = urlsplit(target)
    except ValueError:
        raise RefusedError(400, "This is not an address.") from None
    return address.path, address.query


def _json(value: Any) -> Reply:
    """A JSON reply, in ASCII because a file's name need not be valid Unicode."""
    return "application/json", json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def pages() -> dict[str, Reply]:
    """The static files of the package, by address."""
    found = (files("auxmod.serving") / "static").iterdir()
    read = {file.name: (KINDS[Path(file.name).suffix], file.read_bytes()) for file in found}
    return {f"/{name.removeprefix('index.html')}": reply for name, reply in read.items()}
