"""How fast the dashboard answers, and what a stranger sees of it.

python -m benchmarks.dashboard [--quick]          times, each with its answer checked
python -m benchmarks.dashboard --pictures FOLDER  the stranger's path, wide and narrow, light and dark

Drives the Chromium that is there through the real pages. Times are wall seconds as a user has them;
beside them stands the processor time that the server, its workers and the browser took, which says
more on a machine that does other things too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

import planner
from benchmarks.sweeps import synthetic
from planner.store import Store

PATIENCE_MS: Final = 180_000
START_S: Final = 60.0
ANSWERED: Final = """() => {
    const text = document.body.innerText;
    return text.includes('answered in') && !text.includes('to the question before')
        && !text.includes('solving,') && !text.includes('waiting for a free worker,');
}"""
"""Whether a page shows the answer to what its forms ask."""


def chromium() -> str | None:
    """The browser that is there."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass(frozen=True)
class Served:
    """A server, as its command starts it."""

    url: str
    process: subprocess.Popen[bytes]
    since: float

    def seconds(self) -> tuple[float, float]:
        """Processor time of the server, and of its workers."""
        server = psutil.Process(self.process.pid)
        return _seconds([server]), _seconds(server.children(recursive=True))

    def bytes(self) -> int:
        """Memory of the server and its workers; what they share is counted once."""
        server = psutil.Process(self.process.pid)
        total = 0
        for one in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += one.memory_full_info().pss
        return total


def _seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


@contextlib.contextmanager
def server(folder: Path, *options: str) -> Iterator[Served]:
    """`planner dashboard`, until it answers; ended with this block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    since = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "dashboard", "--no-browser", "--port", str(port), *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    served = Served(f"http://127.0.0.1:{port}", process, since)
    try:
        while True:
            try:
                urllib.request.urlopen(f"{served.url}/_stcore/health", timeout=1).close()
                break
            except OSError:
                assert time.perf_counter() < since + START_S, "the server did not start"
                assert process.poll() is None, "the server ended"
                time.sleep(0.02)
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A browser that shows nothing on a screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as run:
        # graphics are drawn by the processor: what is drawn in time so is drawn in time everywhere
        started = run.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
        )
        yield started
        started.close()


def page(started: Any, *, width: int = 1280, height: int = 1000, scheme: str = "light") -> Any:
    """A page of a new visitor."""
    context = started.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
    )
    made = context.new_page()
    made.set_default_timeout(PATIENCE_MS)
    return made


def answered(shown: Any) -> None:
    """Wait until the page shows the answer to what it asks."""
    shown.wait_for_function(ANSWERED)


# --- a stranger's path --------------------------------------------------------------------

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


def own_tables(folder: Path) -> list[Path]:
    """Somebody's network as CSV files, in Gbit/s."""
    nodes = ["node,latitude,longitude", *(f"{name},{lat},{lon}" for name, (lat, lon) in CITIES.items())]
    links = ["tail,head,capacity_mbps"]
    for line in LINKS:
        tail, head, gbps = line.split()
        links += [f"{tail},{head},{gbps}000", f"{head},{tail},{gbps}000"]
    demands = ["source,target,rate_mbps", *(line.replace(" ", ",") + "000" for line in DEMANDS)]
    made = []
    for name, lines in (("nodes", nodes), ("links", links), ("demands", demands)):
        made.append(folder / f"{name}.csv")
        made[-1].write_text("\n".join(lines) + "\n")
    return made


def stranger(shown: Any, url: str, folder: Path, seen: Callable[[str], None]) -> str:
    """From the first page to the plan taken home; `seen` is told each step. The last address."""
    shown.goto(url)
    answered(shown)
    seen("1 the first page")

    own(shown, url)
    tables = own_tables(folder)
    broken = folder / "broken" / "links.csv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(tables[1].read_text().replace("Lisbon,London,5000", "Lisbon,London,-5000"))
    shown.locator("input[type=file]").set_input_files([tables[0], broken, tables[2]])
    shown.get_by_role("button", name="Use these tables").click()
    shown.get_by_text("capacity_mbps is -5000").first.wait_for()
    seen("2 what is wrong is said at its cell")

    own(shown, url)
    shown.locator("input[type=file]").set_input_files(tables)
    shown.get_by_role("button", name="Use these tables").click()
    shown.get_by_text("8 nodes, 26 links, 8 demands").wait_for()
    answered(shown)
    seen("3 own tables, three designs")

    _open_forms(shown)
    shown.get_by_role("combobox", name="fail links").fill("Frankfurt<->Paris")
    shown.get_by_role("option", name="Frankfurt<->Paris").first.click()
    shown.keyboard.press("Escape")
    shown.get_by_text("compared to:").wait_for()
    _close_forms(shown)
    answered(shown)
    seen("4 a link fails")

    shown.get_by_role("tab", name="optimum").click()
    shown.get_by_text("What changed since the plan before").wait_for()
    seen("5 the better design")

    shown.get_by_role("tab", name="The same elsewhere").click()
    with shown.expect_download() as saved:
        shown.get_by_role("button", name="Plans and metrics (zip)").click()
    saved.value.save_as(folder / "planner.zip")
    seen("6 taken home")

    address = f"{url}/?scenario=traffic/abilene&designs=optimum,ecmp&set=problem.scale%3D0.5"
    shown.goto(address)
    answered(shown)
    seen("7 an address restores its answer")
    return address


def own(shown: Any, url: str) -> None:
    """The form for own tables of traffic."""
    shown.goto(f"{url}/?scenario=own+tables")
    shown.get_by_role("combobox", name="system").last.click()
    shown.get_by_role("option", name="traffic", exact=True).click()
    shown.get_by_text("nodes (optional), links, demands").wait_for()
    still(shown)


def still(shown: Any) -> None:
    """Wait until the page's script is through: what streamlit tells a page while one begins may be lost."""
    shown.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def choose(shown: Any, cell: int) -> None:
    """Choose a cell of the design space; they are counted row by row."""
    shown.locator(".js-plotly-plot .point").nth(cell).click(force=True)


def _open_forms(shown: Any) -> None:
    """On a narrow page the forms are folded away."""
    if shown.viewport_size["width"] < 700:
        shown.get_by_test_id("stExpandSidebarButton").click()
        shown.wait_for_timeout(1000)  # they slide in, and what is open meanwhile closes


def _close_forms(shown: Any) -> None:
    if shown.viewport_size["width"] < 700:
        shown.get_by_test_id("stSidebarCollapseButton").locator("button").click()


def pictures(folder: Path) -> None:
    """Each step of the path and each page, at 1280 and 390 pixels, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as spare:
        home = Path(spare)
        store = home / "results"
        subprocess.run(
            [sys.executable, "-m", "planner", "sweep", "traffic/abilene",
             "--designs", "ecmp,optimum,localflow", "--set", "problem.scale=0.5,1.0,1.5,2.0",
             "--workers", "1", "--out", str(store)],
            check=True, capture_output=True,
        )  # fmt: skip
        with server(home, "--store", str(store)) as served, browser() as started:
            for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
                shown = page(started, width=width, height=1000 if width > 700 else 844, scheme=scheme)

                def seen(step: str, shown: Any = shown, width: int = width, scheme: str = scheme) -> None:
                    drawn(shown)
                    wide = shown.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, f"{step}: sticks out at {width} pixels ({wide})"
                    path = folder / f"{step.replace(' ', '_')}_{width}_{scheme}.png"
                    _whole(shown, path)
                    print(path, flush=True)

                stranger(shown, served.url, home, seen)
                others(shown, served.url, seen)
                shown.context.close()


def others(shown: Any, url: str, seen: Callable[[str], None]) -> None:
    """The other pages."""
    shown.goto(f"{url}/recipes")
    shown.get_by_text("Choose a cell").wait_for()
    choose(shown, 3)
    shown.get_by_text("incomplete information, disjoint resources").wait_for()
    seen("8 recipes")
    for step, name in (("9 worth", "What coordination is worth"), ("10 curves", "How good must")):
        shown.get_by_role("tab", name=name).click()
        shown.get_by_role("tabpanel", name=name).get_by_text("Measure anew").wait_for()
        seen(step)
    shown.goto(f"{url}/sweeps")
    shown.get_by_text("12 of 12 runs").wait_for()
    seen("11 sweeps")
    shown.get_by_role("tab", name="Trade-off").click()
    seen("12 trade-off")
    shown.goto(f"{url}/reproduction?target=traffic/figure_1")
    shown.get_by_role("button", name="Run").click()
    shown.get_by_text("2 reproduced").wait_for()
    seen("13 reproduction")


def drawn(shown: Any) -> None:
    """Wait until tables and charts, which come after their page, are there."""
    # what is below the visible part may not be drawn before it is scrolled to
    shown.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stSkeleton]')].every(
            one => one.getBoundingClientRect().top > window.innerHeight)"""
    )
    shown.wait_for_timeout(1000)


def _whole(shown: Any, path: Path) -> None:
    """A picture of all that the page shows, also what has to be scrolled to."""
    size = shown.viewport_size
    tall = shown.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-testid=stMain], body')].map(e => e.scrollHeight))"
    )
    shown.set_viewport_size({"width": size["width"], "height": min(3000, max(size["height"], tall))})
    drawn(shown)
    shown.screenshot(path=path)
    shown.set_viewport_size(size)


# --- times --------------------------------------------------------------------------------

FIRST_S: Final = 3.0
MOVED_S: Final = 2.0
MOST_GIB: Final = 6.0


def told(what: str, walls: list[float], taken: list[float], most: float | None = None) -> None:
    """A line: median and worst wall seconds, processor seconds, and whether that is within `most`."""
    middle = statistics.median(walls)
    verdict = "" if most is None else f"   {'within' if middle <= most else 'OVER'} {most:g} s"
    line = f"  {what:<50} {middle:6.2f} s, worst {max(walls):6.2f} s"
    print(f"{line}, processor {statistics.median(taken):5.2f} s{verdict}", flush=True)


def first_page(folder: Path, times: int) -> None:
    """From the command to the first page's heading, forms and answer, each time with a server of its own."""
    steps: dict[str, tuple[list[float], list[float]]] = {}
    with browser() as started:
        for _ in range(times):
            with server(folder, "--workers", "2") as served:
                shown = page(started)
                shown.goto(served.url, wait_until="commit")

                def step(name: str, served: Served = served) -> None:
                    walls, taken = steps.setdefault(name, ([], []))
                    walls.append(time.perf_counter() - served.since)
                    taken.append(sum(served.seconds()))

                shown.get_by_role("heading", name="What if").wait_for()
                step("the first page")
                shown.get_by_role("slider", name="scale").first.wait_for()
                step("its forms")
                answered(shown)
                assert "50 nodes, 176 links" in shown.inner_text("body")
                step("its answer")
                shown.context.close()
    for name, (walls, taken) in steps.items():
        told(f"cold server: {name}", walls, taken, FIRST_S if name == "the first page" else None)


def told_in(shown: Any, row: str, column: str, value: float) -> None:
    """Wait until a cell of the table of metrics has a value, as the page tells those who cannot see it."""
    shown.wait_for_function(
        """([row, column, value]) => {
            const lines = [...document.querySelectorAll('[data-testid=stDataFrame] table')[0]?.rows ?? []]
                .map(line => [...line.cells].map(cell => cell.textContent));
            const place = lines[0]?.indexOf(column);
            const text = lines.find(line => line[0].startsWith(row))?.[place] ?? '';
            return Math.abs(parseFloat(text) - value) <= 1e-3 * Math.abs(value);
        }""",
        arg=[row, column, value],
        timeout=20_000,
    )


def worst_link(scenario: str) -> float:
    """The fullest link's utilization with even splits, found without the dashboard; it grows as demand."""
    result = planner.compare(scenario, designs=["ecmp"])
    return float(result.metrics["max_utilization"].iloc[0])


def slider(served: Served, started: Any, times: int) -> None:
    """A slider moved, until the new answer is there."""
    for scenario in ("traffic/abilene", "traffic/germany50"):
        whole = worst_link(scenario)
        shown = page(started)
        shown.goto(f"{served.url}/?scenario={scenario}&designs=ecmp,optimum")
        answered(shown)
        told_in(shown, "max_utilization", "ecmp", whole)
        walls, taken = [], []
        for _ in range(times):
            shown.wait_for_timeout(1000)
            before, address = sum(served.seconds()), shown.url
            shown.get_by_role("slider", name="scale").first.focus()
            start = time.perf_counter()
            shown.keyboard.press("ArrowRight")
            shown.wait_for_function("address => location.href != address", arg=address)
            answered(shown)
            walls.append(time.perf_counter() - start)
            taken.append(sum(served.seconds()) - before)
            scale = float(shown.url.partition("problem.scale%3D")[2].partition("&")[0])
            told_in(shown, "max_utilization", "ecmp", scale * whole)
        told(f"a slider of {scenario} moved", walls, taken, MOVED_S)
        shown.context.close()


def points(served: Served, started: Any, count: int) -> None:
    """A chart of many points: until it is drawn, zoomed and pointed at."""
    shown = page(started)
    shown.goto(f"{served.url}/sweeps")
    shown.get_by_text(f"{count:,} of {count:,} runs").wait_for()
    before, start = sum(served.seconds()), time.perf_counter()
    shown.get_by_role("tab", name="Trade-off").click()
    shown.wait_for_function(
        """count => [...document.querySelectorAll('.js-plotly-plot')].some(gd => gd._fullData && gd.calcdata
            && gd._fullData.reduce((sum, trace) => sum + (trace.x ? trace.x.length : 0), 0) == count)""",
        arg=count,
    )
    told(f"{count:,} points: until drawn", [time.perf_counter() - start], [sum(served.seconds()) - before])
    drawn(shown)
    shown.evaluate("""() => {
        const gd = [...document.querySelectorAll('.js-plotly-plot')].at(-1);
        window.plots = 0; window.points = 0;
        gd.on('plotly_relayout', () => { window.plots += 1; });
        gd.on('plotly_hover', () => { window.points += 1; });
        gd.scrollIntoView();
    }""")
    box = shown.locator(".js-plotly-plot .nsewdrag").last.bounding_box()
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    walls = []
    for move in range(5):
        start = time.perf_counter()
        shown.mouse.move(across + move, down + 5 * move)
        shown.mouse.move(across + move + 1, down + 5 * move)
        shown.wait_for_function("move => window.points > move", arg=move)
        walls.append(time.perf_counter() - start)
    told(f"{count:,} points: until a point is told", walls, [0.0])
    walls = []
    for zoom in range(3):
        shown.mouse.move(across - 100, down - 80)
        shown.mouse.down()
        shown.mouse.move(across + 100, down + 80, steps=3)
        start = time.perf_counter()
        shown.mouse.up()
        shown.wait_for_function("zoom => window.plots > zoom", arg=zoom)
        shown.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        walls.append(time.perf_counter() - start)
    told(f"{count:,} points: until zoomed", walls, [0.0])
    shown.context.close()


def sessions(served: Served, started: Any, count: int) -> None:
    """Visitors at once, each with a question of its own: whether each gets its own answer, and memory."""
    scales = [0.5 + 0.1 * place for place in range(count)]
    scenarios = [("traffic/abilene", "traffic/germany50")[place % 2] for place in range(count)]
    whole = {scenario: worst_link(scenario) for scenario in dict.fromkeys(scenarios)}
    start, most = time.perf_counter(), 0
    shown = [page(started) for _ in scales]
    for one, scale, scenario in zip(shown, scales, scenarios, strict=True):
        one.goto(
            f"{served.url}/?scenario={scenario}&designs=ecmp,optimum&set=problem.scale%3D{scale:.1f}",
            wait_until="commit",
        )
    for one in shown:
        answered(one)
        most = max(most, served.bytes())
    wall = time.perf_counter() - start
    for one, scale, scenario in zip(shown, scales, scenarios, strict=True):
        one.bring_to_front()
        told_in(one, "max_utilization", "ecmp", scale * whole[scenario])
    walls = []
    for one in shown[: max(2, count // 2)]:  # all of them move on
        one.bring_to_front()
        address = one.url
        one.get_by_role("slider", name="scale").first.focus()
        began = time.perf_counter()
        one.keyboard.press("ArrowRight")
        one.wait_for_function("address => location.href != address", arg=address)
        answered(one)
        walls.append(time.perf_counter() - began)
        most = max(most, served.bytes())
    gib = most / 2**30
    assert gib < MOST_GIB, f"{gib:.1f} GiB"
    print(f"  {count} sessions at once: each has its own answer after {wall:.1f} s")
    told(f"{count} sessions, one moves", walls, [0.0])
    print(f"  memory of server and workers at most {gib:.2f} GiB   within {MOST_GIB:g} GiB")
    for one in shown:
        one.context.close()


def filled(folder: Path, count: int) -> Path:
    """A store of so many runs of nothing."""
    rng = np.random.default_rng(1)
    with Store(folder, write=True) as store:
        for start in range(0, count, 10_000):
            store.keep([synthetic(number, rng) for number in range(start, min(count, start + 10_000))])
    return folder


def main() -> None:
    """Measure, or draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, sessions and points")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the stranger's path instead")
    given = parser.parse_args()
    if chromium() is None:
        raise SystemExit("no Chromium is installed")
    if given.pictures:
        pictures(given.pictures)
        return
    times, count, visitors = (1, 20_000, 3) if given.quick else (3, 100_000, 10)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median of {times}")
    with tempfile.TemporaryDirectory() as spare:
        home = Path(spare)
        first_page(home, times)
        store = filled(home / "results", count)
        with server(home, "--store", str(store), "--workers", "2") as served, browser() as started:
            slider(served, started, 2 * times)
            points(served, started, count)
            sessions(served, started, visitors)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
