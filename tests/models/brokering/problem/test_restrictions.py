"""Clients pinned to clusters, and clusters forbidden to clients: every design obeys, or explains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.brokering import SYSTEM, Assignment, Brokering, check
from planner_models.brokering.designs.broker import assignment
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets

COLUMNS = ["location", "isp", "content", "cdn", "cluster"]


def rules(*rows: tuple[str, str, str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def small() -> Brokering:
    return make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2), ("c", "x", "Oslo", 50.0, 0.3)],
    )


@pytest.mark.parametrize("design", [design.name for design in SYSTEM.designs])
def test_every_design_obeys_rules(design: str) -> None:
    problem = replace(
        small(), pinned=rules(("Lyon", "*", "*", "*", "b")), forbidden=rules(("Oslo", "*", "news", "y", "*"))
    )
    run = evaluate(SYSTEM, problem, Entry(label=design, design=SYSTEM.design(design)))
    assert run.plan is not None
    where = run.plan.assignments.set_index("location")["cluster"]
    assert where["Lyon"] == "b"  # also where only the CDN's best cluster is on offer
    assert where["Oslo"] in ("a", "c")
    assert not len(run.violations)


@st.composite
def restricted_markets(draw: st.DrawFn) -> Brokering:
    problem = draw(markets(max_clients=3, tight=False))
    positions = ["*", *problem.clients["location"].unique()]
    clusters = [*problem.clusters["cluster"]]

    def some(upper: int) -> pd.DataFrame:
        row = st.tuples(
            st.sampled_from(positions),
            st.sampled_from(["*", "isp"]),
            st.sampled_from(["*", "news"]),
            st.just("*"),
            st.sampled_from(clusters),
        )
        return rules(*draw(st.lists(row, max_size=upper, unique=True)))

    try:
        return replace(problem, pinned=some(1), forbidden=some(2))
    except InputError:
        return replace(problem, forbidden=rules())


@pytest.mark.slow
@settings(max_examples=12)
@given(restricted_markets())
def test_the_plan_obeys_rules_and_is_the_best_that_does(problem: Brokering) -> None:
    strict = Options(gap=1e-9, time_limit_s=600, service="all")
    fast = assignment.assign(problem, options=strict)
    reference = assignment.assign(problem, options=replace(strict, backend="pyomo:highs"))
    assert (fast.plan is None) == (reference.plan is None)
    if fast.plan is None:
        assert fast.proof.status is Status.INFEASIBLE
        return
    assert fast.proof.objective == pytest.approx(reference.proof.objective, rel=1e-4)
    assert not len(check(problem, fast.plan))
    free = assignment.assign(replace(problem, pinned=None, forbidden=None), options=strict)
    assert free.proof.objective is not None
    assert fast.proof.objective is not None
    assert free.proof.objective <= fast.proof.objective * (1 + 1e-7) + 1e-9


def test_violated_rules_are_listed() -> None:
    problem = replace(
        small(), pinned=rules(("Lyon", "*", "*", "x", "*")), forbidden=rules(("Oslo", "*", "*", "*", "b"))
    )
    plan = Assignment(assignments=problem.clients.assign(cluster="b"))
    frame = check(problem, plan).frame
    assert frame[["limit", "where", "amount"]].to_numpy().tolist() == [
        ["pinned", "Lyon/isp/news in b", 10.0],
        ["forbidden", "Oslo/isp/news in b", 4.0],
    ]


BAD = [
    (
        {"pinned": rules(("Lyonn", "*", "*", "*", "b"))},
        "pinned row 1: location 'Lyonn', isp '*', content '*' is no clients of the problem",
    ),
    (
        {"forbidden": rules(("*", "*", "*", "x", "b"))},
        "forbidden row 1: cdn 'x', cluster 'b' is no cluster of the problem",
    ),
]


@pytest.mark.parametrize(("change", "line"), BAD)
def test_impossible_rules_are_one_clear_line(change: dict[str, pd.DataFrame], line: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(small(), **change)  # type: ignore[arg-type]
    assert caught.value.faults == (line,)


def test_pinned_clients_that_do_not_fit_are_explained() -> None:
    problem = make([("Lyon", 1000.0, 100)], [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 500.0, 0.2)])
    pinned = replace(problem, pinned=rules(("*", "*", "news", "x", "*")))
    proof = assignment.assign(pinned, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == (
        (
            "clients in Lyon demand 100 Mbit/s; the residual capacity on offer to them, in 1 cluster, "
            "is 60 Mbit/s"
        ),
    )


def test_clients_that_rules_leave_no_cluster_are_shed() -> None:
    problem = replace(
        small(), pinned=rules(("Lyon", "*", "*", "*", "b")), forbidden=rules(("*", "*", "*", "y", "*"))
    )
    plan = assignment.assign(problem).plan
    assert plan is not None
    assert plan.shed is not None
    assert plan.shed[["location", "clients"]].to_numpy().tolist() == [["Lyon", 10.0]]
    assert not len(check(problem, plan))


def test_rules_are_part_of_the_tables() -> None:
    problem = replace(
        small(), pinned=rules(("Lyon", "*", "*", "*", "b")), forbidden=rules(("Oslo", "*", "news", "y", "*"))
    )
    again = Brokering.from_tables(problem.to_tables())
    assert np.array_equal(again.allowed, problem.allowed)
    assert problem.allowed.tolist() == [[False, True, False], [True, False, True]]
