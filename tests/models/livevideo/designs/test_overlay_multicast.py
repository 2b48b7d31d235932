"""Overlay Multicast: the order of channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.livevideo import LiveVideo, check, measure
from planner_models.livevideo.designs import optimum, overlay_multicast
from planner_models.livevideo.plan.plan import build_plan
from tests.models.livevideo.networks import problem, problems

OBJECTS = [("w", 500.0, 1.0), ("w", 1500.0, 1.0), ("v", 2000.0, 1.0)]
REQUESTS = [("A", "w", 500.0, 1.0), ("A", "w", 1500.0, 1.0), ("A", "v", 2000.0, 1.0)]


def one_link(source_mbps: float) -> LiveVideo:
    """Return two channels behind one link, of which the second of the table is requested first."""
    tiers = {"S": "source", "E": "edge", "A": "group"}
    item = problem([("S", "E", source_mbps, 1.0), ("E", "A", 9.0, 0.0)], OBJECTS, REQUESTS, tiers=tiers)
    return item.with_requests(item.requests.assign(arrival_s=[2.0, 3.0, 1.0]))


@pytest.mark.parametrize(("order", "sent"), [("arrival", {("v", 2000.0)}), ("table", {("w", 1500.0)})])
def test_channels_take_links_in_their_order_and_the_highest_bitrate_first(
    order: str, sent: set[tuple[str, float]]
) -> None:
    mbps = 2.0 if order == "arrival" else 1.6
    plan = overlay_multicast.distribute(one_link(mbps), order=order).plan  # type: ignore[arg-type]
    assert plan is not None
    assert set(zip(plan.trees["channel"], plan.trees["bitrate_kbps"], strict=True)) == sent


@pytest.mark.parametrize(
    ("order", "sent"), [("arrival", {("A", "w"), ("B", "w")}), ("requests", {("A", "w"), ("B", "v")})]
)
def test_early_requests_of_all_channels_starve_later_ones_where_trees_grow_by_requests(
    order: str, sent: set[tuple[str, str]]
) -> None:
    tiers = {"S": "source", "E": "edge", "F": "edge", "A": "group", "B": "group"}
    links = [("S", "E", 9.0, 1.0), ("S", "F", 2.0, 1.0), ("E", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)]
    requests = [("A", "w", 1500.0, 1.0), ("B", "w", 1500.0, 1.0), ("B", "v", 2000.0, 1.0)]
    item = problem(links, OBJECTS, requests, tiers=tiers)
    item = item.with_requests(item.requests.assign(arrival_s=[1.0, 3.0, 2.0]))
    for sees_load in (True, False):
        plan = overlay_multicast.distribute(item, order=order, sees_load=sees_load).plan  # type: ignore[arg-type]
        assert plan is not None
        leaves = plan.trees[plan.trees["head"].isin(["A", "B"])]
        assert set(zip(leaves["head"], leaves["channel"], strict=True)) == sent


def test_a_random_order_is_that_of_its_seed() -> None:
    orders = [overlay_multicast._order_objects(one_link(2.0), "random", seed).tolist() for seed in range(8)]
    assert {tuple(order) for order in orders} == {(1, 0, 2), (2, 1, 0)}  # the bitrates of w together
    again = overlay_multicast._order_objects(one_link(2.0), "random", 3)
    assert np.array_equal(again, orders[3])


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
    links: np.ndarray = overlay_multicast.build_tree(
        entry.group, entry.value, price, first, into, entry.tail, entry.cost, has_object, usable
    )
    return links


def tree_value(item: LiveVideo, links: np.ndarray) -> float:
    """Return the objective of a plan of these links."""
    plan = build_plan(item, np.full(len(links), int(item.object[0])), links)
    check(item, plan)  # PlanRejected where it is no tree
    return measure(item, plan, None)["service_minus_cost"] or 0.0


@settings(max_examples=10, deadline=None)
@given(problems(), st.integers(0, 9))
def test_any_tree_has_the_value_of_the_best_where_cost_has_no_weight(one: LiveVideo, seed: int) -> None:
    single = with_one_object(replace(one, settings=one.settings.assign(cost_weight=0.0)))
    best = optimum.distribute(single).proof.objective
    decision = overlay_multicast.distribute(single, trees="any", seed=seed)
    assert decision.plan is not None
    assert not len(check(single, decision.plan))
    assert decision.proof.objective == pytest.approx(best, abs=1e-9)


def test_any_tree_is_drawn_by_its_seed_and_the_cheapest_is_not() -> None:
    tiers = {"S": "source", "E": "edge", "F": "edge", "A": "group"}
    links = [("S", "E", 9.0, 1.0), ("S", "F", 9.0, 5.0), ("E", "A", 9.0, 0.0), ("F", "A", 9.0, 0.0)]
    item = problem(links, OBJECTS[:1], REQUESTS[:1], tiers=tiers)
    used: dict[str, set[str]] = {}
    for trees in ("cheapest", "any"):
        plans = [overlay_multicast.distribute(item, trees=trees, seed=seed).plan for seed in range(8)]  # type: ignore[arg-type]
        used[trees] = {str(plan.trees["tail"].iloc[-1]) for plan in plans if plan is not None}
    assert used == {"cheapest": {"E"}, "any": {"E", "F"}}
