"""Byzantine agreement: places beside enumeration, rounds beside their formulas, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import PlanRejected
from planner.search.deadline import NEVER
from planner_models.membership import Membership, check, measure
from planner_models.membership.designs import agreement
from planner_models.membership.plan.plan import MembershipPlan
from planner_models.membership.problem.generators import service_row, site_row
from planner_models.membership.problem.readers.sources import cloud


def regions_apart(rtt: np.ndarray, faults: int = 1) -> Membership:
    """Return a region for each row of round-trip times, with a host each."""
    names = [f"r{row}" for row in range(len(rtt))]
    sites = [site_row(name, "region", hosts=2.0, price_per_month=10.0) for name in names]
    pairs = [(names[a], names[b], rtt[a, b]) for a, b in itertools.combinations(range(len(rtt)), 2)]
    return Membership(
        sites=pd.DataFrame(sites),
        delays=pd.DataFrame(pairs, columns=["from", "to", "rtt_ms"]),
        services=pd.DataFrame([service_row(protocol="byzantine", faults=float(faults))]),
    )


def plan_of(problem: Membership, decide: object = agreement.plan_early) -> MembershipPlan:
    plan = decide(problem).plan  # type: ignore[operator]
    assert plan is not None
    return plan


@given(st.integers(4, 8), st.lists(st.integers(1, 12), min_size=28, max_size=28))
def test_no_other_members_are_nearer_to_each_other(count: int, times: list[int]) -> None:
    rtt = np.zeros((count, count))
    for (a, b), time in zip(itertools.combinations(range(count), 2), times, strict=False):
        rtt[a, b] = rtt[b, a] = time
    problem = regions_apart(rtt)
    decision = agreement.plan_early(problem)
    assert decision.proof.status is Status.OPTIMAL
    least = min(
        max(rtt[a, b] for a, b in itertools.combinations(rows, 2))
        for rows in itertools.combinations(range(count), 4)
    )
    metrics = measure(problem, plan_of(problem), None)
    assert metrics["commit_ms"] == pytest.approx(2 * least / 2)
    assert not check(problem, plan_of(problem))


def test_cliques_are_those_of_networkx() -> None:
    import networkx as nx

    rng = np.random.default_rng(0)
    for _ in range(20):
        near = np.triu(rng.random((14, 14)) < 0.55, 1)
        near |= near.T
        largest = max(len(clique) for clique in nx.find_cliques(nx.Graph(near)))
        found = agreement.find_clique(near, largest, NEVER)
        assert found is not None
        assert near[np.ix_(found, found)].sum() == largest * (largest - 1)
        assert agreement.find_clique(near, largest + 1, NEVER) is None


@pytest.mark.parametrize(
    ("decide", "liars", "rounds"),
    [
        (agreement.plan_psl, 0, 3),
        (agreement.plan_bgp, 0, 2),
        (agreement.plan_bgp, 1, 3),
        (agreement.plan_gm, 0, 3),
        (agreement.plan_early, 0, 2),
        (agreement.plan_early, 2, 3),
    ],
)
def test_rounds_are_those_of_the_theorems(decide: object, liars: int, rounds: int) -> None:
    problem = regions_apart(np.full((7, 7), 20.0), faults=2)
    plan = decide(problem, liars=liars).plan  # type: ignore[operator]
    assert plan.protocol["rounds"].iloc[0] == rounds
    assert plan.protocol["commit_ms"].iloc[0] == 10.0 * rounds
    assert plan.protocol["quorum"].iloc[0] == 5


def test_early_stopping_is_the_first_polynomial_one_up_to_13_members() -> None:
    """GM98 stops before t + 1 rounds only for t > 4; trees of t = 4 have 173,485 values."""
    problem = regions_apart(np.full((13, 13), 20.0), faults=4)
    figures = {
        name: measure(problem, plan_of(problem, decide), None)
        for name, decide in (
            ("psl", agreement.plan_psl),
            ("gm", agreement.plan_gm),
            ("early", agreement.plan_early),
        )
    }
    assert figures["gm"]["commit_ms"] == figures["psl"]["commit_ms"] == 50.0
    assert figures["early"]["commit_ms"] == 20.0
    assert figures["psl"]["decision_values"] == 173_485
    assert figures["early"]["decision_values"] is None
    assert figures["early"]["decision_messages"] == 2 * 13 * 12


def test_too_few_regions_and_members_are_named() -> None:
    problem = regions_apart(np.full((3, 3), 20.0))
    reasons = agreement.plan_early(problem, apart="region").proof.reasons
    assert reasons == ("store: 4 members are needed (n > 3t), there are 3 regions for them",)
    problem = regions_apart(np.full((6, 6), 5.0))
    crashes = replace(problem, services=pd.DataFrame([service_row(faults=11.0)]))
    alone = agreement.plan_early(crashes).proof.reasons
    assert alone == ("store: 34 members are needed (n > 3t), there must be at most 31",)


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("rounds", 7.0, "rounds of service 'store' are 7, must be 2 to 2"),
        ("commit_ms", 19.0, "the delays make it 20"),
    ],
)
def test_other_rounds_and_times_are_rejected(column: str, value: float, text: str) -> None:
    problem = regions_apart(np.full((4, 4), 20.0))
    plan = plan_of(problem)
    wrong = replace(plan, protocol=plan.protocol.assign(**{column: value}))
    with pytest.raises(PlanRejected, match=text):
        check(problem, wrong)


def test_regions_of_clouds_are_near_in_polynomial_time() -> None:
    problem = cloud(protocol="byzantine", faults=2, zones=1)
    decision = agreement.plan_early(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert measure(problem, plan_of(problem), None)["regions"] == 7
