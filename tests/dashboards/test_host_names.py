"""The server answers under its own names only: another site's name may be rebound to this machine."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from planner_dashboard.host_names import HostNames, is_own_name


@pytest.mark.parametrize(
    ("header", "names", "is_own"),
    [
        ("127.0.0.1:8501", ["127.0.0.1"], True),
        ("localhost:9999", ["127.0.0.1"], True),
        ("LOCALHOST.", ["127.0.0.1"], True),
        ("[::1]:8501", ["127.0.0.1"], True),
        ("[0:0:0:0:0:0:0:1]", ["localhost"], True),
        ("evil.example:8501", ["127.0.0.1"], False),
        ("localhost.evil.example", ["127.0.0.1"], False),
        ("127.0.0.1.evil.example", ["127.0.0.1"], False),
        ("127.0.0.1@evil.example", ["127.0.0.1"], False),
        ("192.0.2.7:8501", ["127.0.0.1"], False),
        ("evil.example, localhost", ["127.0.0.1"], False),
        ("localhost\n", ["127.0.0.1"], False),
        ("", ["127.0.0.1"], False),
        ("192.0.2.7", ["192.0.2.7"], True),
        ("192.0.2.8", ["192.0.2.7"], False),
        ("localhost", ["192.0.2.7"], False),
        (socket.gethostname(), ["192.0.2.7"], True),
        ("plans.example", ["127.0.0.1", "plans.example"], True),
        ("other.example", ["0.0.0.0", "plans.example"], False),
        ("192.0.2.9:80", ["0.0.0.0"], True),
        ("[2001:db8::1]:80", ["::"], True),
        (socket.gethostname(), ["::"], True),
        ("evil.example", ["::"], False),
    ],
)
def test_a_name_is_the_servers_own(header: str, names: list[str], is_own: bool) -> None:
    assert is_own_name(header, names) is is_own


def answers(kind: str, *hosts: bytes) -> list[Any]:
    """Return what is sent for a request with these headers; `served` where it was passed on."""
    sent: list[Any] = []

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        sent.append("served")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "headers": [(b"host", host) for host in hosts]}
    asyncio.run(HostNames(serve, ["127.0.0.1"])(scope, None, send))
    return sent


@pytest.mark.parametrize("hosts", [(), (b"evil.example",), (b"localhost", b"evil.example"), (b"\xff",)])
def test_requests_under_other_names_are_refused(hosts: tuple[bytes, ...]) -> None:
    start, _ = answers("http", *hosts)
    assert start["status"] == 421
    assert answers("websocket", *hosts) == [{"type": "websocket.close", "code": 1008}]


def test_requests_under_the_own_name_are_served() -> None:
    assert answers("http", b"localhost:8501") == ["served"]
    assert answers("websocket", b"127.0.0.1:8501") == ["served"]
    assert answers("lifespan") == ["served"]
