"""The map of own tables in Chromium: a node is placed, a link drawn and set, all undone, solved and saved."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks import browser as pages
from planner.scenarios.scenario import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


def mode(page: Any, name: str) -> None:
    pages.wait_for_script(page)
    page.get_by_text(name, exact=True).first.click()
    pages.wait_for_script(page)


def click_map(page: Any, across: float, down: float) -> None:
    """Click the map at shares of its width and height."""
    canvas = page.locator("canvas[role=application]").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
    pages.wait_for_script(page)


def heading(page: Any, words: str) -> None:
    page.get_by_role("heading", name=f"A valid problem of Traffic routing: {words}").wait_for()


def test_a_network_is_changed_on_its_map_and_by_forms(page: Any, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/?scenario=traffic/abilene&designs=ecmp")
    page.get_by_role("button", name="Solve", exact=True).wait_for()
    pages.press(page, "Change the network")
    heading(page, "12 nodes, 30 links, 132 demands")
    mode(page, "Place nodes")
    click_map(page, 0.5, 0.1)
    heading(page, "13 nodes, 30 links, 132 demands")
    page.get_by_text("Add a link", exact=True).click()
    for field, name in (("From node", "new 1"), ("To node", "CHINng")):
        pages.choose(page, field, name)
    pages.press(page, "Add the link")
    heading(page, "13 nodes, 32 links, 132 demands")
    pages.press(page, "Undo")
    heading(page, "13 nodes, 30 links, 132 demands")
    pages.press(page, "Redo")
    heading(page, "13 nodes, 32 links, 132 demands")
    pages.choose(page, "Node or link", "new 1 – CHINng")
    pages.wait_for_script(page)
    page.get_by_role("spinbutton", name="Capacity [Mbit/s]").first.fill("5000")
    pages.press(page, "Set", exact=True)
    pages.wait_for_script(page)
    page.get_by_text("checking").wait_for(state="detached")
    pages.press(page, "Save as a scenario")
    with page.expect_download() as waiting:
        pages.press(page, "Download (zip)")
    waiting.value.save_as(tmp_path / "saved.zip")
    with zipfile.ZipFile(tmp_path / "saved.zip") as archive:
        archive.extractall(tmp_path)
    problem = load(tmp_path / "my_traffic" / "scenario.toml").make_problem()
    assert "new 1" in problem.nodes["node"].tolist()
    new = problem.links[problem.links["tail"] == "new 1"]
    assert new[["head", "capacity_mbps"]].to_numpy().tolist() == [["CHINng", 5000.0]]
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        pages.wait_for_script(page)
        assert pages.fits(page), f"no part is wider than the page at {width} pixels"
