"""Metrics in words: the direction that is better, and none for figures that do not judge a plan."""

from planner.contract.metrics import less, more, neither
from planner.reports.metric_text import better
from planner.reports.run_tables import mark_best

MEMBERS = neither("members", "members", "members that decide")


def test_a_figure_that_judges_nothing_has_no_arrow() -> None:
    assert better(MEMBERS) == "members"
    assert better(more("served", "clients", "clients that are served")) == "↑ clients"
    assert better(less("price", "EUR", "what it costs")) == "↓ EUR"


def test_no_design_is_marked_as_best_in_it() -> None:
    cells = mark_best(MEMBERS, [3.0, 5.0], str)
    assert [cell.kind for cell in cells] == ["", ""]
    cells = mark_best(less("price", "EUR", "what it costs"), [3.0, 5.0], str)
    assert [cell.kind for cell in cells] == ["best", ""]
