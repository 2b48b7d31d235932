"""Pictures in Chromium: mouse, touch, keyboard, themes, and nothing but text from names."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import TIME_LIMIT_MS, chromium, run_browser
from benchmarks.common import free_port
from tests.dashboards.pictures.page import MARKUP

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="needs an installed Chromium"),
]

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "dashboards" / "planner_dashboard" / "pictures"
START_LIMIT_S = 60.0
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(Path(__file__).with_name("page.py"))]
    options = ["--server.headless=true", "--browser.gatherUsageStats=false", f"--server.port={port}"]
    folders = [str(ROOT), str(ROOT / "models"), str(ROOT / "dashboards")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    server = subprocess.Popen([*command, *options], env=environment, stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        until = time.monotonic() + START_LIMIT_S
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until, "the server did not start"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with run_browser() as started:
        yield started


@pytest.fixture(scope="module")
def contexts(browser: Any) -> dict[tuple[tuple[str, Any], ...], Any]:
    """Return the contexts by their options: their pages share the files of the server, compiled once."""
    return {}


@pytest.fixture
def open_page(address: str, browser: Any, contexts: dict[tuple[tuple[str, Any], ...], Any]) -> Iterator[Open]:
    """Open a picture in a page of its own; no page may write to the console or ask another server."""
    said: list[str] = []
    asked: list[str] = []
    opened = []

    def open_picture(
        picture: str = "network", *, width: int = 1280, scheme: str = "light", **more: Any
    ) -> Any:
        options = tuple(sorted(more.items()))
        if options not in contexts:
            contexts[options] = browser.new_context(viewport={"width": width, "height": 1000}, **more)
        page = contexts[options].new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": 1000})
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(TIME_LIMIT_MS)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/?picture={picture}")
        page.locator(".picture[data-drawn]").wait_for()
        return page

    yield open_picture
    for page in opened:
        page.close()
    assert said == []
    assert [url for url in asked if not url.startswith((address, "blob:", "data:"))] == []


def place(page: Any, element: str) -> tuple[float, float]:
    """Return where an element is in the window."""
    script = """async element => {
        // a picture is drawn in the next frame
        await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
        const [picture] = globalThis[Symbol.for("planner.pictures")].pictures.values();
        const box = picture.canvas.getBoundingClientRect();
        const [x, y] = picture.where(picture.state.find(element));
        return [box.left + x, box.top + y];
    }"""
    x, y = page.evaluate(script, element)
    return float(x), float(y)


def wait_for_selected(page: Any, kind: str, name: str) -> None:
    page.get_by_text(f"selected: {(kind, name)}", exact=True).wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_click_selects_a_link_and_a_node(open_page: Open, width: int, scheme: str) -> None:
    page = open_page(width=width, scheme=scheme)
    page.mouse.click(*place(page, "Rome - Kyiv"))
    wait_for_selected(page, "link", "Rome - Kyiv")
    page.mouse.click(*place(page, "Rome"))
    wait_for_selected(page, "node", "Rome")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.locator(".frame").evaluate("element => getComputedStyle(element).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")


def test_a_pointer_over_a_link_tells_both_directions(open_page: Open) -> None:
    page = open_page()
    page.mouse.move(*place(page, "Paris - Rome"))
    tip = page.locator(".tip")
    tip.wait_for()
    for words in ("Paris – Rome", "→ Rome", "250 %", "→ Paris", "125 %", "10 Gbit/s", "click to select"):
        assert words in tip.inner_text()


def test_the_keyboard_alone_moves_selects_and_clears(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("application").focus()
    page.keyboard.press("PageDown")
    live = page.locator("[aria-live=polite]")
    assert live.inner_text().startswith("Paris – Rome: to Rome 250 %")
    page.keyboard.press("Enter")
    wait_for_selected(page, "link", "Paris - Rome")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    wait_for_selected(page, "", "")


def test_the_text_alternative_lists_the_elements_by_value(open_page: Open) -> None:
    page = open_page()
    items = page.locator(".unseen li").all_inner_texts()
    assert items[0].startswith("Paris – Rome: to Rome 250 %")
    assert any(item.startswith("Kyiv: lost 1.5 Gbit/s") for item in items)
    label = page.get_by_role("application").get_attribute("aria-label")
    assert "5 nodes and 12 links, by utilization" in label


def test_names_with_markup_are_text(open_page: Open) -> None:
    page = open_page()
    page.mouse.move(*place(page, MARKUP))
    page.locator(".tip").wait_for()
    assert page.locator(".tip b").inner_text() == MARKUP
    assert MARKUP in page.locator(".title").inner_text()
    assert page.locator(".picture img").count() == 0


def test_zoom_stays_when_values_change_and_geometry_is_not_sent_again(open_page: Open) -> None:
    page = open_page()
    sent: list[int] = []
    zoom = "() => [...globalThis[Symbol.for('planner.pictures')].pictures.values()][0].view.scale"
    page.get_by_role("button", name="Zoom in").click()
    before = page.evaluate(zoom)
    client = page.context.new_cdp_session(page)
    client.send("Network.enable")
    client.on(
        "Network.webSocketFrameReceived", lambda event: sent.append(len(event["response"]["payloadData"]))
    )
    page.get_by_text("fail", exact=True).click()
    page.locator(".legend").get_by_text("failed").wait_for()
    assert page.evaluate(zoom) == before
    assert 0 < sum(sent) < 30_000, sent  # the geometry alone is larger


def test_the_wheel_zooms_with_ctrl_or_focus_only(open_page: Open) -> None:
    page = open_page()
    zoom = "() => [...globalThis[Symbol.for('planner.pictures')].pictures.values()][0].view.zoom"
    page.mouse.move(*place(page, MARKUP))
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(200)
    assert page.evaluate(zoom) == 1
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(f"() => ({zoom})() > 1.2")


def test_a_drag_moves_and_selects_nothing(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Zoom in").click()
    before = place(page, "Rome")
    x, y = place(page, "Paris - Rome")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 20, steps=4)
    page.mouse.up()
    assert abs(place(page, "Rome")[0] - before[0] - 60) < 2
    page.wait_for_timeout(300)
    wait_for_selected(page, "", "")


def test_touch_selects_and_two_fingers_zoom(open_page: Open) -> None:
    page = open_page(width=390, has_touch=True, is_mobile=True)
    page.locator("canvas").scroll_into_view_if_needed()
    page.touchscreen.tap(*place(page, "Rome - Kyiv"))
    wait_for_selected(page, "link", "Rome - Kyiv")
    client = page.context.new_cdp_session(page)
    x, y = place(page, MARKUP)

    def touch(kind: str, apart: float) -> None:
        points = [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}] if kind != "touchEnd" else []
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 20)
    for apart in (30, 45, 60):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    zoom = "() => [...globalThis[Symbol.for('planner.pictures')].pictures.values()][0].view.zoom"
    assert page.evaluate(zoom) > 2


def test_a_difference_tells_before_and_after(open_page: Open) -> None:
    page = open_page("difference")
    page.mouse.move(*place(page, "Rome - Kyiv"))
    tip = page.locator(".tip")
    tip.wait_for()
    assert "90 % → 99 %" in tip.inner_text()
    assert "more by over 20 points" in page.locator(".legend").inner_text()
    assert "gone" in page.locator(".legend").inner_text()


def test_a_line_goes_through_a_box_or_past_it(open_page: Open) -> None:
    """Names of nodes stand where the lines of their node do not cross them."""
    paint = (PICTURES / "paint.js").read_text(encoding="utf-8")
    code = paint[paint.index("function crosses(") : paint.index("function overlaps(")]
    box = [10, 10, 20, 20]
    lines = {(0, 15, 30, 15): True, (0, 0, 30, 30): True, (0, 5, 30, 5): False, (12, 30, 12, 25): False}
    page = open_page()
    for line, is_through in lines.items():
        asked = f"() => {{ {code}; return crosses({list(line)}, {box}); }}"
        assert page.evaluate(asked) == is_through


def test_the_player_goes_through_moments(open_page: Open) -> None:
    page = open_page("frames", width=390, scheme="dark")
    player = page.locator(".player")
    slider = page.get_by_role("slider", name="Moment")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "1 s, Max link utilization 275 %"
    page.get_by_role("button", name="Play").click()
    page.locator(".player[data-frame='2']").wait_for()
    page.get_by_text("fails", exact=True).wait_for()
    page.locator(".player[data-frame='3']").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # it ends by itself
    assert "325 %" in player.inner_text()


def test_a_bar_of_a_timeline_is_selected_by_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page("timeline", width=390)
    page.mouse.click(*place(page, "1-2"))
    wait_for_selected(page, "circuit", "1-2")
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for_selected(page, "circuit", "2-3")
