"""The traffic of each class in a plan, without failures and in its worst one."""

from __future__ import annotations

import pandas as pd
import pytest

from planner_models.capacity import CapacityPlanning
from planner_models.capacity.plan.metrics import break_down, measure
from planner_models.capacity.plan.reading import from_tables
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import ring

DEMANDS = pd.DataFrame(
    [("a", "c", 6.0, "gold"), ("a", "c", 9.0, "bulk"), ("b", "c", 1.0, "bulk")],
    columns=["source", "target", "rate_mbps", "class"],
)
CLASSES = pd.DataFrame(
    [("bulk", 2.0, 0.5), ("gold", 1.0, 1.0)], columns=["class", "priority", "protected_share"]
)


def problem_of(links: tuple[float, float, float]) -> CapacityPlanning:
    """Return the ring a, b, c with these capacities of a<->b, b<->c and a<->c, and every link's failure."""
    ends = [("a", "b"), ("b", "c"), ("a", "c")]
    rows = [(*pair, capacity) for pair, capacity in zip(ends, links, strict=True)]
    return adjust(ring(rows, DEMANDS, classes=CLASSES), failures="links")


def test_classes_are_served_in_the_order_of_their_priority() -> None:
    problem = problem_of((10.0, 12.0, 10.0))
    plan = from_tables(problem, {"purchases": pd.DataFrame(columns=["link", "module", "count"])})
    result = break_down(problem, plan)
    assert result is not None
    assert result.frame.set_index("class").to_dict(orient="index") == {
        "gold": {"offered_mbps": 6, "no_failure_mbps": 6, "protected_mbps": 6, "worst_failure_mbps": 6},
        # without a<->c, a<->b carries 6 of gold and 4 of bulk, and b<->c those and 1 more
        "bulk": {
            "offered_mbps": 10,
            "no_failure_mbps": 10,
            "protected_mbps": 5,
            "worst_failure_mbps": pytest.approx(4, abs=1e-5),
        },
    }


def test_what_does_not_fit_is_taken_from_the_lowest_priority() -> None:
    problem = problem_of((2.0, 3.0, 5.0))
    plan = from_tables(problem, {"purchases": pd.DataFrame(columns=["link", "module", "count"])})
    remaining = plan.unserved.groupby("class")["rate_mbps"].sum()
    assert remaining.to_dict() == {"bulk": pytest.approx(8.0)}
    # without a<->c, 11 must fit: 2 from a and 0.5 from b do
    assert measure(problem, plan, None)["unserved_mbps"] == pytest.approx(8.5)
    assert measure(problem, plan, None)["unprotected_mbps"] == pytest.approx(5.0)


def test_a_table_without_rows_needs_no_classes() -> None:
    """A plan that serves all is read from files whose optional columns have no value."""
    problem = problem_of((20.0, 20.0, 20.0))
    tables = {
        "purchases": pd.DataFrame(columns=["link", "module", "count"]),
        "unserved": pd.DataFrame(columns=["source", "target", "rate_mbps"]),
        "flows": from_tables(problem, {"purchases": pd.DataFrame(columns=["link", "module", "count"])}).flows,
    }
    assert measure(problem, from_tables(problem, tables), None)["unserved_mbps"] == 0


def test_without_classes_there_is_no_table_of_them() -> None:
    problem = ring()
    plan = from_tables(problem, {"purchases": pd.DataFrame(columns=["link", "module", "count"])})
    assert break_down(problem, plan) is None
