"""Display of results: text, notebook, chart and report, also with hostile names."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

import planner
from planner.contract.drawing import NetworkMap
from planner.errors import InputError
from planner.reports import run_pages
from planner.runs.result import MOST_LINES, Result
from planner_models.traffic import Traffic

HOSTILE = ['<script>alert("x")</script>', "</script><b>", "[bold]x[/bold]\x1b[31m", '\'" onload="x']


def hostile() -> Traffic:
    """A ring of nodes with names that are markup and control characters."""
    ends = list(zip(HOSTILE, [*HOSTILE[1:], HOSTILE[0]], strict=True))
    links = pd.DataFrame([*ends, *((head, tail) for tail, head in ends)], columns=["tail", "head"])
    demands = pd.DataFrame([(HOSTILE[0], HOSTILE[2], 30.0)], columns=["source", "target", "rate_mbps"])
    return Traffic.from_tables({"links": links.assign(capacity_mbps=10.0, weight=1.0), "demands": demands})


class _Elements(HTMLParser):
    """Collects the elements of a text, and the handlers of events in their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def results(problem: Traffic) -> list[Result]:
    label = "<img src=x onerror=alert(1)>"
    return [
        planner.solve(problem, design="ecmp"),
        planner.compare(problem, designs=["ecmp", "shortest_path"]),
        planner.roll({label: problem}, designs="ecmp"),
        planner.check(problem, planner.solve(problem, design="ecmp").plan),
        planner.explain(problem, design="ecmp", candidates=2),
    ]


def test_names_of_users_are_only_text_in_a_notebook_and_on_a_terminal() -> None:
    for result in results(hostile()):
        elements = _Elements()
        elements.feed(result._repr_html_())
        assert set(elements.names) <= {
            "style",
            "div",
            "p",
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "script",
        }
        assert not elements.handlers
        assert not any(name in result._repr_html_() for name in HOSTILE[:2])
        assert "\x1b" not in repr(result)
        assert len(repr(result).splitlines()) <= MOST_LINES


def test_a_comparison_of_all_designs_is_short() -> None:
    problem = planner.generate("traffic", "abilene")
    names = [
        "ecmp",
        "shortest_path",
        "ecmp_hash",
        "packet_scatter",
        "optimum",
        "localflow",
        "valiant",
        "utility",
    ]
    result = planner.compare(problem, designs=names)
    lines = repr(result).splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[0] == "traffic: 12 nodes, 30 links, 132 demands"
    assert "more in .metrics" in lines[-1]
    assert all(len(line) <= 100 for line in lines)


def test_html_of_a_notebook_has_verdict_table_and_picture() -> None:
    result = planner.compare("traffic/abilene", designs=["ecmp", "optimum"], changes={"problem.scale": 1.3})
    html = result._repr_html_()
    assert result.verdict in html
    assert "Max utilization" in html
    assert "Plotly.newPlot" in html
    assert len(html) < 100_000


def test_plot_returns_charts_by_the_beginning_of_their_titles() -> None:
    run = planner.solve(planner.generate("traffic", "abilene"), design="ecmp")
    assert run.plot().layout.title.text == "Links by utilization"
    assert run.plot("utilization").layout.title.text == "Utilization of links"
    with pytest.raises(InputError, match="nothing: no such chart"):
        run.plot("nothing")
    with pytest.raises(InputError, match="there is nothing to draw"):
        planner.check(run.problem).plot()


def test_a_report_has_the_format_of_its_ending(tmp_path: Path) -> None:
    run = planner.solve(planner.generate("traffic", "abilene"), design="ecmp")
    path = run.report(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run.report(tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(InputError, match=r"report\.txt: a report is a web page, a PDF or a PowerPoint file"):
        run.report(tmp_path / "report.txt")


def test_a_run_has_the_tables_of_its_plan() -> None:
    run = planner.solve(planner.generate("traffic", "abilene"), design="ecmp")
    assert run.to_frame("flows").equals(run.plan.to_tables()["flows"])
    with pytest.raises(InputError, match="flow: no such table of this plan; did you mean 'flows'"):
        run.to_frame("flow")
    with pytest.raises(InputError, match="did you mean 'ecmp'"):
        planner.compare(run.problem, designs="ecmp")["ecmq"]


def test_a_simulation_has_a_chart_of_its_metrics() -> None:
    problem = planner.generate("traffic", "abilene")
    result = planner.simulate(problem, designs="ecmp,localflow", until_s=0.1, warm_up_s=0.05)
    assert result.plot().layout.title.text == "Metrics by design"
    assert list(result.to_frame().index) == ["ecmp", "localflow"]
    assert len(repr(result).splitlines()) <= MOST_LINES


@pytest.mark.slow
def test_the_report_of_a_simulation_begins_with_a_frame_of_the_best_design() -> None:
    problem = planner.generate("traffic", "abilene")
    times = {"until_s": 0.1, "warm_up_s": 0.05}
    plain = planner.simulate(problem, designs="ecmp,localflow", **times)
    drawn = planner.simulate(problem, designs="ecmp,localflow", frames=True, **times)
    assert drawn.to_frame().drop(columns="seconds").equals(plain.to_frame().drop(columns="seconds"))
    assert run_pages.simulation_page(plain).picture() is None
    says, drawing = run_pages.simulation_page(drawn).picture()
    best = drawn.to_frame()["throughput_mbps"].idxmax()
    assert says.startswith(f"{best} at 0.")
    assert isinstance(drawing, NetworkMap)
