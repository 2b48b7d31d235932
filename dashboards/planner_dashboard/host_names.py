"""Names under which the server answers: a page of another site must not reach it by a name of that site.

A site can let its own name point to this machine (DNS rebinding). Its pages are then of the same origin as
the server's; only the header `Host` of their requests tells them apart.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from typing import Any, Final

NAMES: Final = "PLANNER_DASHBOARD_NAMES"
"""Environment variable: the address to listen on, then other names of the server, between spaces."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
REFUSAL: Final = (
    b"This server does not answer under this name. Start planner dashboard with --name NAME to let it.\n"
)


class HostNames:
    """ASGI middleware that refuses requests under other names than those of the server."""

    def __init__(self, app: Any, names: Iterable[str] | None = None) -> None:
        self.app = app
        self.names = tuple(os.environ.get(NAMES, "127.0.0.1").split() if names is None else names)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on a request, or refuse it: 421 for a file, 403 for a WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        given = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(given) == 1 and is_own_name(given[0], self.names):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(REFUSAL)).encode())]
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": REFUSAL})


def is_own_name(header: str, names: Iterable[str]) -> bool:
    """Return whether a `Host` header, with or without a port, has a name of the server.

    names  the address that the server listens on, then others; a loopback address has the names of LOOPBACK.
           A server on all addresses has this machine's name and every address: only names can be rebound
    """
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,253})(?::\d{1,5})?", header, re.ASCII)
    if match is None:
        return False
    host = _plain(match[1])
    listening, *others = [_plain(name) for name in names] or ["127.0.0.1"]
    own = {listening, *others}
    address = _address(listening)
    if listening == "localhost" or (address is not None and address.is_loopback):
        own |= set(LOOPBACK)
    elif address is not None:
        own.add(_plain(socket.gethostname()))
        if address.is_unspecified:
            own |= set(LOOPBACK)
            return host in own or _address(host) is not None
    return host in own


def _plain(name: str) -> str:
    """Return a name or address in the one form that is compared."""
    plain = name.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")
    address = _address(plain)
    return plain if address is None else str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
