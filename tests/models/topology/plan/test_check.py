"""The check: plans made elsewhere, their limits, and tables that are no plan."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.topology import Fabric, Topology, check, measure
from planner_models.topology.plan.check import evaluate
from planner_models.topology.plan.plan import from_tables
from tests.models.topology.fabrics import fabric

ENDS = ["block", "other_block", "links"]


def small(**limits: float) -> Fabric:
    """Return three blocks in a ring of one link each, and 8 Mbit/s from a to b."""
    return fabric([[0, 8, 0], [0, 0, 0], [0, 0, 0]], links=[(0, 1, 1), (1, 2, 1), (0, 2, 1)], **limits)


def plan_of(problem: Fabric, *rows: tuple[str, str, float]) -> Topology:
    """Return the plan of these links; its routes and steps are found."""
    return from_tables(problem, {"topology": pd.DataFrame(rows, columns=ENDS)})


def limits_of(problem: Fabric, plan: Topology) -> list[tuple[str, str, float, float]]:
    """Return the violations of a plan: limit, place, amount and what is allowed."""
    frame = check(problem, plan).frame
    return list(frame[["limit", "where", "amount", "allowed"]].itertuples(index=False, name=None))


def test_a_list_of_links_is_a_plan() -> None:
    problem = small()
    plan = plan_of(problem, ("b", "a", 2.0), ("b", "c", 1.0), ("a", "c", 1.0))
    assert not len(check(problem, plan))
    figures = measure(problem, plan, None)
    assert figures["moved_links"] == 1
    assert figures["steps"] == 1
    assert figures["demand_scale"] == pytest.approx(30 / 8, rel=1e-3)
    assert figures["drain_scale"] == 1.0


def test_limits_are_found() -> None:
    problem = small(move_limit=1, step_limit=1)
    plan = plan_of(problem, ("a", "b", 4.0), ("b", "c", 1.0), ("a", "c", 1.0))
    result = limits_of(problem, plan)
    assert ("ports", "a", 5.0, 4.0) in result
    assert ("moves", "links made anew", 3.0, 1.0) in result
    at_once = pd.DataFrame([(1.0, "a", "b", 3.0)], columns=["step", *ENDS])
    steps = from_tables(problem, {**plan.to_tables(), "steps": at_once})
    assert ("steps", "step 1", 3.0, 1.0) in limits_of(problem, steps)


def test_a_step_that_leaves_too_little_is_found() -> None:
    problem = small()
    tables = plan_of(problem, ("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 1.0)).to_tables()
    away = [(1.0, "a", "b", -1.0), (1.0, "a", "c", -1.0), (2.0, "a", "b", 1.0), (2.0, "a", "c", 1.0)]
    plan = from_tables(problem, {**tables, "steps": pd.DataFrame(away, columns=["step", *ENDS])})
    assert limits_of(problem, plan) == [("drain", "step 1", 0.0, 1.0), ("drain", "step 2", 0.0, 1.0)]
    assert measure(problem, plan, None)["drain_scale"] == 0.0


def test_a_demand_without_a_path_is_found() -> None:
    problem = fabric([[0, 8, 2], [0, 0, 0], [0, 0, 0]])
    plan = plan_of(problem, ("a", "b", 2.0))
    assert limits_of(problem, plan) == [("routes", "a->c", 0.0, 1.0)]
    assert measure(problem, plan, None)["delivered_mbps"] == 8.0  # a->b, which fits


def changed(table: str, **columns: object) -> Callable[[Topology], dict[str, pd.DataFrame]]:
    return lambda plan: {table: plan.to_tables()[table].assign(**columns)}


WRONG: dict[str, tuple[Callable[[Topology], dict[str, pd.DataFrame]], str]] = {
    "an unknown block": (
        changed("topology", block=["z", "b", "a"]),
        "topology row 1: block 'z' is no block of the fabric",
    ),
    "a block with itself": (
        changed("topology", block=["b", "a", "c"], other_block=["b", "c", "a"]),
        "topology row 1: block and other_block are both 'b', must differ",
    ),
    "an unknown transit block": (
        lambda plan: {"routes": plan.routes.head(1).assign(via="z")},
        "routes row 1: via 'z' is no transit block",
    ),
    "shares above 1": (
        lambda _: {
            "routes": pd.DataFrame(
                [("a", "b", "", 0.9), ("a", "b", "c", 0.4)], columns=["source", "target", "via", "share"]
            )
        },
        "routes: shares from 'a' to 'b' add up to 1.3, must be at most 1",
    ),
    "a route of no demand": (
        changed("routes", source="b", target="a"),
        "routes row 1: there is no demand from 'b' to 'a'",
    ),
    "a step that is left out": (changed("steps", step=2.0), "steps: step must be 1, 2, 3 and so on"),
    "steps to other links": (
        changed("steps", links=2.0),
        "steps: lead to 3 links of 'a' and 'b', topology has 2",
    ),
    "more removed than there is": (
        changed("steps", links=-2.0),
        "steps: step 1 removes more links of 'a' and 'b' than there are",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_no_plan(case: str) -> None:
    change, words = WRONG[case]
    problem = small()
    plan = plan_of(problem, ("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 1.0))
    with pytest.raises(PlanRejected) as result:
        evaluate(problem, from_tables(problem, {**plan.to_tables(), **change(plan)}))
    assert words in str(result.value)


def test_a_plan_without_links_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="topology: is missing"):
        from_tables(small(), {})
