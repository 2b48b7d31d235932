"""A stranger's path through the real pages in Chromium: upload, solve, change, cancel, download, restore."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE_MS = 120_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard as its command starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "planner", "dashboard", "--no-browser", "--port", str(port), "--workers", "1"],
        cwd=tmp_path_factory.mktemp("server"),
    )
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
            break
        except OSError:
            assert time.monotonic() < end, "the server did not start"
            assert server.poll() is None, "the server ended"
            time.sleep(0.2)
    yield url
    server.send_signal(signal.SIGINT)
    assert server.wait(30) in (0, -signal.SIGINT)


@pytest.fixture
def page(address: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as run:
        browser = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        made = browser.new_page(base_url=address, viewport={"width": 1280, "height": 1000})
        made.set_default_timeout(PATIENCE_MS)
        outside: list[str] = []
        made.on("request", lambda sent: outside.append(sent.url) if "127.0.0.1" not in sent.url else None)
        yield made
        assert not [url for url in outside if url.startswith("http")], "the pages need no other server"
        browser.close()


def test_own_tables_a_failed_link_and_the_plan_to_take_home(page: Any, tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text(
        "tail,head,capacity_mbps\na,b,10\nb,a,10\na,c,10\nc,a,10\nc,b,10\nb,c,10\n"
    )
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,8\na,c,1\n")
    page.goto("/?scenario=own+tables")
    page.get_by_role("combobox", name="system").last.click()
    page.get_by_role("option", name="traffic").click()
    page.locator("input[type=file]").set_input_files([tmp_path / "links.csv", tmp_path / "demands.csv"])
    page.get_by_role("button", name="Use these tables").click()
    page.get_by_text("3 nodes, 6 links, 2 demands").wait_for()
    assert "upload=" in page.url

    page.get_by_role("combobox", name="fail links").fill("a<->b")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_text("compared to:").wait_for()
    assert "fail_links" in page.url

    page.get_by_role("tab", name="The same elsewhere").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Plans and metrics (zip)").click()
    saved.value.save_as(tmp_path / "planner.zip")
    with zipfile.ZipFile(tmp_path / "planner.zip") as archive:
        run = json.loads(archive.read("optimum/run.json"))
        assert {"links.csv", "demands.csv", "scenario.toml"} <= set(archive.namelist())
    assert run["metrics"]["max_utilization"] == pytest.approx(0.9), "all of it goes by c"


def test_a_long_question_is_cancelled_and_the_page_lives_on(page: Any) -> None:
    page.goto("/?scenario=traffic/world&designs=optimum")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelled").wait_for()
    page.goto("/?scenario=traffic/abilene&designs=ecmp")
    page.get_by_text("answered in").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_address_restores_its_answer(page: Any, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto("/?scenario=traffic/abilene&designs=ecmp&set=problem.scale%3D0.5")
    page.get_by_text("answered in").wait_for()
    page.get_by_role("tab", name="The same elsewhere").click()
    page.get_by_text("planner compare traffic/abilene --designs ecmp --set problem.scale=0.5").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
