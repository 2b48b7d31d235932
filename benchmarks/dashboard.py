"""Response times of the dashboard.

python -m benchmarks.dashboard [--quick]          response times; each answer is checked
python -m benchmarks.dashboard --beside PYTHON    beside those of another version, installed for that Python

The installed Chromium runs the real pages. Times are wall seconds until the user sees the answer. The
processor time of the server and its workers is printed beside them: it is more reliable on a busy machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import planner
from benchmarks.browser import (
    BY_SOFTWARE_GL,
    Server,
    act,
    chromium,
    new_page,
    press,
    run_browser,
    run_server,
    select_element,
    solve_address,
    verdict,
    wait_for_answer,
    wait_for_drawing,
    wait_for_script,
    wait_until_warm,
)
from benchmarks.common import machine, parser_of
from benchmarks.sweeps import fill_store

FIRST_ANSWER_S: Final = 3.0
WHAT_IF_S: Final = 1.0
"""Time of an answer at the server."""
STORED_S: Final = 1.0
"""Processor time of the server for the stored answer of a shared link."""
UPGRADES_S: Final = 10.0
"""Processor time of a worker for the list of upgrades that repairs a failed link of germany50."""
CPU_FACTOR: Final = 2.0
"""Processor time of server and workers for an answer, over that of `planner.compare`."""
MAX_MEMORY_GIB: Final = 6.0
LINES: Final = (
    "Koblenz<->Koeln",
    "Hamburg<->Hannover",
    "Erfurt<->Wuerzburg",
    "Aachen<->Trier",
    "Berlin<->Dresden",
)
"""Links of germany50 that fail one after another."""


def print_times(
    activity: str,
    walls: list[float],
    taken: list[float],
    limit_s: float | None = None,
    *,
    is_of_processor: bool = False,
) -> None:
    """Print median and worst wall seconds, processor seconds, the load, and whether a limit is kept.

    is_of_processor  the limit is one of processor seconds, which other processes hardly change
    """
    median = statistics.median(walls)
    judged = statistics.median(taken) if is_of_processor else median
    verdict = "" if limit_s is None else f"   {'within' if judged <= limit_s else 'OVER'} {limit_s:g} s"
    line = f"  {activity:<58} {median:6.2f} s, worst {max(walls):6.2f} s"
    print(
        f"{line}, processor {statistics.median(taken):5.2f} s, load {os.getloadavg()[0]:.1f}{verdict}",
        flush=True,
    )


def compare(changes: Mapping[str, Any]) -> tuple[str, float, float]:
    """Return the verdict on germany50 without the dashboard, and its wall and processor seconds."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    result = planner.compare("traffic/germany50", changes=changes)
    after = resource.getrusage(resource.RUSAGE_SELF)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result.verdict, time.perf_counter() - start, taken


# --- first answers ------------------------------------------------------------------------


def time_first_page(folder: Path, times: int, python: str, name: str) -> None:
    """Time the answer of the first page since the start of a new server, and that of a warm server."""
    cold: tuple[list[float], list[float]] = ([], [])
    warm: tuple[list[float], list[float]] = ([], [])
    with run_browser(BY_SOFTWARE_GL) as browser:
        for _ in range(times):
            with run_server(folder, "--workers", "2", python=python) as server:
                for walls, taken in (cold, warm):
                    if walls is warm[0]:
                        wait_until_warm(server)
                    page = new_page(browser)
                    start, before = time.perf_counter(), sum(server.seconds())
                    page.goto(server.url, wait_until="commit")
                    wait_for_answer(page)
                    walls.append(time.perf_counter() - (server.since if walls is cold[0] else start))
                    taken.append(sum(server.seconds()) - before)
                    assert "50 nodes, 176 links" in page.inner_text("body")
                    page.context.close()
    print_times(f"{name}: first answer since the server's start", *cold)
    print_times(f"{name}: first answer of a warm server", *warm, FIRST_ANSWER_S)


def time_addresses(server: Server, browser: Any, times: int, name: str) -> None:
    """Time questions of addresses about germany50 with three designs, from the click until the answer."""
    walls, taken = [], []
    for index in range(times):
        page = new_page(browser)
        query = urlencode(
            {"scenario": "traffic/germany50", "set": f"problem.scale={1.05 + 0.05 * index:.2f}"}
        )
        page.goto(f"{server.url}/?{query}")
        page.get_by_role("button", name="Solve", exact=True).wait_for()
        page.wait_for_timeout(1000)
        start, before = time.perf_counter(), sum(server.seconds())
        solve_address(page)
        wait_for_answer(page)
        walls.append(time.perf_counter() - start)
        taken.append(sum(server.seconds()) - before)
        page.context.close()
    print_times(f"{name}: a question about germany50, until the answer is drawn", walls, taken)


# --- what if ------------------------------------------------------------------------------


def without_name(says: str) -> str:
    """Return a verdict without the name of its design, for which pages have a title."""
    return "delivers" + says.partition(" delivers")[2]


def time_what_if(server: Server, browser: Any, times: int) -> None:
    """Time the failure of a link of germany50 from the click until the verdict; check the verdict."""
    page = new_page(browser)
    page.goto(server.url)
    wait_for_answer(page)
    walls, taken, at_server, alone_s, alone_taken = [], [], [], [], []
    failed: list[str] = []
    for link in LINES[:times]:
        failed.append(link)
        says, wall, own_s = compare({"problem.fail_links": tuple(failed)})
        alone_s.append(wall)
        alone_taken.append(own_s)
        select_element(page, link.replace("<->", " – "))
        page.wait_for_timeout(3000)  # the panel's own report is read
        start, before = time.perf_counter(), sum(server.seconds())
        act(page, "Fail")
        walls.append(time.perf_counter() - start)
        taken.append(sum(server.seconds()) - before)
        shown = page.locator("body").inner_text()
        at_server.append(float(shown.partition("answered in ")[2].partition(" s")[0]))
        first = without_name(says).partition(" It ")[0]
        assert first in verdict(page), f"{first} is not in {verdict(page)}"
        page.wait_for_timeout(1000)
    print_times("a link of germany50 fails, by a click, until it is drawn", walls, taken)
    print_times("the same at the server", at_server, taken, WHAT_IF_S)
    print_times("the same by planner.compare", alone_s, alone_taken)
    ratio = statistics.median(taken) / statistics.median(alone_taken)
    word = "within" if ratio <= CPU_FACTOR else "OVER"
    print(f"  processor time over that of planner.compare: {ratio:.2f}   {word} {CPU_FACTOR:g}")
    page.context.close()


def time_shared_link(server: Server, browser: Any, times: int) -> None:
    """Time the stored answer of a shared link in a new browser, until the picture is there."""
    link = f"{server.url}/?{urlencode({'scenario': 'traffic/germany50', 'set': 'problem.scale=1.11'})}"
    page = new_page(browser)
    page.goto(link)
    solve_address(page)
    wait_for_answer(page)
    press(page, "Share", role="tab")
    press(page, "Share the answer")
    page.get_by_text("Shared: everybody").wait_for()
    answer = verdict(page)
    page.context.close()
    walls, taken = [], []
    for _ in range(times):
        visitor = new_page(browser)
        start, before = time.perf_counter(), sum(server.seconds())
        visitor.goto(link, wait_until="commit")
        wait_for_answer(visitor)
        walls.append(time.perf_counter() - start)
        taken.append(sum(server.seconds()) - before)
        assert verdict(visitor) == answer
        visitor.context.close()
    print_times("a shared link opens its stored answer", walls, taken, STORED_S, is_of_processor=True)


def time_upgrades(server: Server, browser: Any) -> None:
    """Time the upgrades that repair a failed link of germany50, and the cheapest set, until each is shown."""
    page = new_page(browser)
    query = {"scenario": "traffic/germany50", "set": f'problem.fail_links=["{LINES[0]}"]'}
    page.goto(f"{server.url}/?{urlencode(query)}")
    solve_address(page)
    wait_for_answer(page)
    for button, result, limit_s in (
        ("Find upgrades", "Find the cheapest set", UPGRADES_S),
        ("Find the cheapest set", "Apply the cheapest set", None),
    ):
        wait_for_script(page)
        start, before = time.perf_counter(), sum(server.seconds())
        press(page, button)
        page.get_by_role("button", name=result).wait_for()
        wall, seconds = time.perf_counter() - start, sum(server.seconds()) - before
        print_times(f"{button.lower()} after a failure", [wall], [seconds], limit_s, is_of_processor=True)
    page.context.close()


# --- many points, many visitors -----------------------------------------------------------


def time_points(server: Server, browser: Any, count: int) -> None:
    """Time a chart of many points until it is drawn, zoomed and pointed at."""
    page = new_page(browser)
    page.goto(f"{server.url}/sweeps")
    page.get_by_text(f"{count:,} of {count:,} runs").wait_for()
    before, start = sum(server.seconds()), time.perf_counter()
    page.get_by_role("tab", name="Trade-off").click()
    page.wait_for_function(
        """count => [...document.querySelectorAll('.js-plotly-plot')].some(gd => gd._fullData && gd.calcdata
            && gd._fullData.reduce((sum, trace) => sum + (trace.x ? trace.x.length : 0), 0) == count)""",
        arg=count,
    )
    print_times(
        f"{count:,} points: until drawn", [time.perf_counter() - start], [sum(server.seconds()) - before]
    )
    wait_for_drawing(page)
    page.evaluate("""() => {
        const gd = [...document.querySelectorAll('.js-plotly-plot')].at(-1);
        window.plots = 0; window.points = 0;
        gd.on('plotly_relayout', () => { window.plots += 1; });
        gd.on('plotly_hover', () => { window.points += 1; });
        gd.scrollIntoView();
    }""")
    box = page.locator(".js-plotly-plot .nsewdrag").last.bounding_box()
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    walls = []
    for move in range(5):
        start = time.perf_counter()
        page.mouse.move(across + move, down + 5 * move)
        page.mouse.move(across + move + 1, down + 5 * move)
        page.wait_for_function("move => window.points > move", arg=move)
        walls.append(time.perf_counter() - start)
    print_times(f"{count:,} points: until a point is named", walls, [0.0])
    walls = []
    for zoom in range(3):
        page.mouse.move(across - 100, down - 80)
        page.mouse.down()
        page.mouse.move(across + 100, down + 80, steps=3)
        start = time.perf_counter()
        page.mouse.up()
        page.wait_for_function("zoom => window.plots > zoom", arg=zoom)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        walls.append(time.perf_counter() - start)
    print_times(f"{count:,} points: until zoomed", walls, [0.0])
    page.context.close()


def time_sessions(server: Server, browser: Any, count: int) -> None:
    """Check that simultaneous visitors each get their own answer; measure times and memory."""
    scales = [0.5 + 0.1 * index for index in range(count)]
    scenarios = [("traffic/abilene", "traffic/germany50")[index % 2] for index in range(count)]
    start, largest = time.perf_counter(), 0
    pages = [new_page(browser) for _ in scales]
    for page, scale, scenario in zip(pages, scales, scenarios, strict=True):
        query = urlencode(
            {"scenario": scenario, "designs": "ecmp,optimum", "set": f"problem.scale={scale:.1f}"}
        )
        page.goto(f"{server.url}/?{query}", wait_until="commit")
    for page in pages:
        solve_address(page)
    for page in pages:
        wait_for_answer(page)
        largest = max(largest, server.bytes())
    wall = time.perf_counter() - start
    for page, scale, scenario in zip(pages, scales, scenarios, strict=True):
        alone = planner.compare(
            scenario, designs=["ecmp", "optimum"], changes={"problem.scale": round(scale, 1)}
        )
        page.bring_to_front()
        first = without_name(alone.verdict).partition(" It ")[0].partition(". ")[0].rstrip(".")
        assert first in verdict(page), scenario
    gib = largest / 2**30
    assert gib < MAX_MEMORY_GIB, f"{gib:.1f} GiB"
    print(f"  {count} sessions at once: each has its own answer after {wall:.1f} s")
    print(f"  memory of server and workers at most {gib:.2f} GiB   within {MAX_MEMORY_GIB:g} GiB")
    for page in pages:
        page.context.close()


def main() -> None:
    """Measure times."""
    parser = parser_of(__doc__, "fewer repetitions, sessions and points")
    parser.add_argument("--beside", metavar="PYTHON", help="Python of another version's environment")
    arguments = parser.parse_args()
    if chromium() is None:
        raise SystemExit("no Chromium is installed")
    times, count, visitors = (1, 20_000, 3) if arguments.quick else (3, 100_000, 10)
    print(f"{machine()}; median of {times}")
    versions = {"now": sys.executable} | ({"the other version": arguments.beside} if arguments.beside else {})
    with tempfile.TemporaryDirectory() as spare, contextlib.ExitStack() as stack:
        home = Path(spare)
        for name, python in versions.items():
            time_first_page(home, times, python, name)
        browser = stack.enter_context(run_browser(BY_SOFTWARE_GL))
        for name, python in versions.items():
            with run_server(home, "--workers", "2", python=python) as server:
                wait_until_warm(server)
                time_addresses(server, browser, 2 * times, name)
        fill_store(home / "results", count)
        with run_server(home, "--store", "results", "--workers", "2") as server:
            wait_until_warm(server)
            time_what_if(server, browser, min(2 * times, len(LINES)))
            time_shared_link(server, browser, times)
            time_upgrades(server, browser)
            time_points(server, browser, count)
            time_sessions(server, browser, visitors)
    print(machine())


if __name__ == "__main__":
    main()
