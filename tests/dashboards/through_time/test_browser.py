"""The page "Through time" in Chromium: an event is added, designs are run and played."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from benchmarks import browser as pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


def test_a_link_fails_in_time_and_two_designs_are_played(page: Any, address: str) -> None:
    pages.open_title(page, address, "Through time")
    pages.choose(page, "Scenario", "traffic/abilene")
    page.get_by_role("button", name="Add an event").wait_for()
    pages.wait_for_script(page)
    windows = page.get_by_role("slider", name="Windows")
    windows.focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_timeout(2000)
    pages.wait_for_script(page)
    page.get_by_role("button", name="Add an event").click()
    pages.wait_for_script(page)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="failed from 2").wait_for()
    pages.wait_for_script(page)
    page.get_by_role("button", name="Run").click()
    page.locator("canvas[role=application]").nth(1).wait_for()
    assert "in the mean of 4 windows" in pages.verdict(page)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        pages.wait_for_script(page)
        assert pages.fits(page), f"no part is wider than the page at {width} pixels"
    page.set_viewport_size({"width": 1440, "height": 900})
    clock = page.get_by_role("slider", name="Window").last
    clock.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Fail links:").wait_for()
