"""Tests of who may ask: our own pages, by our own names; with the token where others can reach the server."""

import socket
from collections.abc import Callable
from pathlib import Path
from socketserver import TCPServer

import pytest

from auxmod.serving.gate import gate_of, written
from auxmod.serving.server import Server
from served import ask, raw

Start = Callable[..., Server]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil@127.0.0.1", "", "10.0.0.1", "[::2]"])
def test_a_foreign_host_is_refused(host: str, store: Path, serve: Start) -> None:
    assert ask(serve(store), "GET", "/api/news", Host=host)[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:80", "[::1]:8097"])
def test_our_own_names_are_known_behind_any_port(host: str, store: Path, serve: Start) -> None:
    assert ask(serve(store), "GET", "/api/news", Host=host, Origin=f"http://{host.lower()}")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_foreign_origin_is_refused(headers: dict[str, str], store: Path, serve: Start) -> None:
    server = serve(store)
    for method, path in (("GET", "/api/news"), ("POST", "/api/answer")):
        status, _, said = ask(server, method, path, **headers)
        assert (status, said["error"][:31]) == (403, "This server answers its own pag")


def test_a_link_from_elsewhere_opens_the_page(store: Path, serve: Start) -> None:
    assert ask(serve(store), "GET", "/", Sec_Fetch_Site="cross-site")[0] == 200


# -- the token ------------------------------------------------------------------------------------------------


def test_where_others_can_reach_it_the_token_opens_it_and_nothing_else(store: Path, serve: Start) -> None:
    server = serve(store, "0.0.0.0")
    token, cookie = server.gate.token, f"auxmod-{server.port}"
    assert token
    assert server.url.endswith(f"?token={token}")
    for path in ("/", "/app.js", "/api/news", "/?token=wrong", f"/api/news?token={token}"):
        assert ask(server, "GET", path)[0] == 401, path
    for headers in ({"Cookie": f"{cookie}=wrong"}, {"Authorization": "Bearer wrong"}, {"Cookie": "=;;ä"}):
        assert ask(server, "GET", "/api/news", **headers)[0] == 401
    status, headers, _ = ask(server, "GET", f"/?token={token}")
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly; SameSite=Lax" in headers["Set-Cookie"]
    given = headers["Set-Cookie"].partition(";")[0]
    assert ask(server, "GET", "/", Cookie=f"other=1; {given}")[0] == 200
    assert ask(server, "GET", "/api/news", Authorization=f"Bearer {token}")[0] == 200
    assert ask(server, "GET", "/api/news", Cookie=given, Host="evil.example")[0] == 403
    assert ask(server, "GET", "/api/news", Cookie=given, Host="192.0.2.7:8097")[0] == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "LOCALHOST", "localhost", "::ffff:127.0.0.1"])
def test_on_loopback_there_is_no_token_however_it_is_written(host: str, store: Path, serve: Start) -> None:
    server = serve(store, host)
    assert server.gate.token is None
    assert server.url == f"http://127.0.0.1:{server.port}/"
    for name in ("127.0.0.1", "localhost", f"localhost:{server.port}"):
        assert ask(server, "GET", "/api/news", Host=name)[0] == 200
    assert ask(server, "GET", "/api/news", Host="192.0.2.7")[0] == 403


def test_a_name_that_leads_to_loopback_is_no_name_of_ours(
    store: Path, serve: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no token on loopback, so a page under that name, should it be another's, would read the runs."""
    bind = TCPServer.server_bind

    def resolved(server: TCPServer) -> None:
        server.server_address = ("127.0.0.5", 0)
        bind(server)

    monkeypatch.setattr(TCPServer, "server_bind", resolved)
    server = serve(store, "box.example")
    assert server.url == f"http://127.0.0.5:{server.port}/"
    assert server.gate.token is None
    for name, status in (("127.0.0.5", b"200"), ("localhost", b"200"), ("box.example", b"403")):
        request = f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"
        assert raw(server, request.encode()).split()[1] == status


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "::ffff:0.0.0.0"])
def test_everywhere_wants_a_token_however_it_is_written(host: str, store: Path, serve: Start) -> None:
    server = serve(store, host)
    assert server.gate.token
    assert server.url == f"http://0.0.0.0:{server.port}/?token={server.gate.token}"
    bearer = f"Bearer {server.gate.token}"
    for name, status in (("192.0.2.7", 200), (socket.gethostname(), 200), ("localhost", 200), ("evil.example", 403)):
        assert ask(server, "GET", "/api/news", Host=name, Authorization=bearer)[0] == status
        assert ask(server, "GET", "/api/news", Host=name)[0] == (403 if status == 403 else 401)


@pytest.mark.parametrize(
    ("bound", "given", "name", "names", "anywhere", "asks"),
    [
        ("127.0.0.1", "box", "127.0.0.1", {"127.0.0.1", "localhost", "[::1]"}, False, False),
        ("::1", "::1", "[::1]", {"127.0.0.1", "localhost", "[::1]"}, False, False),
        ("::ffff:127.9.9.9", "x", "127.9.9.9", {"127.9.9.9", "127.0.0.1", "localhost", "[::1]"}, False, False),
        ("192.0.2.7", "BOX.lan", "192.0.2.7", {"192.0.2.7", "box.lan"}, False, True),
        ("2001:db8::7", "2001:DB8:0::7", "[2001:db8::7]", {"[2001:db8::7]", "[2001:db8:0::7]"}, False, True),
        ("::ffff:192.0.2.7", "box", "192.0.2.7", {"192.0.2.7", "box"}, False, True),
        ("255.255.255.255", "<broadcast>", "255.255.255.255", {"255.255.255.255", "<broadcast>"}, False, True),
    ],
)
def test_the_gate_goes_by_the_address_that_is_listened_on(
    bound: str, given: str, name: str, names: set[str], anywhere: bool, asks: bool
) -> None:
    made = gate_of(bound, given, 8097, "secret")
    assert (written(bound), made.names, made.any_address) == (name, names, anywhere)
    assert made.token == ("secret" if asks else None)
