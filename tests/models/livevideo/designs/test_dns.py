"""CDN with DNS: cached answers, and reports of monitors with noise and age."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from planner_models.livevideo import LiveVideo
from planner_models.livevideo.designs import dns
from planner_models.livevideo.plan.check import compute_delivery
from tests.models.livevideo.networks import problem
from tests.models.livevideo.observations import cluster_view, heads, one_way


def narrow() -> LiveVideo:
    """Return a problem with two paths to an edge, the first one wider; v has a second bitrate."""
    return problem(
        [("S", "X", 3.0, 1.0), ("S", "Y", 2.5, 1.0), ("X", "E", 3.0, 1.0), ("Y", "E", 2.5, 1.0),
         ("E", "A", 9.0, 0.0)],
        [("v", 2000.0, 1.0), ("v", 1500.0, 1.0), ("w", 1000.0, 1.0)],
        [("A", "v", 2000.0, 1.0), ("A", "v", 1500.0, 1.0)],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "A": "group"},
    )  # fmt: skip


def test_a_cached_answer_binds_the_channel_to_a_parent() -> None:
    """For 30 s DNS sends all of v over X, which is full by then; after 31 s the cluster queries again."""
    for arrival, served in ((10.0, 1), (31.0, 2)):
        item = narrow()
        item = item.with_requests(item.requests.assign(arrival_s=[0.0, arrival]))
        plan = dns.distribute(item).plan
        assert plan is not None
        assert compute_delivery(item, plan).served.sum() == served
        fresh = dns.distribute_1s(item).plan
        assert fresh is not None
        assert compute_delivery(item, fresh).served.sum() == 2


def test_old_measurements_lead_to_a_full_link() -> None:
    """With capacities of a minute ago both take the path that was wider, and the second does not fit."""
    item = narrow()
    asked = pd.DataFrame({"group": "A", "channel": ["v", "w"], "bitrate_kbps": [2500.0, 1000.0],
                          "arrival_s": [0.0, 5.0]})  # fmt: skip
    objects = pd.DataFrame({"channel": ["v", "w"], "bitrate_kbps": [2500.0, 1000.0]})
    item = replace(item, objects=objects, requests=asked)
    for monitor_s, served in ((0.0, 2), (60.0, 1)):
        plan = dns.distribute(item, monitor_s=monitor_s).plan
        assert plan is not None
        assert compute_delivery(item, plan).served.sum() == served


def test_dns_follows_the_reports_of_monitors() -> None:
    """A wrong report leads to a link without capacity, where the request is denied."""
    item = one_way()
    links = item.links.assign(latency_ms=[1.0, 1.0, 1.0, 1.0, 1.0, 9.0])
    item = replace(item, links=links)
    assert heads(dns.distribute(cluster_view(item)).plan) == {"X", "E", "A"}
    assert heads(dns.distribute(cluster_view(item, ("S", "X", -0.5))).plan) == {"Y", "F", "A"}
    narrow = replace(item, links=links.assign(capacity_mbps=[0.5, 1.0, 1.0, 1.0, 9.0, 9.0]))
    assert heads(dns.distribute(narrow).plan) == {"Y", "F", "A"}
    assert heads(dns.distribute(cluster_view(narrow, ("S", "X", 0.5))).plan) == set()
