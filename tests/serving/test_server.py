"""Tests of the server: it answers its own pages, and refuses anything else with a 4xx that says what is wrong."""

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxmod.serving import server as module
from auxmod.serving.server import BODY, Server
from served import ask, raw, served

JSON = {"Content-Type": "application/json"}
Start = Callable[..., Server]


def test_the_page_and_its_parts_are_served_and_lock_everything_else_out(store: Path, serve: Start) -> None:
    server = serve(store)
    for path, kind in {"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css"}.items():
        status, headers, content = ask(server, "GET", path)
        assert (status, headers.get_content_type()) == (200, kind)
        assert content == module.pages()[path][1]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_what_is_new_is_told_once(store: Path, serve: Start) -> None:
    server = serve(store)
    status, _, news = ask(server, "GET", "/api/news")
    (row,) = news["rows"]
    assert (status, row["name"], row["state"], row["step"], row["points"]) == (200, "one", "going", 4, 4)
    again = ask(server, "GET", f"/api/news?since={news['version']}&curve={row['id']}&curve=unknown")[2]
    assert again["rows"] == []
    assert {id: json.loads(curve)[-1] for id, curve in again["curves"].items()} == {row["id"]: [4, 0.25, 0.4]}


def test_a_name_that_is_not_unicode_is_shown_somehow(store: Path, serve: Start) -> None:
    os.rename(store / "one", os.fsencode(store) + b"/\xff")
    assert [row["name"] for row in ask(serve(store), "GET", "/api/news")[2]["rows"]] == ["\udcff"]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/..%2f..%2fetc/passwd",
        "/../../etc/passwd",
        "/static/app.js",
        "/runs/one/config.json",
        "/%00",
        "/app.js/",
    ],
)
def test_a_bad_path_is_not_found(path: str, store: Path, serve: Start) -> None:
    status, _, said = ask(serve(store), "GET", path)
    assert (status, said) == (404, {"error": "There is no such address here."})


@pytest.mark.parametrize("query", ["since=now", "since=1.5&curve=x", "&".join(["curve=x"] * 40), "since=" + "9" * 5000])
def test_a_bad_question_is_refused(query: str, store: Path, serve: Start) -> None:
    status, _, said = ask(serve(store), "GET", f"/api/news?{query}")
    assert status == 400
    assert said["error"].startswith("Ask for since=VERSION")


WRONG_POSTS: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"{", JSON, 400, "not JSON"),
    (b"\xff\xfe", JSON, 400, "not JSON"),
    (b"[" * 50_000, JSON, 400, "not JSON"),
    (b'{"run":"a","x":[' + b"9" * 9000 + b"]}", JSON, 400, "not JSON"),
    (b"[]", JSON, 400, "Send {"),
    (b'{"run": "a"}', JSON, 400, "Send {"),
    (b'{"run": 1, "x": [1]}', JSON, 400, "Send {"),
    (b'{"run": "a", "x": [1.5]}', JSON, 400, "Send {"),
    (b'{"run": "a", "x": [true]}', JSON, 400, "Send {"),
    (b'{"run": "../one", "x": [1]}', JSON, 404, "no run of that id"),
    (b"x=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "Send JSON"),
    (b"{}", {"Content-Type": "text/plain"}, 415, "Send JSON"),
    (b"{}", JSON | {"Content-Length": "many"}, 400, "whole number"),
    (b"{}", JSON | {"Content-Length": "-1"}, 400, "whole number"),
    (b"{}", JSON | {"Transfer-Encoding": "chunked"}, 411, "Content-Length"),
    (b"x" * (BODY + 1), JSON, 413, "at most"),
    (b"x" * 5_000_000, JSON, 413, "at most"),
    (b"{}", JSON | {"Content-Length": "9" * 400}, 413, "at most"),
]


@pytest.mark.parametrize(("body", "headers", "status", "said"), WRONG_POSTS)
def test_a_bad_body_is_refused(
    body: bytes, headers: dict[str, str], status: int, said: str, store: Path, serve: Start
) -> None:
    found, _, answer = ask(serve(store), "POST", "/api/answer", body, **headers)
    assert found == status
    assert said in answer["error"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
        (b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
        (b"GET /api/answer HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
        (b"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n", b"411"),
    ],
)
def test_a_malformed_request_is_refused_as_json(request_: bytes, status: bytes, store: Path, serve: Start) -> None:
    head, _, body = raw(serve(store), request_).partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert json.loads(body)["error"]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["run", "x", "y"]), inner),
    max_leaves=8,
)
LINES = st.sampled_from([
    b"GET / HTTP/1.1", b"POST /api/answer HTTP/1.1", b"GET /api/news?since=%s&curve=: HTTP/1.1", b"Host: localhost",
    b"Host: [", b"Origin: x", b"Content-Type: application/json", b"Content-Length: 3", b"Cookie: a=b; ;", b"", b"{}x",
])  # fmt: skip


def test_nothing_that_is_sent_makes_it_fall(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Send bytes, request lines in any order, and any JSON: the server answers or refuses each, without a fault."""
    with served(store) as server:

        @settings(max_examples=200)
        @given(st.binary(max_size=200) | st.lists(LINES | st.binary(max_size=20), max_size=8).map(b"\r\n".join))
        def hears(sent: bytes) -> None:
            answer = raw(server, sent)
            assert not answer or answer.split()[1] in (b"200", b"400", b"403", b"404", b"405", b"411", b"415", b"505")

        @settings(max_examples=100)
        @given(ANY_JSON)
        def reads(value: Any) -> None:
            status, _, said = ask(server, "POST", "/api/answer", json.dumps(value).encode(), **JSON)
            assert status in (400, 404)
            assert said["error"].endswith(".")

        hears()
        reads()
        assert ask(server, "GET", "/")[0] == 200
    assert capsys.readouterr().err == ""


# -- bounds ---------------------------------------------------------------------------------------------------


def test_a_client_that_drips_is_hung_up_on(store: Path, serve: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps an ordinary timeout from firing, so the deadline is for the whole request."""
    monkeypatch.setattr(module, "SECONDS", 0.5)
    server, began = serve(store), time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.settimeout(0.1)
        while time.monotonic() - began < 20:
            try:
                connection.sendall(b"x")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert 0.4 < time.monotonic() - began < 10


def test_a_body_that_does_not_come_is_a_408(store: Path, serve: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", serve(store).port), timeout=20) as connection:
        head = b"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: 9\r\n\r\n{")
        assert b" 408 " in connection.makefile("rb").readline()


def test_more_connections_than_it_holds_are_told_so(store: Path, serve: Start) -> None:
    server = serve(store)
    for _ in range(module.CONNECTIONS):
        assert server.slots.acquire(blocking=False)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        assert b" 503 " in connection.makefile("rb").readline()
    for _ in range(module.CONNECTIONS):
        server.slots.release()
    assert ask(server, "GET", "/")[0] == 200


def test_a_thread_that_cannot_start_takes_no_room_for_good(
    store: Path, serve: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(store)

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", fail)
        for _ in range(module.CONNECTIONS + 1):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
                assert connection.recv(1) == b""
    assert ask(server, "GET", "/")[0] == 200


def test_a_fault_of_its_own_is_a_500_that_tells_nothing(
    store: Path, serve: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(store)

    def fail(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(server.library, "news", fail)
    status, _, said = ask(server, "GET", "/api/news")
    assert status == 500
    assert "secret" not in said["error"]
    assert "RuntimeError: a secret" in capsys.readouterr().err
