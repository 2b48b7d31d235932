"""False bids: what a broker that believes them loses, and what a reputation gives back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.arrays import Floats
from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.options import Options
from planner_models.brokering import Assignment, Brokering, check, measure
from planner_models.brokering.designs import reputation, several_brokers
from planner_models.brokering.designs.broker import assignment
from tests.models.brokering.markets import market, markets

EXACT = Options(gap=1e-9)


def two_cdns(*, honest_mbps: float) -> Brokering:
    """Return a market of ten clients of 1 Mbit/s, with a good cluster and another CDN's poor one."""
    return market(
        [("Lyon", 1000.0, 10)],
        [("good", "honest", "Lyon", honest_mbps, 0.1), ("poor", "liar", "Lyon", 10.0, 0.1)],
        scores=[("Lyon", "good", 30.0), ("Lyon", "poor", 50.0)],
    )


def clients_of(plan: Assignment | None) -> dict[str, float]:
    """Return the clients of each cluster."""
    assert plan is not None
    return plan.assignments.groupby("cluster")["clients"].sum().to_dict()


@pytest.mark.parametrize(
    ("parameters", "clients"),
    [
        ({"handling": "trust"}, {"poor": 10.0}),  # 25 claimed against 30
        ({}, {"good": 10.0}),
        ({"rounds": 2}, {"poor": 10.0}),  # the second fault is found after the last decision
        ({"strikes": 1, "rounds": 2}, {"good": 10.0}),
        ({"claim": 0.8}, {"good": 10.0}),  # 40 claimed
        ({"tolerance": 1.5}, {"poor": 10.0}),  # twice the claimed score is no fault
    ],
)
def test_a_false_bid_wins_until_its_cdn_is_known(
    parameters: dict[str, float | str], clients: dict[str, float]
) -> None:
    decision = reputation.assign(two_cdns(honest_mbps=10.0), false_bidders=("liar",), **parameters)  # type: ignore[arg-type]
    assert clients_of(decision.plan) == clients


def test_whom_no_other_bid_serves_a_bad_reputation_serves() -> None:
    problem = two_cdns(honest_mbps=6.0)
    notes: list[str] = []
    with observe_notes(notes.append):
        decision = reputation.assign(problem, false_bidders=("liar",))
    assert decision.plan is not None
    assert clients_of(decision.plan) == {"good": 6.0, "poor": 4.0}
    assert not len(check(problem, decision.plan))
    assert any("bids of liar come last" in note for note in notes)


def test_an_unknown_cdn_is_refused() -> None:
    with pytest.raises(InputError, match="'lier' is no CDN; did you mean 'liar'"):
        reputation.assign(two_cdns(honest_mbps=6.0), false_bidders=("lier",))


def with_scores(problem: Brokering, score: Floats) -> Brokering:
    """Return the same market with a table of scores, (L, C)."""
    names = pd.MultiIndex.from_product([problem.locations["location"], problem.clusters["cluster"]])
    table = pd.DataFrame({"score": score.ravel()}, index=names).rename_axis(["location", "cluster"])
    return replace(problem, scores=table.reset_index())


@settings(max_examples=15, deadline=None)
@given(markets(), st.floats(0.2, 1.0), st.sampled_from(["cdn0", "cdn1", "cdn2"]))
def test_belief_is_the_optimum_of_the_claims_and_priority_serves_no_more_than_others_leave(
    problem: Brokering, claim: float, name: str
) -> None:
    names = (name,) if name in problem.cdn_names else ()
    assign = partial(reputation.assign, problem, false_bidders=names, claim=claim, tolerance=0.0)
    trusting = assign(handling="trust", options=EXACT)
    is_false = np.isin(problem.clusters["cdn"], names)
    believed = with_scores(problem, problem.score * np.where(is_false, claim, 1.0))
    best = assignment.assign(believed, options=EXACT)
    assert trusting.plan is not None
    assert best.plan is not None
    of_claims = [measure(believed, plan, None) for plan in (trusting.plan, best.plan)]
    assert of_claims[0]["shed"] == of_claims[1]["shed"]
    assert of_claims[0]["objective"] == pytest.approx(of_claims[1]["objective"], rel=1e-6)

    careful = assign(options=EXACT)
    assert careful.plan is not None
    assert set(check(problem, careful.plan).frame["limit"]) <= {"demand"}  # what is shed is no fault
    false_clusters = problem.clusters["cluster"][is_false]
    served = sum(clients_of(careful.plan).get(cluster, 0.0) for cluster in false_clusters)
    if claim < 1 and any(cluster in clients_of(trusting.plan) for cluster in false_clusters):
        others = problem.with_observation(
            offered=problem.offered & ~is_false, score=problem.score, price=problem.price,
            capacity_mbps=problem.capacity_mbps, background_mbps=problem.background_mbps,
        )  # fmt: skip
        alone = assignment.assign(others, options=EXACT)
        assert alone.plan is not None
        left = 0.0 if alone.plan.shed is None else float(alone.plan.shed["clients"].sum())
        assert served <= left


def test_clients_that_are_shed_are_found_in_equal_rows() -> None:
    problem = market(
        [("Lyon", 1000.0, 3), ("Lyon", 1000.0, 5), ("Oslo", 1000.0, 2)], [("a", "x", "Lyon", 4.0, 0.1)]
    )
    plan = assignment.assign(problem).plan
    assert plan is not None
    counts = several_brokers.count_shed(problem, plan)
    assert counts.sum() == 6
    assert (counts <= problem.count).all()
