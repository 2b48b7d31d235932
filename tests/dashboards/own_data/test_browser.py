"""The page "Your data" in Chromium: files are dropped, cells corrected, the problem solved and saved."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks import browser as pages
from tests.commands import planner

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]

FILES = {
    "network.csv": "Tail;Head;Capacity (Gbit/s);Owner\nParis;Lyon;1,5;x\nLyon;Paris;many;x\n",
    "places.csv": "node,latitude,longitude\nParis,48.85,2.35\nLyon,45.76,4.84\n",
    "matrix of May.csv": "source,target,rate_mbps\nParis,Lyon,1100\n",
}


def edit_cell(page: Any, row: int, share: float, text: str) -> None:
    """Type a text into the cell of a row, from 1, at a share of the editor's width."""
    box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    field = page.locator(".gdg-input")
    while not field.count():  # a click selects the cell, the next one opens it
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + 35 * row + 18)
        page.wait_for_timeout(1500)
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
    page.get_by_role("heading", name="A valid problem of traffic: 2 nodes, 2 links, 1 demand").wait_for()
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
    page.keyboard.type("traffic/abilene")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    pages.wait_for_script(page)
    page.locator("button:enabled", has_text="Edit its tables").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="A valid problem of traffic").wait_for()
    pages.wait_for_script(page)
    page.locator("button:enabled", has_text="Solve").first.focus()
    page.keyboard.press("Enter")
    pages.wait_for_answer(page)
    assert "own+tables" in page.url
