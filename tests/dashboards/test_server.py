"""The server: no other site frames its pages, opens its WebSocket, or reaches it by a name of its own."""

from __future__ import annotations

import base64
import http.client
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from benchmarks import browser as dashboard

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dashboard.run_server(tmp_path_factory.mktemp("server"), "--workers", "1", "--no-warm") as server:
        yield urlsplit(server.url).netloc


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/nowhere.js", "/sweeps"])
def test_no_site_frames_a_page(host: str, path: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("Content-Security-Policy") == "frame-ancestors 'none'"
    assert answer.getheader("X-Frame-Options") == "DENY"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    connection.close()


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
