"""A running dashboard and pages of new visitors in Chromium, and one worker for scripts of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the dashboard's store."""
    folder = tmp_path_factory.mktemp("server") / "store"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def server(store: Path) -> Iterator[pages.Server]:
    """Start the dashboard by its command, one for all tests: each visitor has answers of its own."""
    with pages.run_server(store.parent, "--store", str(store), "--workers", "2", "--no-warm") as running:
        yield running


@pytest.fixture(scope="session")
def address(server: pages.Server) -> str:
    """Return the address of the dashboard."""
    return server.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with pages.run_browser() as running:
        yield running


@pytest.fixture(scope="module")
def context(browser: Any) -> Any:
    """Return a context for the pages of a module: they share the files of the server, compiled once."""
    return pages.new_context(browser)


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """Open a page of a new visitor; check that it needs no other server and writes to no console."""
    context.clear_cookies()
    opened = pages.page_of(context)
    outside: list[str] = []
    lines: list[str] = []
    opened.on("request", lambda call: outside.append(call.url) if "127.0.0.1" not in call.url else None)
    opened.on("console", lambda line: lines.append(line.text))
    opened.on("pageerror", lambda error: lines.append(str(error)))
    yield opened
    opened.close()
    assert not [url for url in outside if url.startswith("http")], "the pages need no other server"
    assert not lines, "the console stays empty"
