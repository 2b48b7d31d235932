"""Reports: whole in one file, readable without scripts, and proof against what stands in the data."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import Curve, Distribution, NetworkMap, Points, Timeline
from planner.reports import charts, run_pages
from planner.reports.html import write
from planner.runs.evaluation import compare
from planner.scenarios.scenario import load
from tests.commands import planner

HOSTILE = "<script>alert(1)</script>"
SCENARIO = """
system = "traffic"
[problem]
source = "tables"
path = "."
[designs.optimum]
[designs.ecmp]
"""


class Text(html.parser.HTMLParser):
    """Text that a reader without scripts sees, and addresses that the page would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.fetches: list[str] = []
        self.scripts = 0
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.scripts += tag == "script"
        self.fetches += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self.inside in ("td", "th", "p", "h1", "h2", "h3", "summary", "pre"):
            self.cells.append(data.strip())


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "links.csv").write_text(
        f"tail,head,capacity_mbps,weight\ns,{HOSTILE},10,1\n{HOSTILE},t,10,1\ns,b,5,1\nb,t,5,1\n"
    )
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def test_a_report_is_whole_and_reads_without_scripts(scenario: Path, tmp_path: Path) -> None:
    result = planner("compare", scenario, "--html", tmp_path / "deep" / "r.html")
    assert result.code == 0, result.err
    page = (tmp_path / "deep" / "r.html").read_text(encoding="utf-8")
    text = Text(page)
    assert not text.fetches, "a page to send to a colleague brings everything along"
    assert text.scripts == 3, "plotly, the figures and what draws them; nothing from the data"
    assert HOSTILE in text.cells, "shown as it is"
    for words in ("Optimal routing", "Max utilization", "0.8", "1.2", "Constraint violations", "plan: flows"):
        assert words in text.cells, words
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', page, re.DOTALL)[0])
    assert len(figures) == 3
    assert page.count("<figcaption>") == 2, "the picture of the best plan first, those of the others below"
    assert all(figure["data"] for figure in figures.values())


@pytest.mark.slow
def test_solve_explain_and_reproduce_write_reports_too(scenario: Path, tmp_path: Path) -> None:
    for name, command in (
        ("solve", ["solve", scenario]),
        ("explain", ["explain", scenario]),
        ("reproduce", ["reproduce", "traffic/figure_1"]),
    ):
        result = planner(*command, "--html", tmp_path / f"{name}.html")
        assert result.code == 0, result.err
        assert f"{name}.html" in result.err
    assert "shadow" in (tmp_path / "explain.html").read_text(encoding="utf-8")
    assert "reproduced" in Text((tmp_path / "reproduce.html").read_text(encoding="utf-8")).cells


def test_a_design_that_fails_is_told_in_the_report(scenario: Path, tmp_path: Path) -> None:
    result = planner(
        "compare", scenario, "--html", tmp_path / "r.html", "--set", "designs.optimum.objective=cost"
    )
    assert result.code == 1
    page = Text((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert any(cell.startswith("Optimal routing: ") for cell in page.cells)


def test_a_report_that_cannot_be_written_is_one_line(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder.html"
    folder.mkdir()
    result = planner("compare", scenario, "--html", folder)
    assert result.code == 1
    assert f"{folder}: is a folder, must be a file" in result.err


@pytest.mark.parametrize("name", ["page.pdf", "page", "page.html.txt"])
def test_another_format_is_refused_before_any_work(name: str) -> None:
    result = planner("compare", "missing.toml", "--html", name)
    assert result.code == 1
    assert result.err == f"{name}: a report is a web page, its name must end in .html\n"


DRAWINGS = (
    Curve(title="lines", frame=pd.DataFrame({"x": [1, 2], "a": [1.0, 3.0], "b": [2.0, None]}), log_x=True),
    Curve(title="bars", frame=pd.DataFrame({"x": ["p", "q"], "a": [1.0, 3.0]}), bars=True),
    Points(
        title="points", frame=pd.DataFrame({"design": ["p", "q"], "cost": [1.0, 3.0], "score": [2.0, 0.5]})
    ),
    Timeline(
        title="days",
        frame=pd.DataFrame({"lane": [0, 1], "start": [0.0, 5.0], "end": [5.0, 9.0], "what": ["a", "b"]}),
        unit="us",
        lanes="rack",
        what="circuit to",
    ),
    Distribution(
        title="spread", values={"a": pd.Series([3.0, 1.0, 2.0]), "b": pd.Series([], dtype=float)}, what="x"
    ),
    NetworkMap(
        title="map",
        nodes=pd.DataFrame({"node": ["s", "t", "u"], "group": ["core", "edge", "edge"]}),
        links=pd.DataFrame({"tail": ["s", "t"], "head": ["t", "s"], "value": [0.0, 120.0]}),
        value="load",
        limit=100.0,
    ),
)


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.title)
def test_every_drawing_has_a_chart_and_a_table(drawing: charts.Drawing) -> None:
    figure = charts.chart(drawing)
    assert len(figure.data) > 0
    assert figure.layout.title.text == drawing.title
    assert len(drawing.frame) > 0
    json.loads(figure.to_json())


def test_a_distribution_is_the_share_that_is_at_most_so_large() -> None:
    values = pd.Series(np.random.default_rng(1).exponential(size=10_000))
    line = charts.chart(Distribution(title="d", values={"a": values}, what="x")).data[0]
    assert len(line.x) <= charts.MOST_POINTS
    for x, y in zip(line.x, line.y, strict=True):
        assert y == pytest.approx(100 * (values <= x).mean())


def test_a_map_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MOST_LINKS", 1)
    figure = charts.chart(DRAWINGS[-1])
    assert "1 of 2 links" in figure.layout.annotations[0].text


def test_without_a_browser_pictures_fail_in_one_line(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_given: object, **_more: object) -> None:
        raise RuntimeError("Kaleido requires Google Chrome to be installed.\nmany more lines")

    monkeypatch.setattr(charts.go.Figure, "write_image", missing)
    result = planner("solve", scenario, "--design", "optimum", "--pictures", tmp_path / "pictures")
    assert result.code == 1
    assert len([line for line in result.err.splitlines() if not line.startswith("assumed: ")]) == 1
    assert "Chrome" in result.err


def browser() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(browser() is None, reason="no Chromium is installed")
def test_a_browser_draws_every_chart_without_an_error(scenario: Path, tmp_path: Path) -> None:
    assert planner("solve", scenario, "--html", tmp_path / "r.html").code == 0
    seen = subprocess.run(
        [str(browser()), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=8000", "--dump-dom",
         (tmp_path / "r.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "CONSOLE" not in seen.stderr, seen.stderr
    assert seen.stdout.count("main-svg") >= 2, "a drawn chart has a picture in it"


@pytest.mark.slow
def test_a_sweep_draws_its_figures_along_its_axes(tmp_path: Path) -> None:
    result = planner(
        "sweep", "traffic/abilene", "--designs", "ecmp,shortest_path", "--workers", "1",
        "--set", "problem.scale=0.5,1.0,1.5", "--out", tmp_path / "store", "--html", tmp_path / "r.html",
    )  # fmt: skip
    assert result.code == 0, result.err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    figures = json.loads(re.findall(r'id="figures">(.*?)</script>', page, re.DOTALL)[0])
    titles = {figure["layout"]["title"]["text"]: figure for figure in figures.values()}
    lines = titles["Max utilization by problem.scale"]["data"]
    assert [line["name"] for line in lines] == ["ecmp", "shortest_path"]
    assert "problem.scale" in Text(page).cells


def test_a_failed_link_is_dotted_in_the_picture(tmp_path: Path) -> None:
    link = "ATLAng<->HSTNng"
    for name, changes in (("whole", {}), ("failed", {"problem.fail_links": [link]})):
        scenario = load("traffic/abilene", changes=changes)
        result = compare(scenario, designs=["ecmp"])
        write(run_pages.comparison_page(result, scenario), tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        # on the light and on the dark ground
        assert page.count('stroke-dasharray="2 4"') == (2 if changes else 0)
