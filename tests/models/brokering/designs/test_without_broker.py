"""A broker that has failed: content providers ask CDNs directly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from planner.errors import InputError
from planner.options import Options
from planner_models.brokering import SYSTEM, Brokering, check, measure
from planner_models.brokering.designs import without_broker
from planner_models.brokering.designs.broker import assignment
from tests.models.brokering.markets import market, markets

EXACT = Options(gap=1e-9)


def two_cdns() -> Brokering:
    """Return ten clients of 1 Mbit/s, a near CDN with little capacity and a cheap one farther away."""
    return market(
        [("Lyon", 1000.0, 10)],
        [("n1", "near", "Lyon", 6.0, 0.3), ("c1", "cheap", "Turin", 20.0, 0.1)],
        scores=[("Lyon", "n1", 10.0), ("Lyon", "c1", 50.0)],
    )


@pytest.mark.parametrize(
    ("parameters", "clients", "shed"),
    [
        ({}, {"n1": 6.0}, 4.0),  # 10 each and 1.35 an hour, against 50 and 0.45
        ({"choice": "contract"}, {"c1": 10.0}, 0.0),
        ({"choice": "performance"}, {"n1": 6.0}, 4.0),
        ({"fallback": ("near",)}, {"n1": 6.0}, 4.0),
        ({"fallback": ("near", "cheap")}, {"n1": 6.0, "c1": 4.0}, 0.0),
        ({"fallback": ("cheap", "near", "cheap")}, {"c1": 10.0}, 0.0),
    ],
)
def test_cdns_are_asked_one_after_the_other(
    parameters: dict[str, object], clients: dict[str, float], shed: float
) -> None:
    decision = SYSTEM.design("without_broker").run(two_cdns(), parameters=parameters)
    assert decision.plan is not None
    assert decision.plan.assignments.groupby("cluster")["clients"].sum().to_dict() == clients
    assert (measure(two_cdns(), decision.plan, None)["shed"] or 0.0) == shed


def test_an_unknown_cdn_is_refused() -> None:
    with pytest.raises(InputError, match="fallback: 'neer' is no CDN; did you mean 'near'"):
        without_broker.assign(two_cdns(), fallback=("neer",))


def test_all_clients_must_fit_where_all_must_be_served() -> None:
    decision = without_broker.assign(two_cdns(), fallback=("near",), options=Options(service="all"))
    assert decision.plan is None
    assert "do not fit the clusters of near" in decision.proof.reasons[0]


@settings(max_examples=15, deadline=None)
@given(markets())
def test_one_cdn_is_the_optimum_of_its_clusters_and_no_better_than_a_broker(problem: Brokering) -> None:
    best = assignment.assign(problem, options=EXACT)
    assert best.proof.bound is not None
    for name in problem.cdn_names:
        decision = without_broker.assign(problem, fallback=(name,), options=EXACT)
        assert decision.plan is not None
        assert set(check(problem, decision.plan).frame["limit"]) <= {"demand"}
        used = set(decision.plan.assignments["cluster"])
        assert used <= set(problem.clusters["cluster"][problem.clusters["cdn"] == name])
        objective = measure(problem, decision.plan, None)["objective"]
        assert objective is not None
        assert objective >= best.proof.bound * (1 - 1e-9) - 1e-6
        served = measure(problem, decision.plan, None)["served"]
        assert served == most_served(problem, name)


def most_served(problem: Brokering, name: str) -> float:
    """Return the most clients that the clusters of a CDN can hold, by enumeration of all sets of counts."""
    capacity = problem.residual_mbps[problem.cdn == problem.cdn_names.index(name)]
    states = {tuple(np.zeros(len(capacity)))}
    most = {next(iter(states)): 0}
    for rate, count in zip(problem.bitrate_mbps, problem.count, strict=True):
        following: dict[tuple[float, ...], int] = {}
        for load, served in most.items():
            for split in itertools.product(range(int(count) + 1), repeat=len(capacity)):
                if sum(split) > count:
                    continue
                after = np.array(load) + rate * np.array(split)
                if (after > capacity + 1e-9).any():
                    continue
                key = tuple(np.round(after, 6))
                following[key] = max(following.get(key, -1), served + sum(split))
        most = following
    return float(max(most.values()))
