"""The what-if page in Chromium: pictures are clicked, plans compared, by mouse and by keyboard alone."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest

import planner
from benchmarks import browser as pages
from benchmarks import dashboard_stories
from planner.runs import verdict
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import load
from planner_dashboard.session import SLOW_JOB_S

LARGE_QUESTION_MS = 300_000
"""Time of an answer on a busy machine, kernels and pictures included; an answer takes about 20 s."""
SCENARIOS = (
    "traffic/abilene",
    "brokering/own_data",
    "capacity/own_data",
    "rotors/own_data",
    "contracts/own_data",
    "analytics/own_data",
    "fairshare/own_data",
    "topology/own_data",
    "circuits/exact_8",
    "circuitflows/own_data",
    "coflows/own_data",
    "livevideo/session_window",
    "multicast/own_data",
)
OFTEN_TESTED = ("traffic/abilene", "brokering/own_data", "multicast/own_data")
"""Those of SCENARIOS that are not left to the exhaustive tests."""
LONG_STORIES = ("play_backbone", "play_live_video", "play_purchases")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


def open_question(page: Any, address: str, scenario: str, **query: str) -> None:
    page.goto(f"{address}/?{urlencode({'scenario': scenario, **query})}")
    pages.solve_address(page)
    pages.wait_for_answer(page)


@pytest.mark.parametrize(
    "scenario",
    [
        name if name in OFTEN_TESTED else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in SCENARIOS
    ],
)
def test_an_element_of_each_system_is_changed_and_restored(page: Any, address: str, scenario: str) -> None:
    system = find_system(scenario.partition("/")[0])
    kind = next(kind for kind in system.problem.elements if kind.with_role("failure"))
    action = kind.with_role("failure")[0]
    name = kind.names(load(scenario).make_problem())[0]
    open_question(page, address, scenario)
    full = pages.verdict(page)
    pages.select_element(page, name.replace("<->", " – ").replace("->", " → "))
    pages.act(page, action.name)
    assert action.parameter in page.url
    assert pages.verdict(page).startswith("With "), "the verdict names the change"
    pages.act(page, f"Restore ({action.state})")
    assert pages.verdict(page) == full
    assert pages.fits(page)


def test_a_click_on_the_map_selects_what_is_there(page: Any, address: str) -> None:
    open_question(page, address, "traffic/germany50", designs="ecmp")
    pages.wait_for_drawing(page)
    canvas = page.locator("canvas[role=application]").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    # the names of elements follow the pointer: find one by moving over the middle
    for step in range(60):
        page.mouse.move(box["x"] + box["width"] * (0.3 + 0.006 * step), box["y"] + box["height"] * 0.5)
        if page.locator(".tip:visible").count():
            break
    page.mouse.down()
    page.mouse.up()
    page.get_by_role("button", name="Close", exact=True).wait_for()
    page.get_by_role("button", name="Fail", exact=True).first.wait_for()


def test_the_page_is_used_by_the_keyboard_alone(page: Any, address: str) -> None:
    open_question(page, address, "traffic/abilene", designs="ecmp")
    pages.wait_for_script(page)
    page.get_by_role("combobox", name="Find").focus()
    page.keyboard.type("CHINng")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Fail", exact=True).first.wait_for()
    pages.wait_for_script(page)
    page.get_by_role("button", name="Fail", exact=True).first.focus()
    address_before = page.url
    page.keyboard.press("Enter")
    page.wait_for_function("one => location.href != one", arg=address_before)
    pages.wait_for_answer(page)
    assert "fail" in page.url
    pages.wait_for_script(page)
    page.keyboard.press("Control+z")
    page.wait_for_function("one => location.href == one", arg=address_before)
    page.keyboard.press("Control+Shift+Z")
    page.wait_for_function("one => location.href != one", arg=address_before)


def test_two_plans_are_compared_and_pinned(page: Any, address: str) -> None:
    open_question(page, address, "traffic/abilene", designs="ecmp,optimum")
    pages.press(page, "Pin this plan")
    page.get_by_text("Pinned plans").wait_for()
    pages.press(page, "Edit")
    page.get_by_role("textbox", name="Name").fill("today")
    page.keyboard.press("Enter")
    page.get_by_text("today", exact=True).first.wait_for()
    assert "name%3Dtoday" in page.url, "the address keeps the pin"
    pages.choose(page, "Compare with", "Compare with Equal-cost multipath")
    page.get_by_text("What changed").wait_for()
    page.get_by_text("Side by side", exact=True).click()
    page.locator("canvas[role=application]").nth(1).wait_for()
    again = page.url
    page.goto("about:blank")
    page.goto(again)
    pages.wait_for_answer(page)
    page.get_by_text("today", exact=True).first.wait_for()


def test_a_cancelled_question_leaves_the_page_usable(page: Any, address: str) -> None:
    page.goto(f"{address}/?scenario=traffic/world&designs=optimum")
    pages.solve_address(page)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelled").wait_for()
    page.goto(f"{address}/?scenario=traffic/abilene&designs=ecmp")
    pages.solve_address(page)
    page.get_by_text("answered in").wait_for()


def busiest_worker(server: pages.Server) -> int:
    """Return the process below the server that computes most."""

    def used() -> dict[int, float]:
        seconds = {}
        for child in psutil.Process(server.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                seconds[child.pid] = sum(child.cpu_times()[:2])
        return seconds

    before = used()
    time.sleep(1.0)
    after = used()
    return max(after, key=lambda process: after[process] - before.get(process, 0.0))


@pytest.mark.slow(minutes=0.3)
def test_visitors_at_once_get_their_own_answers_also_where_one_cancels_and_a_worker_is_killed(
    browser: Any, server: pages.Server
) -> None:
    first, second, third = visitors = [pages.new_page(browser) for _ in range(3)]
    designs = ("ecmp", "shortest_path")
    large = f"{server.url}/?scenario=traffic/world&designs=optimum"
    addresses = [large, *(f"{server.url}/?scenario=traffic/abilene&designs={name}" for name in designs)]
    for page, address in zip(visitors, addresses, strict=True):
        page.goto(address)
        pages.solve_address(page)
    for page, name in ((second, designs[0]), (third, designs[1])):
        pages.wait_for_answer(page)
        result = planner.compare("traffic/abilene", designs=[name])
        assert pages.verdict(page).startswith(verdict.comparison_sentences(result.titled())[0].text)
    os.kill(busiest_worker(server), signal.SIGKILL)
    first.get_by_text("the worker ran out of memory, or was ended").wait_for()
    assert first.get_by_role("alert").count() == 1
    first.goto(addresses[1])
    pages.solve_address(first)
    pages.wait_for_answer(first)
    assert pages.verdict(first) == pages.verdict(second)
    first.goto(large)
    pages.solve_address(first)
    third.goto(addresses[1])
    pages.solve_address(third)
    first.get_by_role("button", name="Cancel").click()
    first.get_by_text("cancelled").wait_for()
    pages.wait_for_answer(third)
    assert pages.verdict(third) == pages.verdict(second)
    for page in visitors:
        page.context.close()


@pytest.mark.slow(minutes=0.3)
def test_cancel_is_heard_at_any_time(page: Any, address: str) -> None:
    """Also while the page changes to fewer looks at a job that takes long."""
    page.goto(f"{address}/?scenario=traffic/world&designs=optimum")
    pages.solve_address(page)
    button = page.get_by_role("button", name="Cancel")
    button.wait_for()
    page.wait_for_timeout(SLOW_JOB_S * 1000 - 100)
    button.click()
    page.get_by_text("cancelled").wait_for()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "dark"),
        (390, "light"),
        *(
            pytest.param(width, scheme, marks=pytest.mark.exhaustive)
            for width, scheme in ((1440, "light"), (1440, "dark"), (1280, "light"), (390, "dark"))
        ),
    ],
)
def test_an_address_restores_its_answer(page: Any, address: str, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    open_question(page, address, "traffic/abilene", designs="ecmp", set="problem.scale=0.5")
    pages.press(page, "Share", role="tab")
    page.get_by_text("planner compare traffic/abilene --designs ecmp --set problem.scale=0.5").wait_for()
    assert pages.fits(page), "no part is wider than the page"


@pytest.mark.exhaustive
def test_large_questions_one_after_another_are_all_answered(page: Any, address: str) -> None:
    """A question that needs much memory leaves its worker to none of the next ones."""
    page.set_default_timeout(LARGE_QUESTION_MS)
    for name in ("traffic/world", "brokering/market_33k", "multicast/figure_5a", "traffic/germany50"):
        open_question(page, address, name, set="solver.time_limit_s=3")
        assert page.get_by_text("the worker ran out of memory").count() == 0, name
        assert page.get_by_text("no plan found").count() == 0, name


@pytest.mark.parametrize(
    "views_per_step", [1, pytest.param(len(pages.VIEWS), marks=pytest.mark.exhaustive)], ids="{} views".format
)
@pytest.mark.parametrize(
    "story",
    [
        pytest.param(
            story,
            id=story.__name__,
            marks=[pytest.mark.exhaustive] if story.__name__ in LONG_STORIES else [],
        )
        for story in dashboard_stories.STORIES
    ],
)
def test_a_story_is_played_from_start_to_end(
    page: Any,
    address: str,
    tmp_path: Path,
    story: Callable[[Any, str, dashboard_stories.Report], None],
    views_per_step: int,
) -> None:
    """One view of each step takes turns, so that all stories together have each; or all views of each."""
    steps: list[str] = []
    first = dashboard_stories.STORIES.index(story)
    turns = itertools.cycle([*pages.VIEWS[first % 4 :], *pages.VIEWS[: first % 4]])

    def report(step: str) -> None:
        views = list(itertools.islice(turns, views_per_step))
        for view, does_fit in pages.save_views(page, tmp_path, step, views):
            assert does_fit, f"{step}: a part is wider than the page, at {view}"
        steps.append(step)

    story(page, address, report)
    assert len(steps) >= 3


@pytest.mark.parametrize("name", ["", "own_data", "through_time", "recipes", "sweeps", "reproduction"])
def test_the_address_of_each_page_opens_it(page: Any, address: str, name: str) -> None:
    """The fixture checks that the console stays empty, also where a page is opened by its own address."""
    page.goto(f"{address}/{name}")
    page.locator("h1, h2").first.wait_for()
    pages.wait_for_script(page)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert pages.fits(page), f"no part is wider than the page at {width} pixels"
