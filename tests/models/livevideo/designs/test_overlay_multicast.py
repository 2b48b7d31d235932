"""Overlay Multicast: the order of channels."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.livevideo import LiveVideo
from planner_models.livevideo.designs import overlay_multicast
from tests.models.livevideo.networks import problem

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
