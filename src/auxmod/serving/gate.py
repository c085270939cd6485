"""Which requests are answered: those of the server's own pages, to its own name, with its token if not on loopback.

A page of another site that the user visits can send requests to 127.0.0.1, or make its own name point there. The
request's origin, or the host it names, gives it away.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from dataclasses import dataclass
from email.message import Message

HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class RefusedError(Exception):
    """A request is refused: an HTTP status, and a sentence that says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True)
class Gate:
    """The names by which the server may be addressed, and the token that it requires."""

    names: frozenset[str]
    any_address: bool
    """Whether every numeric address is one of its names, because it listens on all of them."""
    token: str | None
    cookie: str
    """The name of the cookie that carries the token."""

    def admit(self, headers: Message, *, navigation: bool) -> None:
        """Let a request in, or raise :class:`RefusedError`.

        ``navigation`` says that it is for the page itself, to which any site may link.
        """
        host = self._host(headers)
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "same-origin")
        ours = origin in (None, f"http://{host}", f"https://{host}")
        if not ours or not (navigation or site in ("same-origin", "none")):
            raise RefusedError(403, "This server answers its own pages only, not those of another site.")
        if self.token and not self._knows_token(headers):
            raise RefusedError(401, "Open the address that auxmod serve has printed: it carries the token.")

    def _host(self, headers: Message) -> str:
        given = headers.get_all("Host", [])
        match = HOST.fullmatch(given[0].strip()) if len(given) == 1 else None
        if not match:
            raise RefusedError(400, "The request must name its host, once.")
        name = match[1].lower()
        if name not in self.names and not (self.any_address and _is_address(name)):
            raise RefusedError(
                403, "This server is not known by that name: use the address that auxmod serve has printed."
            )
        return match[0].lower()

    def _knows_token(self, headers: Message) -> bool:
        said = [part.strip() for part in headers.get("Cookie", "").split(";")]
        return any(
            self.is_token(part.removeprefix(f"{self.cookie}=")) for part in said if part.startswith(f"{self.cookie}=")
        ) or self.is_token(headers.get("Authorization", "").removeprefix("Bearer "))

    def is_token(self, said: str) -> bool:
        return self.token is not None and hmac.compare_digest(said.encode(), self.token.encode())


def gate_of(bound: str, given: str, port: int, token: str) -> Gate:
    """Make the gate of a server that listens on the address ``bound``; on loopback it requires no token.

    What the user has written, ``given``, decides nothing: `127.1` and `LOCALHOST` are loopback too, and `0` is every
    address. It is a further name where a token is required. On loopback it is none: if the name is another's, a page
    under it could read the runs.
    """
    address = _address(bound)
    if address.is_loopback:
        return Gate(LOOPBACK | {written(bound)}, False, None, "")
    everywhere = address.is_unspecified
    names = {written(bound), f"[{given}]".lower() if ":" in given else given.lower()}
    names |= {"localhost", socket.gethostname().lower()} if everywhere else set()
    return Gate(frozenset(names), everywhere, token, f"auxmod-{port}")


def written(bound: str) -> str:
    """An address as a URL has it; an IPv4 address that a socket for IPv6 has is written as such."""
    address = _address(bound)
    return f"[{address}]" if address.version == 6 else str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    return (address.version == 6 and address.ipv4_mapped) or address


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
