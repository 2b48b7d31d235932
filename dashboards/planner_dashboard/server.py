"""The server's process: `python -m planner_dashboard.server run app.py ...`, with streamlit's arguments.

It loads what the first page needs while the browser still loads its own files.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import Any, Final

from planner_dashboard.host_names import HostNames

SWITCH_INTERVAL_S: Final = 1e-4
"""While modules load, the interpreter switches to the threads that serve files after this time."""


def main() -> None:
    """Serve until stopped."""
    from streamlit.web import cli

    confine()
    threading.Thread(target=_load, name="load", daemon=True).start()
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
    """ASGI middleware that adds HEADERS to every answer, and BASE to pages."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request with the headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: dict[str, Any] = {}
        body = b""
        if _may_be_page(scope):  # whose text is changed, so it comes uncompressed and as it is now
            left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since")
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in left_out]}

        async def send_with_headers(message: Any) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                taken = {name for name, _ in own}
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in taken]
                message = {**message, "headers": [*kept, *own]}
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
    # streamlit collects garbage after every run of a page: it need not visit permanent objects
    gc.freeze()
    if os.environ.get(warming.WARM):
        warming.warm_workers(session.workers())


if __name__ == "__main__":
    main()
