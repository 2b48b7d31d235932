"""Trees of single objects, for any number of tiers: optimal for few groups, nearly so for many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import optimum, overlay_multicast
from planner_models.livevideo.designs.tree import steiner
from planner_models.livevideo.plan.plan import build_plan
from tests.models.livevideo.networks import problems


def with_one_object(entry: LiveVideo) -> LiveVideo:
    """Return the problem with the requests for the most requested object only."""
    item = int(np.bincount(entry.object).argmax())
    return entry.with_requests(entry.requests[entry.object == item].reset_index(drop=True))


@pytest.mark.slow
@given(st.integers(2, 6).flatmap(lambda tiers: problems(tiers=tiers, rules=True)))
@settings(max_examples=25)
def test_one_object_alone_gets_its_best_tree(one: LiveVideo) -> None:
    single = with_one_object(one)
    best = optimum.distribute(single).proof.objective
    decision = overlay_multicast.distribute(single)
    assert decision.plan is not None
    assert not len(check(single, decision.plan))
    assert decision.proof.objective == pytest.approx(best, abs=1e-9)


@pytest.mark.slow
@given(st.integers(2, 6).flatmap(lambda tiers: problems(tiers=tiers)), st.sampled_from([0.0, 0.05, 0.5]))
@settings(max_examples=25)
def test_a_greedy_tree_is_close_to_the_best(one: LiveVideo, cost_weight: float) -> None:
    single = with_one_object(replace(one, settings=one.settings.assign(cost_weight=cost_weight)))
    best = optimum.distribute(single).proof.objective or 0.0
    value = tree_value(single, greedy_links(single))
    assert value <= best + 1e-9
    assert value >= 0.75 * best - 1e-9


def greedy_links(entry: LiveVideo) -> np.ndarray:
    """Return the links of the tree that `steiner.build_tree` finds for the only object."""
    item = int(entry.object[0])
    into = np.argsort(entry.head, kind="stable")
    first = np.searchsorted(entry.head[into], np.arange(len(entry.clusters) + 1))
    has_object = np.zeros(len(entry.clusters), dtype=bool)
    has_object[entry.sources[entry.is_at_source[item]]] = True
    usable = entry.capacity_mbps >= entry.bitrate_mbps[item]
    price = entry.cost_weight * float(entry.bitrate_mbps[item])
    links: np.ndarray = steiner.build_tree(
        entry.group, entry.value, price, first, into, entry.tail, entry.cost, has_object, usable
    )
    return links


def tree_value(item: LiveVideo, links: np.ndarray) -> float:
    """Return the objective of a plan of these links."""
    plan = build_plan(item, np.full(len(links), int(item.object[0])), links)
    check(item, plan)  # PlanRejected where it is no tree
    return measure(item, plan, None)["service_minus_cost"] or 0.0
