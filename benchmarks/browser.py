"""The dashboard in a browser: a server of its own, pages of new visitors, and when an answer is shown.

Used by the benchmark of the dashboard, its tests, and the pictures of the documentation.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.common import free_port

TIME_LIMIT_MS: Final = 300_000
START_LIMIT_S: Final = 120.0
END_LIMIT_S: Final = 60.0
IDLE_S: Final = 3.0
IDLE_WORK: Final = 0.03
"""Processor time over time below which a server is idle."""
ANSWERED: Final = """() => {
    const text = document.body.innerText;
    const answered = document.querySelector('.planner-verdict')?.dataset.question;
    const keys = ['scenario', 'upload', 'designs', 'set'];
    const asked = [...new URLSearchParams(location.search)].filter(([key]) => keys.includes(key))
        .map(([key, value]) => `${key}=${value}`).sort().join('\\n');
    return (answered === undefined || answered === asked)
        && text.includes('answered in') && !text.includes('for the previous settings')
        && !text.includes('solving,') && !text.includes('waiting for a free worker,');
}"""
"""Script: true when a page shows the answer for the settings of its forms."""
POLL_MS: Final = 50
"""Time between two looks at a page; Playwright would look at each frame, and so let the page draw frames."""
IDLE_SCRIPT_MS: Final = 300
IDLE_SCRIPT: Final = """shortest => {
    const app = document.querySelector('[data-testid="stApp"]');
    if (app?.dataset.testScriptState !== 'notRunning') {
        delete window.scriptEnded;
        return false;
    }
    window.scriptEnded ??= performance.now();
    return performance.now() - window.scriptEnded >= shortest;
}"""
"""Script: true when the script of a page has not run for a number of milliseconds."""
WIDTHS: Final = (1440, 390)
SCHEMES: Final = ("light", "dark")
"""Views of a page: on a desk and on a phone, light and dark."""
VIEWS: Final = tuple(itertools.product(WIDTHS, SCHEMES))
BY_PROCESSOR: Final = ("--disable-gpu", "--disable-gpu-rasterization")
"""Options of Chromium: pages are painted without a process for graphics, and there is no WebGL."""
BY_SOFTWARE_GL: Final = ("--use-gl=angle", "--use-angle=swiftshader")
"""Options of Chromium: a graphics processor is imitated, with WebGL; the slowest case."""
ATTEMPTS: Final = 20
"""Times that a text is typed before a choice counts as missing."""


def chromium() -> str | None:
    """Return the path of the installed browser; None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass(frozen=True)
class Server:
    """A running server of the dashboard."""

    url: str
    process: subprocess.Popen[bytes]
    since: float

    def seconds(self) -> tuple[float, float]:
        """Return the processor time of the server and that of its workers."""
        server = psutil.Process(self.process.pid)
        return _seconds([server]), _seconds(server.children(recursive=True))

    def bytes(self) -> int:
        """Return the memory of the server and its workers; shared memory is counted once."""
        server = psutil.Process(self.process.pid)
        total = 0
        for process in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
        return total


def wait_until_warm(server: Server, idle_s: float = IDLE_S) -> None:
    """Wait until the server has compiled or loaded its kernels: until it has had no work for a while."""
    while True:
        before = sum(server.seconds())
        time.sleep(idle_s)
        if sum(server.seconds()) - before < IDLE_WORK * idle_s:
            return


def _seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])  # user and system
    return total


@contextlib.contextmanager
def run_server(folder: Path, *options: str, python: str = sys.executable) -> Iterator[Server]:
    """Run `planner dashboard` for a block, which begins when the server answers.

    Answers are stored in `folder`, so that no earlier server has any.

    python  of the environment that planner is installed in
    """
    port = free_port()
    since = time.perf_counter()
    process = subprocess.Popen(
        [python, "-m", "planner", "dashboard", "--no-browser", "--port", str(port), *options],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder.resolve() / "cache")},
        stdout=subprocess.DEVNULL,
    )
    server = Server(f"http://127.0.0.1:{port}", process, since)
    try:
        while True:
            try:
                urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=1).close()
                break
            except OSError:
                assert time.perf_counter() < since + START_LIMIT_S, "the server did not start"
                assert process.poll() is None, "the server ended"
                time.sleep(0.02)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(END_LIMIT_S)


@contextlib.contextmanager
def run_browser(options: Sequence[str] = BY_PROCESSOR) -> Iterator[Any]:
    """Run a headless browser for a block.

    options  BY_PROCESSOR, or BY_SOFTWARE_GL for charts in WebGL
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as run:
        browser = run.chromium.launch(executable_path=chromium(), args=["--no-sandbox", *options])
        yield browser
        browser.close()


def new_context(browser: Any, *, width: int = 1280, height: int = 1000, scheme: str = "light") -> Any:
    """Return the context of a new visitor, without animations, which would be drawn by the processor."""
    return browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        accept_downloads=True,
        reduced_motion="reduce",
    )


def new_page(browser: Any, *, width: int = 1280, height: int = 1000, scheme: str = "light") -> Any:
    """Return a page of a new visitor; its context is closed with `page.context.close()`."""
    return page_of(new_context(browser, width=width, height=height, scheme=scheme))


def page_of(context: Any) -> Any:
    """Return a new page of a context, with the time limit of all pages."""
    page = context.new_page()
    page.set_default_timeout(TIME_LIMIT_MS)
    return page


def solve_address(page: Any) -> None:
    """Click the button that solves the question of an address."""
    page.get_by_role("button", name="Solve", exact=True).click()


def open_title(page: Any, address: str, title: str) -> None:
    """Open a page by the navigation, beside a question that is not asked."""
    page.goto(f"{address}/?scenario=traffic/abilene")
    page.get_by_role("link", name=title).click()
    page.get_by_role("heading", name=title).wait_for()
    wait_for_script(page)


def fits(page: Any) -> bool:
    """Return whether no part is wider than the page."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def wait_for_answer(page: Any) -> None:
    """Wait until the page shows the answer for its settings."""
    page.wait_for_function(ANSWERED, polling=POLL_MS)


def wait_for_script(page: Any) -> None:
    """Wait until the page's script has ended and does not start again for a while.

    Streamlit may lose events of a page whose script starts, as it does shortly after a change.
    """
    page.evaluate("delete window.scriptEnded")
    page.wait_for_function(IDLE_SCRIPT, arg=IDLE_SCRIPT_MS, polling=POLL_MS)


def press(page: Any, button: str, *, exact: bool = False, role: str = "button") -> None:
    """Click the last button of a name, or the last of another role, once the page's script has ended."""
    wait_for_script(page)
    page.get_by_role(role, name=button, exact=exact).last.click()


# --- a network of a user ------------------------------------------------------------------

CITIES: Final = {
    "Lisbon": (38.7, -9.1), "Madrid": (40.4, -3.7), "Paris": (48.9, 2.4), "London": (51.5, -0.1),
    "Frankfurt": (50.1, 8.7), "Milan": (45.5, 9.2), "Vienna": (48.2, 16.4), "Warsaw": (52.2, 21.0),
}  # fmt: skip
LINKS: Final = (
    "Lisbon Madrid 10", "Madrid Paris 10", "Lisbon London 5", "London Paris 20", "Paris Frankfurt 20",
    "London Frankfurt 10", "Paris Milan 10", "Frankfurt Milan 10", "Frankfurt Vienna 10", "Milan Vienna 5",
    "Vienna Warsaw 5", "Frankfurt Warsaw 10", "Madrid Milan 5",
)  # fmt: skip
DEMANDS: Final = (
    "Lisbon Frankfurt 4", "Madrid Warsaw 3", "Paris Vienna 4", "London Milan 4", "Frankfurt Madrid 3",
    "Milan London 3", "Warsaw Paris 3", "Vienna London 2",
)  # fmt: skip


def write_tables(folder: Path) -> list[Path]:
    """Write a user's network as CSV files and return their paths."""
    nodes = ["node,latitude,longitude", *(f"{name},{lat},{lon}" for name, (lat, lon) in CITIES.items())]
    links = ["tail,head,capacity_mbps"]
    for line in LINKS:
        tail, head, gbps = line.split()
        links += [f"{tail},{head},{gbps}000", f"{head},{tail},{gbps}000"]
    demands = ["source,target,rate_mbps", *(line.replace(" ", ",") + "000" for line in DEMANDS)]
    paths = []
    for name, lines in (("nodes", nodes), ("links", links), ("demands", demands)):
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


# --- what a user does ---------------------------------------------------------------------


def choose(page: Any, field: str, text: str, *, index: int = 0) -> None:
    """Choose the entry with the beginning of a text in a field of choices, by the keyboard.

    Types the text again where the page was drawn anew meanwhile, which closes the list of choices.
    """
    from playwright.sync_api import TimeoutError as PageTimeoutError

    box = page.get_by_role("combobox", name=field).nth(index)
    option = page.get_by_role("option").filter(has_text=text).first
    for attempt in range(ATTEMPTS):
        wait_for_script(page)
        box.click()
        box.fill(text)
        try:
            option.wait_for(timeout=TIME_LIMIT_MS / ATTEMPTS)
            break
        except PageTimeoutError:
            if attempt == ATTEMPTS - 1:
                raise
            page.keyboard.press("Escape")
    page.keyboard.press("Enter")


def select_element(page: Any, text: str) -> None:
    """Select an element of the problem by its name, and wait for its panel."""
    choose(page, "Find", text)
    page.get_by_role("button", name="Close", exact=True).wait_for()


def act(page: Any, name: str) -> None:
    """Click an action of the selected element, and wait for the new answer."""
    address = page.url
    page.get_by_role("button", name=name, exact=True).first.click()
    page.wait_for_function("address => location.href != address", arg=address)
    wait_for_answer(page)


def verdict(page: Any) -> str:
    """Return the verdict that the page shows; during a rerun, the former one may stand below the new one."""
    return str(page.locator(".planner-verdict").first.inner_text())


def wait_for_drawing(page: Any) -> None:
    """Wait until the page shows its tables and charts."""
    # parts below the visible one may wait until they are scrolled to
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stSkeleton]')].every(
            one => one.getBoundingClientRect().top > window.innerHeight)""",
        polling=POLL_MS,
    )
    page.wait_for_timeout(1000)


def save_views(
    page: Any, folder: Path, name: str, views: Sequence[tuple[int, str]] = VIEWS
) -> Iterator[tuple[str, bool]]:
    """Save a page in views of a width and a colour scheme; yield each view and whether the page fits it."""
    size = page.viewport_size
    for width, scheme in views:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": size["height"]})
        wait_for_script(page)
        page.screenshot(path=folder / f"{name} {width} {scheme}.png")
        yield f"{width} pixels, {scheme}", fits(page)
    page.emulate_media(color_scheme=SCHEMES[0])
    page.set_viewport_size(size)
    wait_for_script(page)


def save_picture(page: Any, path: Path) -> None:
    """Save a picture of the whole page, also of parts below the visible one."""
    size = page.viewport_size
    tall = page.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-testid=stMain], body')].map(e => e.scrollHeight))"
    )
    page.set_viewport_size({"width": size["width"], "height": min(3000, max(size["height"], tall))})
    wait_for_drawing(page)
    page.screenshot(path=path)
    page.set_viewport_size(size)
