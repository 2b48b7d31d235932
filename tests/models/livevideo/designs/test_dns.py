"""CDN with DNS: cached answers, and reports of monitors with noise and age."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.notes import observe_notes
from planner_models.livevideo import SYSTEM, LiveVideo
from planner_models.livevideo.designs import dns
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.plan.plan import PortsetTrees
from planner_models.livevideo.problem import generators
from tests.models.livevideo.networks import problem, problems
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


def two_channels() -> LiveVideo:
    """Return requests for two channels; after the first, the other path is the wider one."""
    item = narrow()
    objects = pd.DataFrame({"channel": ["v", "w"], "bitrate_kbps": [2000.0, 1500.0]})
    asked = pd.DataFrame({"group": "A", "channel": ["v", "w"], "bitrate_kbps": [2000.0, 1500.0],
                          "arrival_s": [0.0, 5.0]})  # fmt: skip
    return replace(item, objects=objects, requests=asked)


def test_channels_of_a_portset_share_answers() -> None:
    """Both channels go over X, which is full after the first; with a portset each, w takes Y."""
    item = two_channels()
    for portsets, served in ((1, 1), (2, 2), (None, 2)):
        plan = dns.distribute(item, portsets=portsets).plan
        assert plan is not None
        assert compute_delivery(item, plan).served.sum() == served
    later = item.with_requests(item.requests.assign(arrival_s=[0.0, 31.0]))
    plan = dns.distribute(later, portsets=1).plan
    assert plan is not None
    assert compute_delivery(later, plan).served.sum() == 2


@given(problems(), st.integers(0, 9))
@settings(max_examples=25)
def test_a_portset_for_each_channel_changes_nothing(item: LiveVideo, seed: int) -> None:
    channels = item.objects["channel"].nunique()
    rng = np.random.default_rng(seed)
    item = item.with_requests(item.requests.assign(arrival_s=rng.uniform(0, 60, len(item.requests))))
    each = dns.distribute(item, portsets=channels, seed=seed).plan
    none = dns.distribute(item, seed=seed).plan
    assert each is not None
    assert none is not None
    pd.testing.assert_frame_equal(each.trees, none.trees)
    signalling = SYSTEM.design("cdn").signalling
    assert signalling is not None
    assert signalling(item, each) == signalling(item, none)


def test_portsets_mix_popular_and_unpopular_channels_and_save_queries() -> None:
    item = generators.heavy_tail(videos=60, groups=30, edges=10, requests_per_video=3.0)
    portset = dns.assign_portsets(item, 4)
    clients = np.bincount(item.channel_number[item.object], weights=item.clients, minlength=len(portset))
    sizes = np.bincount(portset)
    assert sizes.max() - sizes.min() <= 1
    totals = np.bincount(portset, weights=clients)
    assert set(portset[np.argsort(-clients, kind="stable")[:4]]) == {0, 1, 2, 3}
    assert totals.max() - totals.min() <= clients.max()
    signalling = SYSTEM.design("cdn").signalling
    assert signalling is not None
    notes: list[str] = []
    with observe_notes(notes.append):
        binned, alone = dns.distribute(item, portsets=4).plan, dns.distribute(item).plan
    assert isinstance(binned, PortsetTrees)
    assert alone is not None
    assert signalling(item, binned).messages < signalling(item, alone).messages
    assert len(notes) == 1
    assert notes[0].startswith("assumed: channels are dealt out to portsets (4)")
