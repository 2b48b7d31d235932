"""The page "Your data" in Chromium: files are dropped, cells corrected, the problem solved and saved."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks import browser as pages
from tests.commands import planner
from tests.own_workbooks import save

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]

CELL_OPENS_MS = 1500
FILES = {
    "network.csv": "Tail;Head;Capacity (Gbit/s);Owner\nParis;Lyon;1,5;x\nLyon;Paris;many;x\n",
    "places.csv": "node,latitude,longitude\nParis,48.85,2.35\nLyon,45.76,4.84\n",
    "matrix of May.csv": "source,target,rate_mbps\nParis,Lyon,1100\n",
}


def edit_cell(page: Any, row: int, share: float, text: str) -> None:
    """Type a text into the cell of a row, from 1, at a share of the editor's width."""
    from playwright.sync_api import TimeoutError as PageTimeoutError

    box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    field = page.locator(".gdg-input")
    while not field.count():  # a click selects the cell, the next one opens it
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + 35 * row + 18)
        with contextlib.suppress(PageTimeoutError):
            field.wait_for(timeout=CELL_OPENS_MS)
    field.fill(text)
    field.press("Enter")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_files_are_recognized_corrected_saved_and_solved(
    page: Any,
    address: str,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    page.emulate_media(color_scheme=scheme)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    pages.open_title(page, address, "Your data")
    page.set_viewport_size({"width": width, "height": 1000})
    page.locator("input[type=file]").set_input_files([str(tmp_path / name) for name in FILES])
    page.get_by_role("heading", name="1 fault to correct").wait_for()
    page.get_by_text("ignored columns 'Owner'").wait_for()
    pages.wait_for_script(page)
    assert pages.fits(page), "no part is wider than the page"
    if width < 1000:
        return
    page.locator("[data-testid=stDataFrame]").first.scroll_into_view_if_needed()
    edit_cell(page, 2, 0.92, "1500")
    sizes = "2 nodes, 2 links, 1 demand"
    page.get_by_role("heading", name=f"A valid problem of Traffic routing: {sizes}").wait_for()
    page.locator("canvas[role=application]").first.wait_for()
    pages.press(page, "Save as a scenario")
    with page.expect_download() as saved:
        pages.press(page, "Download (zip)")
    saved.value.save_as(tmp_path / "saved.zip")
    with zipfile.ZipFile(tmp_path / "saved.zip") as archive:
        archive.extractall(tmp_path)
    result = planner("solve", tmp_path / "my_traffic" / "scenario.toml")
    assert result.code == 0, result.err
    assert "delivers 1.1 of 1.1 Gbit/s" in result.out
    page.keyboard.press("Escape")
    pages.press(page, "Solve", exact=True)
    pages.wait_for_answer(page)
    assert "delivers 1.1 of 1.1 Gbit/s" in pages.verdict(page)


def test_a_scenario_is_edited_and_solved_by_the_keyboard_alone(page: Any, address: str) -> None:
    pages.open_title(page, address, "Your data")
    field = page.get_by_role("combobox", name="Or start from a scenario")
    field.focus()
    page.keyboard.type("Abilene, 12 nodes")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    pages.wait_for_script(page)
    page.locator("button:enabled", has_text="Edit its tables").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="A valid problem of Traffic routing").wait_for()
    pages.wait_for_script(page)
    page.locator("button:enabled", has_text="Solve").first.focus()
    page.keyboard.press("Enter")
    pages.wait_for_answer(page)
    assert "own+tables" in page.url


HOURS = [
    (datetime.datetime(2026, 3, 1, hour), source, target, rate + hour)
    for hour in (8, 9, 10)
    for source, target, rate in (("Paris", "Nice", 1), ("Lyon", "Nice", 2))
]
NETWORK = {
    "Circuits": [("From", "To", "Gbps"), ("Paris", "Lyon", 20), ("Lyon", "Nice", 20), ("Paris", "Nice", 20)],
    "Traffic": [("Time", "From", "To", "Gbps"), *HOURS],
}
TODAY = "name,path,bandwidth_mbps\nt1,Paris > Lyon > Nice,5000\nt2,Lyon > Nice,5000\n"


@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1440, "light", marks=pytest.mark.exhaustive), (390, "dark")]
)
def test_a_window_is_chosen_and_the_plan_of_today_stands_beside_the_designs(
    page: Any, address: str, tmp_path: Path, width: int, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    save(NETWORK, tmp_path / "net.xlsx")
    (tmp_path / "today.csv").write_text(TODAY)
    pages.open_title(page, address, "Your data")
    page.set_viewport_size({"width": width, "height": 1000})
    page.locator("input[type=file]").set_input_files(str(tmp_path / "net.xlsx"))
    page.get_by_role("heading", name="A valid problem of Traffic routing: 3 nodes").wait_for()
    page.get_by_text("have 3 windows, by column 'Time'").wait_for()
    pages.choose(page, "Window", "2026-03-01 09:00")
    page.locator("button", has_text="Demands 2").first.click()
    page.get_by_text("window 2026-03-01 09:00 of 3, by column 'Time'").wait_for()
    pages.wait_for_script(page)
    assert pages.fits(page), "no part is wider than the page"
    pages.press(page, "Add today's plan")
    page.locator("input[type=file]").last.set_input_files(str(tmp_path / "today.csv"))
    page.get_by_text("The plan is named today, and stands beside the designs.").wait_for()
    pages.wait_for_script(page)
    assert pages.fits(page), "no part is wider than the page"
    pages.press(page, "Solve", exact=True)
    pages.wait_for_answer(page)
    page.get_by_text("today").first.wait_for()
    assert pages.fits(page), "no part is wider than the page"


def test_all_windows_are_downloaded_as_a_network_over_time(page: Any, address: str, tmp_path: Path) -> None:
    save(NETWORK, tmp_path / "net.xlsx")
    pages.open_title(page, address, "Your data")
    page.locator("input[type=file]").set_input_files(str(tmp_path / "net.xlsx"))
    page.get_by_role("heading", name="A valid problem of Traffic routing: 3 nodes").wait_for()
    pages.choose(page, "Window", "all windows")
    pages.press(page, "Prepare the scenario of all windows")
    with page.expect_download() as saved:
        pages.press(page, "Download all windows (zip)")
    saved.value.save_as(tmp_path / "all.zip")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        archive.extractall(tmp_path)
    scenario = tmp_path / "my_traffic" / "scenario.toml"
    rolled = planner("roll", scenario, "--designs", "ecmp", "--out", tmp_path / "out")
    assert rolled.code == 0, rolled.err
