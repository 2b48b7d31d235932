"""Trees of single objects: the best for few groups, close to it for many, whatever the number of tiers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, check, measure, multicast, optimum, steiner
from tests.livevideo.networks import problems


def alone(one: LiveVideo) -> LiveVideo:
    """Only the requests for the object that most ask for."""
    item = int(np.bincount(one.object).argmax())
    return one.with_requests(one.requests[one.object == item].reset_index(drop=True))


@given(st.integers(2, 6).flatmap(lambda tiers: problems(tiers=tiers, rules=True)))
@settings(max_examples=25)
def test_one_object_alone_gets_its_best_tree(one: LiveVideo) -> None:
    single = alone(one)
    best = optimum.distribute(single).proof.objective
    decision = multicast.distribute(single)
    assert decision.plan is not None
    assert not len(check(single, decision.plan))
    assert decision.proof.objective == pytest.approx(best, abs=1e-9)


@given(st.integers(2, 6).flatmap(lambda tiers: problems(tiers=tiers)), st.sampled_from([0.0, 0.05, 0.5]))
@settings(max_examples=25)
def test_a_tree_grown_is_close_to_the_best(one: LiveVideo, cost_weight: float) -> None:
    single = alone(replace(one, settings=one.settings.assign(cost_weight=cost_weight)))
    best = optimum.distribute(single).proof.objective or 0.0
    grown = worth(single, grown_tree(single))
    assert grown <= best + 1e-9
    assert grown >= 0.75 * best - 1e-9


def grown_tree(one: LiveVideo) -> np.ndarray:
    item = int(one.object[0])
    into = np.argsort(one.head, kind="stable")
    first = np.searchsorted(one.head[into], np.arange(len(one.clusters) + 1))
    have = np.zeros(len(one.clusters), dtype=bool)
    have[one.sources[one.held[item]]] = True
    usable = one.capacity_mbps >= one.bitrate_mbps[item]
    price = one.cost_weight * float(one.bitrate_mbps[item])
    links: np.ndarray = steiner.grown(
        one.group, one.value, price, first, into, one.tail, one.cost, have, usable
    )
    return links


def worth(one: LiveVideo, links: np.ndarray) -> float:
    from planner_models.livevideo.trees import plan_of

    plan = plan_of(one, np.full(len(links), int(one.object[0])), links)
    check(one, plan)  # PlanRejected where it is no tree
    return measure(one, plan, None)["service_minus_cost"] or 0.0
