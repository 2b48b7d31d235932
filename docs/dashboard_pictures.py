"""Draw the pictures of the dashboard's documentation, from real pages in Chromium.

python docs/dashboard_pictures.py [NAME...]     default: all; names are those of STORIES and PAGES
python docs/dashboard_pictures.py --check       says which pictures show another verdict than the product now

Beside the pictures, VERDICTS has the question and the verdict of each; the check asks the questions again.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from PIL import Image

from benchmarks import browser, dashboard_stories
from planner_dashboard import worker
from planner_dashboard.question import FIRST_SCENARIO, Question, unchanged_scenario
from planner_dashboard.what_if import changes, headline

FOLDER: Final = Path(__file__).with_name("pictures") / "dashboard"
VERDICTS: Final = FOLDER / "verdicts.json"
COLOURS: Final = 200
"""Of a picture's palette, which makes it small."""
TALL: Final = 1250
"""Most pixels of a picture; what stands below is not shown."""
TO_TOP: Final = "document.querySelectorAll('[data-testid=stMain]').forEach(part => part.scrollTo(0, 0))"
IDLE_ROUNDS: Final = 4
"""Seconds without work after which a page has its answer."""
STORIES: Final = {
    "backbone": (dashboard_stories.play_backbone, 1440, "light"),
    "market": (dashboard_stories.play_market, 1280, "light"),
    "live": (dashboard_stories.play_live_video, 1280, "dark"),
    "purchases": (dashboard_stories.play_purchases, 1280, "light"),
    "simulation": (dashboard_stories.play_simulation, 1280, "light"),
}
PAGES: Final[dict[str, tuple[str, int, str]]] = {
    "narrow": ('?scenario=traffic/germany50&set=problem.fail_links%3D["Koblenz<->Koeln"]', 390, "light"),
    "own_data": ("own_data", 1280, "light"),
    "recipes": ("recipes", 1280, "light"),
    "results": ("sweeps", 1280, "light"),
    "reproduction": ("reproduction", 1280, "light"),
}


def main(names: list[str]) -> None:
    """Draw the pictures of the given names, or all; or check them."""
    if names == ["--check"]:
        raise SystemExit("\n".join(find_outdated()) or 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    selected = names or [*STORIES, *PAGES]
    with tempfile.TemporaryDirectory() as spare, browser.run_browser(browser.BY_SOFTWARE_GL) as running:
        home = Path(spare)
        sweep = ("sweep", "traffic/abilene", "--set", "problem.scale=0.5,1,1.5,2,3,4,6", "--out", "results")
        subprocess.run([sys.executable, "-m", "planner", *sweep], cwd=home, check=True, capture_output=True)
        with browser.run_server(home, "--store", "results", "--workers", "2", "--no-warm") as server:
            for name in selected:
                if name in STORIES:
                    play, width, scheme = STORIES[name]
                    page = browser.new_page(running, width=width, height=1000, scheme=scheme)
                    play(page, server.url, _saver(page))
                else:
                    query, width, scheme = PAGES[name]
                    page = browser.new_page(running, width=width, height=1000, scheme=scheme)
                    page.goto(f"{server.url}/{query}")
                    if "scenario=" in query:
                        browser.solve_address(page)
                        browser.wait_for_answer(page)
                    else:
                        _wait_for_jobs(page)
                    _saver(page)(name)
                page.context.close()


def find_outdated() -> list[str]:
    """Return a line for each picture whose verdict is not that of its question now, or that is missing."""
    shown = json.loads(VERDICTS.read_text(encoding="utf-8"))
    lines = [f"{name}: no picture" for name in shown if not (FOLDER / f"{name}.png").is_file()]
    answers: dict[str, str] = {}
    for name, item in shown.items():
        query = item["query"]
        if query not in answers:
            answers[query] = _ask(query)
        if answers[query] != item["verdict"]:
            lines.append(f"{name}: shows {item['verdict']!r}, the answer is {answers[query]!r}")
    return lines


def _ask(query: str) -> str:
    """Return the verdict on the question of an address, as the first page writes it."""
    asked = {key: values for key, values in parse_qs(query).items() if key != "pin"}
    question = Question.from_query(asked) or Question(scenario=FIRST_SCENARIO)
    with tempfile.TemporaryDirectory() as spare:
        answer = worker.compare(question, Path(spare), Path(spare) / "answer")
    scenario = unchanged_scenario(question.source(Path()))
    changed = [change.words for change in changes.list_changes(scenario, question) if change.is_element]
    return headline.verdict_text(answer.sentences, changed)


def _note_verdict(page: Any, name: str) -> None:
    """Write the question and the verdict of a page, where it shows one, into VERDICTS."""
    noted = json.loads(VERDICTS.read_text(encoding="utf-8")) if VERDICTS.is_file() else {}
    noted.pop(name, None)
    if page.locator(".planner-verdict[data-question]").count():
        noted[name] = {"query": urlsplit(page.url).query, "verdict": browser.verdict(page)}
    VERDICTS.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _wait_for_jobs(page: Any) -> None:
    """Wait until the page has had no work under way for some seconds."""
    idle = 0
    while idle < IDLE_ROUNDS:
        browser.wait_for_script(page)
        page.wait_for_timeout(1_000)
        idle = 0 if page.get_by_role("button", name="Cancel", exact=True).count() else idle + 1


def _saver(page: Any) -> Callable[[str], None]:
    def save(step: str) -> None:
        browser.wait_for_script(page)
        browser.wait_for_drawing(page)
        size = page.viewport_size
        page.set_viewport_size({"width": size["width"], "height": TALL})
        page.evaluate(TO_TOP)  # the press of a button may have scrolled down to it
        browser.wait_for_drawing(page)
        picture = Image.open(io.BytesIO(page.screenshot()))
        page.set_viewport_size(size)
        path = FOLDER / f"{step.replace(' ', '_')}.png"
        _note_verdict(page, path.stem)
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        sys.stdout.write(f"{path.relative_to(FOLDER.parents[2])}\n")
        sys.stdout.flush()

    return save


if __name__ == "__main__":
    main(sys.argv[1:])
