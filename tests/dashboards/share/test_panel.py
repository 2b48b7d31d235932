"""Sharing in a browser: files by keyboard, a result that another server opens, and pages on a telephone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import browser as pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with pages.run_browser() as running:
        yield running


def test_an_answer_is_saved_kept_and_opened_by_another_server(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    options = ("--store", str(store), "--workers", "1")
    with pages.run_server(tmp_path, *options) as item, pages.run_server(tmp_path, *options) as other:
        page = pages.new_page(browser, width=390, scheme="dark")
        asked: list[str] = []
        lines: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: lines.append(message.text))
        page.goto(f"{item.url}/?scenario=traffic/abilene&designs=ecmp,optimum&set=problem.scale%3D1.5")
        pages.solve_address(page)
        pages.wait_for_answer(page)
        verdict = page.get_by_text("Optimal routing delivers").first.inner_text()
        pages.press(page, "Share", role="tab")
        page.get_by_role("button", name="PDF", exact=True).press("Enter")
        save = page.get_by_role("button", name="Save PDF")
        save.wait_for()
        with page.expect_download() as saved:
            save.press("Enter")
        assert Path(saved.value.path()).read_bytes().startswith(b"%PDF-")
        page.get_by_label("Name").fill("Busy <b>day</b>")
        pages.press(page, "Keep", exact=True)
        page.get_by_text("Any dashboard with this store opens it").wait_for()
        (number,) = [path.name for path in (store / "results").iterdir()]
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert not lines
        assert not [url for url in asked if not url.startswith((item.url, "data:", "blob:"))]

        page = pages.new_page(browser)
        page.goto(f"{other.url}/?result={number}")
        page.get_by_text(verdict).first.wait_for()

        page = pages.new_page(browser)
        page.goto(other.url)
        page.get_by_role("link", name="Results").click()
        pages.press(page, "Kept answers", role="tab")
        page.get_by_text("Busy <b>day</b>").wait_for()
        link = page.get_by_role("link", name="Open").get_attribute("href")
        assert re.search(rf"\?result={number}$", link)


def test_pages_of_results_fit_a_telephone(browser: Any, tmp_path: Path) -> None:
    with pages.run_server(tmp_path, "--workers", "1") as server:
        width = 390
        page = pages.new_page(browser, width=width)
        page.goto(f"{server.url}/recipes")
        page.get_by_text("of the gain that is proven possible").first.wait_for()
        pages.press(page, "Quality of information", role="tab")
        page.get_by_role("radio", name="Measurement noise").wait_for()
        pages.press(page, "Which mechanism suits me", role="tab")
        link = page.get_by_role("link", name="Open in What if").first
        assert re.search(r"scenario=\w+%2F\w+&designs=\w+", link.get_attribute("href"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{server.url}/reproduction?target=traffic/figure_1")
        page.get_by_text("published values agree with ours").wait_for()
        page.get_by_role("button", name="Run quickly").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
