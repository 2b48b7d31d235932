"""A running dashboard and pages of new visitors in Chromium, and one worker for scripts of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import browser as pages
from planner_dashboard import session


@pytest.fixture(scope="module")
def one_worker() -> Iterator[None]:
    """Start one worker for all scripts that streamlit runs in this process, and end it with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(session.WORKERS, "1")
        patch.setenv(session.MEMORY_MB, "0")
        session.workers.clear()
        yield
        session.workers().close()
        session.workers.clear()


@pytest.fixture
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the main module, which streamlit replaces by the script that it runs."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pages.Server]:
    """Start the dashboard by its command."""
    with pages.run_server(tmp_path_factory.mktemp("server"), "--workers", "2", "--no-warm") as running:
        yield running


@pytest.fixture(scope="module")
def address(server: pages.Server) -> str:
    """Return the address of the dashboard."""
    return server.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with pages.run_browser() as running:
        yield running


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Open a page of a new visitor; check that it needs no other server and writes to no console."""
    opened = pages.new_page(browser)
    outside: list[str] = []
    lines: list[str] = []
    opened.on("request", lambda call: outside.append(call.url) if "127.0.0.1" not in call.url else None)
    opened.on("console", lambda line: lines.append(line.text))
    opened.on("pageerror", lambda error: lines.append(str(error)))
    yield opened
    opened.context.close()
    assert not [url for url in outside if url.startswith("http")], "the pages need no other server"
    assert not lines, "the console stays empty"
