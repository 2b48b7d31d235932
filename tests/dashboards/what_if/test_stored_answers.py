"""Reloads, bookmarks and links in browsers: stored answers open without solving, and private ones do not."""

from __future__ import annotations

import importlib.util
from typing import Any
from urllib.parse import urlencode

import pytest

from benchmarks import browser as pages

QUERY = {"scenario": "traffic/abilene", "designs": "ecmp", "set": "problem.scale=1.5"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


def test_an_address_opens_the_stored_answer(
    browser: Any, page: Any, address: str, server: pages.Server
) -> None:
    link = f"{address}/?{urlencode(QUERY)}"
    page.goto(link)
    pages.solve_address(page)
    pages.wait_for_answer(page)
    answer = pages.verdict(page)
    assert "stored answer of" not in page.inner_text("body")

    def open_again(visitor: Any) -> None:
        visitor.goto("about:blank")
        pages.wait_until_warm(server, idle_s=1.0)
        _, before = server.seconds()
        visitor.goto(link)
        visitor.get_by_text("stored answer of").wait_for()
        assert pages.verdict(visitor) == answer
        assert not visitor.get_by_role("button", name="Solve", exact=True).count()
        assert server.seconds()[1] - before < 0.5, "no worker solves anything"

    open_again(page)
    stranger = pages.new_page(browser)
    stranger.goto(link)
    stranger.get_by_role("button", name="Solve", exact=True).wait_for()
    assert not stranger.locator(".planner-verdict").count(), "the answer is private"

    pages.press(page, "Share", role="tab")
    page.get_by_text("Private: this browser").wait_for()
    pages.press(page, "Share the answer")
    page.get_by_text("Shared: everybody").wait_for()
    open_again(stranger)
    pages.press(stranger, "Share", role="tab")
    stranger.get_by_text("This answer is shared").wait_for()
    assert not stranger.get_by_role("button", name="Stop sharing").count()

    pages.press(page, "Solve again")
    page.get_by_text("stored answer of").wait_for(state="detached")
    pages.wait_for_answer(page)
    assert pages.verdict(page) == answer
    stranger.context.close()


def test_the_first_page_opens_its_answer_again(page: Any, address: str) -> None:
    page.goto(address)
    pages.wait_for_answer(page)
    page.reload()
    page.get_by_text("stored answer of").wait_for()
    pages.wait_for_answer(page)
