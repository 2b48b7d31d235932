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
    pages.choose(page, "Scenario", "Traffic routing: Abilene, 12 nodes")
    page.get_by_role("button", name="Add an event").wait_for()
    pages.wait_for_script(page)
    windows = page.get_by_role("slider", name="Windows")
    windows.focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_timeout(2000)
    pages.press(page, "Add an event")
    pages.press(page, "Add", exact=True)
    page.get_by_role("button", name="failed from window 2").wait_for()
    pages.press(page, "Run")
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


def test_two_designs_of_a_simulation_are_played_on_one_clock(page: Any, address: str) -> None:
    page.goto(f"{address}/through_time?scenario=multicast/churn_simulation")
    run = page.get_by_role("button", name="Run")
    run.wait_for()
    pages.wait_for_script(page)
    run.click()
    play = page.get_by_role("button", name="Play")
    play.nth(1).wait_for()
    pages.wait_for_script(page)
    assert "of host traffic in the mean" in pages.verdict(page)
    page.get_by_text(": 0 of 300 groups have entries").nth(1).wait_for()
    page.get_by_role("slider", name="Moment").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.get_by_text(": 0 of 300 groups have entries").first.wait_for(state="detached")
    players = page.locator(".player")
    assert [item.get_attribute("data-frame") for item in players.all()] == ["3", "3"]
    assert players.last.locator("output").inner_text() == "6 s"
    play.last.click()
    page.get_by_role("button", name="Pause").wait_for()
    page.locator(".player:not([data-frame='3'])").nth(1).wait_for()
    page.get_by_role("button", name="Pause").click()
    first, second = (item.get_attribute("data-frame") for item in players.all())
    assert first == second
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        pages.wait_for_script(page)
        assert pages.fits(page), f"no part is wider than the page at {width} pixels"
