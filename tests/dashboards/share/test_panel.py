"""Sharing in a browser: files by keyboard, a result that others open, and pages on a telephone."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import browser as pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(pages.chromium() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
]


@pytest.mark.parametrize(
    "is_other_server", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["same", "other"]
)
def test_an_answer_is_saved_kept_and_opened_by_another_visitor(
    page: Any, browser: Any, address: str, store: Path, tmp_path: Path, is_other_server: bool
) -> None:
    page.set_viewport_size({"width": 390, "height": 1000})
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}/?scenario=traffic/abilene&designs=ecmp,optimum&set=problem.scale%3D1.5")
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
    before = {path.name for path in (store / "results").glob("*")}
    pages.press(page, "Keep", exact=True)
    page.get_by_text("Any dashboard with this store opens it").wait_for()
    (number,) = {path.name for path in (store / "results").iterdir()} - before
    assert pages.fits(page)
    with contextlib.ExitStack() as stack:
        if is_other_server:
            options = ("--store", str(store), "--workers", "1", "--no-warm")
            address = stack.enter_context(pages.run_server(tmp_path, *options)).url
        _open_kept(pages.new_page(browser), address, number, verdict)


def _open_kept(visitor: Any, address: str, number: str, verdict: str) -> None:
    """Open a kept answer by its address, and find it on the page of results."""
    visitor.goto(f"{address}/?result={number}")
    visitor.get_by_text(verdict).first.wait_for()
    pages.wait_for_script(visitor)
    visitor.get_by_role("link", name="Results").click()
    pages.press(visitor, "Kept answers", role="tab")
    visitor.get_by_text("Busy <b>day</b>").first.wait_for()
    visitor.get_by_role("link", name="Open").and_(visitor.locator(f'[href$="?result={number}"]')).wait_for()
    visitor.context.close()


def test_pages_of_results_fit_a_telephone(page: Any, address: str) -> None:
    page.set_viewport_size({"width": 390, "height": 1000})
    page.goto(f"{address}/recipes")
    page.get_by_text("of the gain that is proven possible").first.wait_for()
    pages.press(page, "Quality of information", role="tab")
    page.get_by_role("radio", name="Measurement noise").wait_for()
    pages.press(page, "Which mechanism suits me", role="tab")
    link = page.get_by_role("link", name="Open in What if").first
    assert re.search(r"scenario=\w+%2F\w+&designs=\w+", link.get_attribute("href"))
    assert pages.fits(page)
    page.goto(f"{address}/reproduction?target=traffic/figure_1")
    page.get_by_text("published values agree with ours").wait_for()
    page.get_by_role("button", name="Run quickly").wait_for()
    assert pages.fits(page)
