"""The server's process: `python -m planner_dashboard.server run app.py ...`, with streamlit's arguments.

It loads what the first page needs while the browser still loads its own files.

Names under which the server answers: a page of another site must not reach it by a name of that site.

A site can let its own name point to this machine (DNS rebinding). Its pages are then of the same origin as
the server's; only the header `Host` of their requests tells them apart.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any, Final

from planner_dashboard import visitors

COLLECT_S: Final = 5.0
"""Time between two collections of garbage, each of a tenth of a second. Streamlit would collect after every
run of a page, also of the part of it that looks at a job several times a second."""
SWITCH_INTERVAL_S: Final = 1e-4
"""While modules load, the interpreter switches to the threads that serve files after this time."""
NAMES: Final = "PLANNER_DASHBOARD_NAMES"
"""Environment variable: the address to listen on, then other names of the server, between spaces."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
REFUSAL: Final = (
    b"This server does not answer under this name. Start planner dashboard with --name NAME to let it.\n"
)


def main() -> None:
    """Serve until stopped."""
    from streamlit.web import cli

    confine()
    threading.Thread(target=_load, name="load", daemon=True).start()
    threading.Thread(target=_collect_garbage, name="collect garbage", daemon=True).start()
    cli.main(prog_name="streamlit")


HEADERS: Final = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
"""Headers of every answer: no other site may frame a page, or learn its address."""


def confine() -> None:
    """Answer under own names only, let own pages only open the WebSocket, send every answer with HEADERS."""
    from streamlit.web.server.starlette import starlette_server, starlette_websocket

    # the origin must be that of the request itself: streamlit also allows any port of this machine
    starlette_websocket.is_url_from_allowed_origins = _refuse_origin  # type: ignore[attr-defined]
    make_app = starlette_server.create_starlette_app  # type: ignore[attr-defined]

    def make_confined_app(*arguments: Any, **named: Any) -> Any:
        app = make_app(*arguments, **named)
        app.add_middleware(HostNames)
        app.add_middleware(Headers)
        return app

    starlette_server.create_starlette_app = make_confined_app  # type: ignore[attr-defined]


def _refuse_origin(url: str) -> bool:  # noqa: ARG001 - streamlit's signature
    return False


BASE: Final = b"""<script>
      window.__streamlit = { BACKEND_BASE_URL: new URL(".", window.location.href).href };
    </script>"""
"""Tells streamlit's script where this server is. Without it, the script of a page below another address
asks for the server there first, and the browser writes its failures to the console."""


class Headers:
    """ASGI middleware that adds HEADERS to every answer; to pages BASE and the cookie of a new visitor."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request with the headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: dict[str, Any] = {}
        body = b""
        cookie = None
        if _may_be_page(scope):  # whose text is changed, so it comes uncompressed and as it is now
            cookie = visitors.cookie_for(_cookie_header(scope))
            left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since")
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in left_out]}

        async def send_with_headers(message: Any) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                own_headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                taken = {name for name, _ in own_headers}
                if cookie is not None:
                    own_headers.append((b"set-cookie", cookie.encode()))
                remaining = [pair for pair in message.get("headers", ()) if pair[0].lower() not in taken]
                message = {**message, "headers": [*remaining, *own_headers]}
                if _is_page(message):
                    start.update(message)
                    return
            elif start:
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                body = body.replace(b"<head>", b"<head>\n    " + BASE, 1)
                length = (b"content-length", str(len(body)).encode())
                headers = [
                    pair for pair in start["headers"] if pair[0].lower() not in (b"content-length", b"etag")
                ]
                await send({**start, "headers": [*headers, length]})
                message = {**message, "body": body}
            await send(message)

        await self.app(scope, receive, send_with_headers)


def _may_be_page(scope: Any) -> bool:
    """Return whether a request may be for a page, by its address: files have an ending."""
    last = scope["path"].rpartition("/")[2]
    return scope["method"] == "GET" and "." not in last and not scope["path"].startswith("/_stcore")


def _cookie_header(scope: Any) -> str:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"cookie"]
    return "; ".join(values)


def _is_page(message: Any) -> bool:
    headers = {name.lower(): value for name, value in message["headers"]}
    is_plain = b"content-encoding" not in headers
    return (
        message["status"] == 200 and is_plain and headers.get(b"content-type", b"").startswith(b"text/html")
    )


def _load() -> None:
    from streamlit import runtime

    while not runtime.exists():  # the server listens first
        time.sleep(0.01)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        from planner_dashboard import question, session, warming, what_if  # noqa: F401 - the page

        question.form_fields(question.unchanged_scenario(question.FIRST_SCENARIO))
    finally:
        sys.setswitchinterval(usual)
    gc.freeze()  # collections of garbage need not visit permanent objects
    if os.environ.get(warming.WARM):
        warming.warm_workers(session.workers())


def _collect_garbage() -> None:
    """Collect garbage repeatedly, which also cancels the jobs of ended sessions."""
    count = 0
    while True:
        time.sleep(COLLECT_S)
        count = collect_if_active(count)


def collect_if_active(count: int) -> int:
    """Collect all garbage unless hardly any object was made since the last time; return the new count.

    count  number of Python's collections of young objects then, each after hundreds of new ones
    """
    new_count = int(gc.get_stats()[0]["collections"])
    if new_count != count:
        gc.collect()
    return new_count


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
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) == 1 and is_own_name(hosts[0], self.names):
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
    own_names = {listening, *others}
    address = _address(listening)
    if listening == "localhost" or (address is not None and address.is_loopback):
        own_names |= set(LOOPBACK)
    elif address is not None:
        own_names.add(_plain(socket.gethostname()))
        if address.is_unspecified:
            own_names |= set(LOOPBACK)
            return host in own_names or _address(host) is not None
    return host in own_names


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


if __name__ == "__main__":
    main()
