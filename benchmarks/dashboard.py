"""Response times of the dashboard, and pictures of a new user's path through it.

python -m benchmarks.dashboard [--quick]          response times; each answer is checked
python -m benchmarks.dashboard --pictures FOLDER  pictures of the path, wide and narrow, light and dark

The installed Chromium runs the real pages. Times are wall seconds until the user sees the answer. The
processor time of the server and its workers is printed beside them: it is more reliable on a busy machine.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
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

import psutil

import planner
from benchmarks.common import free_port, machine, parser_of
from benchmarks.sweeps import fill_store
from planner.scenarios.catalogue import find_system

TIME_LIMIT_MS: Final = 300_000
START_LIMIT_S: Final = 120.0
END_LIMIT_S: Final = 60.0
ANSWERED: Final = """() => {
    const text = document.body.innerText;
    return text.includes('answered in') && !text.includes('for the previous settings')
        && !text.includes('solving,') && !text.includes('waiting for a free worker,');
}"""
"""Script: true when a page shows the answer for the settings of its forms."""


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
        for one in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += one.memory_full_info().pss
        return total


def _seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])  # user and system
    return total


@contextlib.contextmanager
def run_server(folder: Path, *options: str) -> Iterator[Server]:
    """Run `planner dashboard` for a block, which begins when the server answers."""
    port = free_port()
    since = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "dashboard", "--no-browser", "--port", str(port), *options],
        cwd=folder,
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
def run_browser() -> Iterator[Any]:
    """Run a headless browser for a block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as run:
        # rendering without a graphics processor: the slowest case
        browser = run.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
        )
        yield browser
        browser.close()


def new_page(browser: Any, *, width: int = 1280, height: int = 1000, scheme: str = "light") -> Any:
    """Return a page of a new visitor."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
    )
    page = context.new_page()
    page.set_default_timeout(TIME_LIMIT_MS)
    return page


def solve_address(page: Any) -> None:
    """Click the button that solves the question of an address."""
    page.get_by_role("button", name="Solve", exact=True).click()


def wait_for_answer(page: Any) -> None:
    """Wait until the page shows the answer for its settings."""
    page.wait_for_function(ANSWERED)


# --- a new user's path --------------------------------------------------------------------

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


def follow_path(page: Any, url: str, folder: Path, report: Callable[[str], None]) -> str:
    """Walk from the first page to the downloaded plan; report each step and return the last address."""
    page.goto(url)
    wait_for_answer(page)
    report("1 the first page")

    open_upload(page, url)
    tables = write_tables(folder)
    broken = folder / "broken" / "links.csv"
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(tables[1].read_text().replace("Lisbon,London,5000", "Lisbon,London,-5000"))
    page.locator("input[type=file]").set_input_files([tables[0], broken, tables[2]])
    page.get_by_role("button", name="Use these tables").click()
    page.get_by_text("capacity_mbps is -5000").first.wait_for()
    report("2 faults are shown at their cells")

    open_upload(page, url)
    page.locator("input[type=file]").set_input_files(tables)
    page.get_by_role("button", name="Use these tables").click()
    page.get_by_text("8 nodes, 26 links, 8 demands").wait_for()
    wait_for_answer(page)
    report("3 own tables, three designs")

    _open_forms(page)
    page.get_by_role("combobox", name="fail links").fill("Frankfurt<->Paris")
    page.get_by_role("option", name="Frankfurt<->Paris").first.click()
    page.keyboard.press("Escape")
    page.get_by_text("Baseline:").wait_for()
    _close_forms(page)
    wait_for_answer(page)
    report("4 a link fails")

    page.get_by_role("tab", name="optimum").click()
    page.get_by_text("Changes since the baseline").wait_for()
    report("5 the better design")

    page.get_by_role("tab", name="Command and files").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Plans and metrics (zip)").click()
    saved.value.save_as(folder / "planner.zip")
    report("6 the plan is downloaded")

    address = f"{url}/?scenario=traffic/abilene&designs=optimum,ecmp&set=problem.scale%3D0.5"
    page.goto(address)
    solve_address(page)
    wait_for_answer(page)
    report("7 an address restores its answer")
    return address


def open_upload(page: Any, url: str) -> None:
    """Open the form for uploaded tables of traffic."""
    page.goto(f"{url}/?scenario=own+tables")
    page.get_by_role("combobox", name="system").last.click()
    page.get_by_role("option", name="traffic", exact=True).click()
    page.get_by_text("nodes (optional), links, demands").wait_for()
    wait_for_script(page)


def wait_for_script(page: Any) -> None:
    """Wait until the page's script has ended: streamlit may lose events of a page whose script starts."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def select_cell(page: Any, cell: int) -> None:
    """Select a cell of the design space by its number, row by row."""
    page.locator(".js-plotly-plot .point").nth(cell).click(force=True)


def _open_forms(page: Any) -> None:
    """Open the forms of a narrow page, which are folded."""
    if page.viewport_size["width"] < 700:
        page.get_by_test_id("stExpandSidebarButton").click()
        page.wait_for_timeout(1000)  # they slide in, and close fields that are open meanwhile


def _close_forms(page: Any) -> None:
    if page.viewport_size["width"] < 700:
        page.get_by_test_id("stSidebarCollapseButton").locator("button").click()


def draw_pictures(folder: Path) -> None:
    """Draw each step of the path and each page, at 1280 and 390 pixels, light and dark."""
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
        with run_server(home, "--store", str(store)) as server, run_browser() as browser:
            for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
                page = new_page(browser, width=width, height=1000 if width > 700 else 844, scheme=scheme)

                def report(step: str, page: Any = page, width: int = width, scheme: str = scheme) -> None:
                    wait_for_drawing(page)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, f"{step}: sticks out at {width} pixels ({wide})"
                    path = folder / f"{step.replace(' ', '_')}_{width}_{scheme}.png"
                    _save_picture(page, path)
                    print(path, flush=True)

                follow_path(page, server.url, home, report)
                visit_others(page, server.url, report)
                page.context.close()


def visit_others(page: Any, url: str, report: Callable[[str], None]) -> None:
    """Visit the other pages and report each step."""
    page.goto(f"{url}/recipes")
    page.get_by_text("Choose a cell").wait_for()
    select_cell(page, 3)
    page.get_by_text("incomplete information, disjoint resources").wait_for()
    report("8 recipes")
    for step, name in (("9 value", "Value of coordination"), ("10 curves", "Quality of information")):
        page.get_by_role("tab", name=name).click()
        page.get_by_role("tabpanel", name=name).get_by_text("Measure again").wait_for()
        report(step)
    page.goto(f"{url}/sweeps")
    page.get_by_text("12 of 12 runs").wait_for()
    report("11 sweeps")
    page.get_by_role("tab", name="Trade-off").click()
    report("12 trade-off")
    page.goto(f"{url}/reproduction?target=traffic/figure_1")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("time [s]").first.wait_for(state="attached")
    report("13 reproduction")


def wait_for_drawing(page: Any) -> None:
    """Wait until the page shows its tables and charts."""
    # parts below the visible one may wait until they are scrolled to
    page.wait_for_function(
        """() => [...document.querySelectorAll('[data-testid=stSkeleton]')].every(
            one => one.getBoundingClientRect().top > window.innerHeight)"""
    )
    page.wait_for_timeout(1000)


def _save_picture(page: Any, path: Path) -> None:
    """Save a picture of the whole page, also of parts below the visible one."""
    size = page.viewport_size
    tall = page.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-testid=stMain], body')].map(e => e.scrollHeight))"
    )
    page.set_viewport_size({"width": size["width"], "height": min(3000, max(size["height"], tall))})
    wait_for_drawing(page)
    page.screenshot(path=path)
    page.set_viewport_size(size)


# --- times --------------------------------------------------------------------------------

FIRST_PAGE_S: Final = 3.0
SLIDER_S: Final = 2.0
MAX_MEMORY_GIB: Final = 6.0


def print_times(activity: str, walls: list[float], taken: list[float], limit_s: float | None = None) -> None:
    """Print median and worst wall seconds, processor seconds, and whether the median is within a limit."""
    median = statistics.median(walls)
    verdict = "" if limit_s is None else f"   {'within' if median <= limit_s else 'OVER'} {limit_s:g} s"
    line = f"  {activity:<50} {median:6.2f} s, worst {max(walls):6.2f} s"
    print(f"{line}, processor {statistics.median(taken):5.2f} s{verdict}", flush=True)


def time_first_page(folder: Path, times: int) -> None:
    """Time the first page's heading, forms and answer since the start of a new server."""
    steps: dict[str, tuple[list[float], list[float]]] = {}
    with run_browser() as browser:
        for _ in range(times):
            with run_server(folder, "--workers", "2") as server:
                page = new_page(browser)
                page.goto(server.url, wait_until="commit")

                def step(name: str, server: Server = server) -> None:
                    walls, taken = steps.setdefault(name, ([], []))
                    walls.append(time.perf_counter() - server.since)
                    taken.append(sum(server.seconds()))

                page.get_by_role("heading", name="What if").wait_for()
                step("the first page")
                page.get_by_role("slider", name="scale").first.wait_for()
                step("its forms")
                wait_for_answer(page)
                assert "50 nodes, 176 links" in page.inner_text("body")
                step("its answer")
                page.context.close()
    for name, (walls, taken) in steps.items():
        print_times(f"cold server: {name}", walls, taken, FIRST_PAGE_S if name == "the first page" else None)


def wait_for_metric(page: Any, row: str, column: str, value: float) -> None:
    """Wait until a cell of the table of metrics has a value, as screen readers get it."""
    page.wait_for_function(
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


def max_utilization(scenario: str) -> float:
    """Return the utilization of the fullest link with ECMP, without the dashboard; it grows with demand."""
    result = planner.compare(scenario, designs=["ecmp"])
    return float(result.metrics["max_utilization"].iloc[0])


def time_slider(server: Server, browser: Any, times: int) -> None:
    """Time a move of a slider until the new answer is shown."""
    label = find_system("traffic").metric("max_utilization").label
    for scenario in ("traffic/abilene", "traffic/germany50"):
        whole = max_utilization(scenario)
        page = new_page(browser)
        page.goto(f"{server.url}/?scenario={scenario}&designs=ecmp,optimum")
        solve_address(page)
        wait_for_answer(page)
        wait_for_metric(page, label, "ecmp", whole)
        walls, taken = [], []
        for _ in range(times):
            page.wait_for_timeout(1000)
            before, address = sum(server.seconds()), page.url
            page.get_by_role("slider", name="scale").first.focus()
            start = time.perf_counter()
            page.keyboard.press("ArrowRight")
            page.wait_for_function("address => location.href != address", arg=address)
            wait_for_answer(page)
            walls.append(time.perf_counter() - start)
            taken.append(sum(server.seconds()) - before)
            scale = float(page.url.partition("problem.scale%3D")[2].partition("&")[0])
            wait_for_metric(page, label, "ecmp", scale * whole)
        print_times(f"a slider of {scenario} moved", walls, taken, SLIDER_S)
        page.context.close()


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
    label = find_system("traffic").metric("max_utilization").label
    scales = [0.5 + 0.1 * place for place in range(count)]
    scenarios = [("traffic/abilene", "traffic/germany50")[place % 2] for place in range(count)]
    whole = {scenario: max_utilization(scenario) for scenario in dict.fromkeys(scenarios)}
    start, most = time.perf_counter(), 0
    pages = [new_page(browser) for _ in scales]
    for one, scale, scenario in zip(pages, scales, scenarios, strict=True):
        one.goto(
            f"{server.url}/?scenario={scenario}&designs=ecmp,optimum&set=problem.scale%3D{scale:.1f}",
            wait_until="commit",
        )
    for one in pages:
        solve_address(one)
    for one in pages:
        wait_for_answer(one)
        most = max(most, server.bytes())
    wall = time.perf_counter() - start
    for one, scale, scenario in zip(pages, scales, scenarios, strict=True):
        one.bring_to_front()
        wait_for_metric(one, label, "ecmp", scale * whole[scenario])
    walls = []
    for one in pages[: max(2, count // 2)]:  # half of them change a setting
        one.bring_to_front()
        address = one.url
        one.get_by_role("slider", name="scale").first.focus()
        began = time.perf_counter()
        one.keyboard.press("ArrowRight")
        one.wait_for_function("address => location.href != address", arg=address)
        wait_for_answer(one)
        walls.append(time.perf_counter() - began)
        most = max(most, server.bytes())
    gib = most / 2**30
    assert gib < MAX_MEMORY_GIB, f"{gib:.1f} GiB"
    print(f"  {count} sessions at once: each has its own answer after {wall:.1f} s")
    print_times(f"{count} sessions, one moves", walls, [0.0])
    print(f"  memory of server and workers at most {gib:.2f} GiB   within {MAX_MEMORY_GIB:g} GiB")
    for one in pages:
        one.context.close()


def main() -> None:
    """Measure times, or draw pictures."""
    parser = parser_of(__doc__, "fewer repetitions, sessions and points")
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="draw pictures of a new user's path instead"
    )
    given = parser.parse_args()
    if chromium() is None:
        raise SystemExit("no Chromium is installed")
    if given.pictures:
        draw_pictures(given.pictures)
        return
    times, count, visitors = (1, 20_000, 3) if given.quick else (3, 100_000, 10)
    print(f"{machine()}; median of {times}")
    with tempfile.TemporaryDirectory() as spare:
        home = Path(spare)
        time_first_page(home, times)
        fill_store(home / "results", count)
        with run_server(home, "--store", "results", "--workers", "2") as server, run_browser() as browser:
            time_slider(server, browser, 2 * times)
            time_points(server, browser, count)
            time_sessions(server, browser, visitors)
    print(machine())


if __name__ == "__main__":
    main()
