"""A new user's path through the real pages in Chromium: upload, solve, change, cancel, download, restore."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dashboard
from planner_dashboard import what_if

LARGE_QUESTION_MS = 300_000
"""Time of an answer on a busy machine, kernels and pictures included; an answer takes about 20 s."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(dashboard.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the dashboard by its command and return its address."""
    with dashboard.run_server(tmp_path_factory.mktemp("server"), "--workers", "1") as server:
        yield server.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with dashboard.run_browser() as running:
        yield running


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Open a page of a new visitor; check that it needs no other server."""
    opened = dashboard.new_page(browser)
    outside: list[str] = []
    opened.on("request", lambda call: outside.append(call.url) if "127.0.0.1" not in call.url else None)
    yield opened
    opened.context.close()
    assert not [url for url in outside if url.startswith("http")], "the pages need no other server"


def test_a_new_user_finds_the_better_design_and_downloads_it(page: Any, address: str, tmp_path: Path) -> None:
    steps: list[str] = []
    dashboard.follow_path(page, address, tmp_path, steps.append)
    assert [step[0] for step in steps] == list("1234567")
    with zipfile.ZipFile(tmp_path / "planner.zip") as archive:
        assert {"nodes.csv", "links.csv", "demands.csv", "scenario.toml"} <= set(archive.namelist())
        runs = {name: json.loads(archive.read(f"{name}/run.json")) for name in ("optimum", "ecmp")}
    assert runs["optimum"]["metrics"]["max_utilization"] == pytest.approx(0.6)
    assert runs["ecmp"]["metrics"]["max_utilization"] == pytest.approx(1.1)


def test_a_cancelled_question_leaves_the_page_usable(page: Any, address: str) -> None:
    page.goto(f"{address}/?scenario=traffic/world&designs=optimum")
    dashboard.solve_address(page)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("cancelled").wait_for()
    page.goto(f"{address}/?scenario=traffic/abilene&designs=ecmp")
    dashboard.solve_address(page)
    page.get_by_text("answered in").wait_for()


def test_a_file_that_is_no_table_is_one_line_and_leaves_the_page_usable(
    page: Any, address: str, tmp_path: Path
) -> None:
    good = dashboard.write_tables(tmp_path)
    (tmp_path / "bad").mkdir()
    bomb, huge = tmp_path / "bad" / "demands.parquet", tmp_path / "bad" / "demands.csv"
    bomb.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with huge.open("wb") as file:
        file.truncate(200 << 20)
    dashboard.open_upload(page, address)
    page.locator("input[type=file]").set_input_files([good[1], bomb])
    page.get_by_role("button", name="Use these tables").click()
    page.get_by_text("demands.parquet: is no Parquet file").wait_for()
    assert page.get_by_test_id("stAlert").count() == 1
    dashboard.open_upload(page, address)
    page.locator("input[type=file]").set_input_files([huge])
    page.get_by_text("must be 50.0MB or smaller").wait_for()
    dashboard.open_upload(page, address)
    page.locator("input[type=file]").set_input_files(good)
    page.get_by_role("button", name="Use these tables").click()
    page.get_by_text("8 nodes, 26 links, 8 demands").wait_for()


def test_a_cell_of_the_design_space_shows_its_mechanism(page: Any, address: str) -> None:
    page.goto(f"{address}/recipes")
    page.get_by_text("Choose a cell").wait_for()
    texts = page.get_by_test_id("stMarkdown").all_inner_texts()
    assert texts[0].startswith("Control planes that decide"), "no text stands above the title"
    dashboard.select_cell(page, 5)
    page.get_by_text("incomplete information, full resources").wait_for()
    # the page shows a mechanism in bold; wait for it, as parts of the page before it may still be there
    bold = page.locator("[data-testid=stMarkdown] strong")
    bold.get_by_text("hierarchical partitioning", exact=True).wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_an_address_restores_its_answer(page: Any, address: str, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/?scenario=traffic/abilene&designs=ecmp&set=problem.scale%3D0.5")
    dashboard.solve_address(page)
    page.get_by_text("answered in").wait_for()
    page.get_by_role("tab", name=what_if.EXPORT).click()
    page.get_by_text("planner compare traffic/abilene --designs ecmp --set problem.scale=0.5").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "no part is wider than the page"
    )


def test_large_questions_one_after_another_are_all_answered(page: Any, address: str) -> None:
    """A question that needs much memory leaves its worker to none of the next ones."""
    for name in ("traffic/world", "brokering/market_33k", "multicast/figure_5a", "traffic/germany50"):
        page.goto(f"{address}/?scenario={name}&set=solver.time_limit_s%3D3")
        dashboard.solve_address(page)
        page.get_by_text("answered in").wait_for(timeout=LARGE_QUESTION_MS)
        assert page.get_by_text("the worker ran out of memory").count() == 0, name
        assert page.get_by_text("no plan found").count() == 0, name
