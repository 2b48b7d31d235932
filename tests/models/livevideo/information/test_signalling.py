"""Messages and bytes, counted by hand on six links."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

from planner import Options
from planner.contract.signalling import Signalling, no_signalling
from planner_models.livevideo import LiveVideo, Trees
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.information import signalling
from tests.models.livevideo.networks import problem, problems


def two_ways(*asked: tuple[str, str, float, float]) -> LiveVideo:
    """S to A over X and E, to B over Y and F; requests of (group, channel, bitrate, time)."""
    item = problem(
        [("S", "X", 9.0, 1.0), ("S", "Y", 9.0, 1.0), ("X", "E", 9.0, 1.0), ("Y", "F", 9.0, 1.0),
         ("E", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("v", 2000.0, 1.0), ("w", 1000.0, 1.0)],
        [(group, channel, rate, 1.0) for group, channel, rate, _ in asked],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "F": "edge", "A": "group",
               "B": "group"},
    )  # fmt: skip
    return item.with_requests(item.requests.assign(arrival_s=[time for *_, time in asked]))


def trees(*rows: tuple[str, float, str, str]) -> Trees:
    return Trees(trees=pd.DataFrame(rows, columns=["channel", "bitrate_kbps", "tail", "head"]))


V_TO_A = [("v", 1000.0, "S", "X"), ("v", 1000.0, "X", "E"), ("v", 1000.0, "E", "A")]
V_TO_B = [("v", 1000.0, "S", "Y"), ("v", 1000.0, "Y", "F"), ("v", 1000.0, "F", "B")]
ASKED = [("A", "v", 1000.0, 0.5), ("B", "v", 1000.0, 10.5), ("A", "w", 1000.0, 30.5)]


def test_a_controller_receives_reports_and_sends_next_hops() -> None:
    """5 clusters report 6 links (12 bytes) and 3 requests (24); 4 clusters hear a version (8) and a next
    hop (16), DNS where 2 clients go (20)."""
    counted = signalling.count_central(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=5 + 4 + 1, bytes=6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_the_controller_of_each_channel_receives_all_links() -> None:
    """v and w are requested, v has trees."""
    counted = signalling.count_per_channel(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=2 * 5 + 4 + 1, bytes=2 * 6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_clusters_announce_their_objects_every_second() -> None:
    """4 links between clusters, 60 times a row of 16 bytes for what is not received; X tells E of v 60
    times, Y tells F from the 11th second on, 28 bytes each. E and F have no clusters below."""
    counted = signalling.count_distributed(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=4 * 60, bytes=4 * 60 * 16 + (60 + 50) * 28)


def test_hybrid_signalling_is_the_sum() -> None:
    item, plan = two_ways(*ASKED), trees(*V_TO_A, *V_TO_B)
    both, central, local = (
        count(item, plan)
        for count in (signalling.count_hybrid, signalling.count_central, signalling.count_distributed)
    )
    assert both == Signalling(messages=central.messages + local.messages, bytes=central.bytes + local.bytes)


@pytest.mark.parametrize(("ttl_s", "again"), [(40.0, 0), (30.0, 3), (1.0, 3)])
def test_clusters_query_dns_when_an_answer_expires(ttl_s: float, again: int) -> None:
    """5 clusters report 6 links and the 6 objects that X, Y, E and F receive, 12 bytes each. A and B, and
    the clusters on their ways, ask for v, A for w in vain. After 31 s A wants v at 2000 kbit/s: what A,
    E and X heard of v is 30.5 s old."""
    rows = [("v", 2000.0, "S", "X"), ("v", 2000.0, "X", "E"), ("v", 2000.0, "E", "A")]
    item = two_ways(*ASKED, ("A", "v", 2000.0, 31.0))
    counted = signalling.count_dns(ttl_s)(item, trees(*V_TO_A, *V_TO_B, *rows))
    asked = 3 + 3 + 1 + again
    assert counted == Signalling(messages=5 + 2 * asked, bytes=6 * 12 + 6 * 12 + asked * 16)


def test_signalling_without_requests() -> None:
    item, plan = two_ways(), trees()
    assert no_signalling(item, plan) == Signalling(messages=0, bytes=0)
    assert signalling.count_central(item, plan) == Signalling(messages=5, bytes=6 * 12)
    assert signalling.count_per_channel(item, plan) == Signalling(messages=0, bytes=0)
    assert signalling.count_distributed(item, plan) == Signalling(messages=240, bytes=240 * 16)
    assert signalling.count_dns(30.0)(item, plan) == Signalling(messages=5, bytes=6 * 12)


@given(problems())
@settings(max_examples=5)
def test_every_design_counts_its_signalling(one: LiveVideo) -> None:
    """Integers, equal for the same plan, and 0 only without control planes that exchange messages."""
    for design in DESIGNS:
        plan = design.run(one, options=Options(time_limit_s=1, threads=1), previous=None).plan
        assert plan is not None
        assert design.signalling is not None
        counted = design.signalling(one, plan)
        assert counted == design.signalling(one, plan)
        assert isinstance(counted.bytes, int)
        assert isinstance(counted.messages, int)
        assert (counted.messages == 0) == (design.name == "everything_everywhere"), design.name
