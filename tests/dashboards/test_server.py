"""The server: no other site frames its pages, opens its WebSocket, or reaches it by a name of its own."""

from __future__ import annotations

import asyncio
import base64
import gc
import http.client
import os
import socket
import weakref
from typing import Any
from urllib.parse import urlsplit

import pytest

from planner_dashboard import visitors
from planner_dashboard.server import HostNames, collect_if_active, is_own_name

pytestmark = pytest.mark.slow


@pytest.fixture
def host(address: str) -> str:
    return urlsplit(address).netloc


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/nowhere.js", "/sweeps"])
def test_no_site_frames_a_page(host: str, path: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("Content-Security-Policy") == "frame-ancestors 'none'"
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    connection.close()


def test_a_page_gives_a_new_visitor_a_cookie(host: str) -> None:
    def cookie(path: str, **headers: str) -> str | None:
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.request("GET", path, headers=headers)
        header = connection.getresponse().getheader("Set-Cookie")
        connection.close()
        return header

    first = cookie("/")
    assert first is not None
    assert "HttpOnly; SameSite=Lax" in first
    assert cookie("/", Cookie=first.partition(";")[0]) is None
    assert cookie("/", Cookie=f"{visitors.COOKIE}=other") is not None
    assert visitors.COOKIE not in (cookie("/_stcore/health") or "")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://{host}", 101),
        ("http://localhost:1", 403),
        ("http://127.0.0.1:1", 403),
        ("http://example.org", 403),
        ("null", 403),
    ],
)
def test_only_pages_of_the_server_open_its_socket(host: str, origin: str, status: int) -> None:
    connection = http.client.HTTPConnection(host, timeout=30)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Origin": origin.format(host=host),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    connection.request("GET", "/_stcore/stream", headers=headers)
    assert connection.getresponse().status == status
    connection.close()


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/host-config", "/component/x", "/media/x"])
def test_no_other_name_is_answered(host: str, path: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", path, headers={"Host": "rebound.example:8501"})
    answer = connection.getresponse()
    assert answer.status == 421
    assert b"--name NAME" in answer.read()
    connection.close()


def test_no_other_name_opens_the_socket(host: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=30)
    headers = {
        "Host": "rebound.example:8501",
        "Origin": "http://rebound.example:8501",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    connection.request("GET", "/_stcore/stream", headers=headers)
    assert connection.getresponse().status == 403
    connection.close()


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


class Session:
    """An object that refers to itself, as those of a session do."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_unless_the_server_is_idle() -> None:
    """A job is cancelled when nothing refers to it, which only a collection finds for a session."""
    gc.disable()
    try:
        ended = weakref.ref(Session())
        count = collect_if_active(-1)
        assert ended() is None
        ended = weakref.ref(Session())
        assert collect_if_active(count) == count
        assert ended() is not None
        gc.collect(0)
        assert collect_if_active(count) > count
        assert ended() is None
    finally:
        gc.enable()
