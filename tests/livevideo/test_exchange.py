"""Messages and bytes, counted by hand on six links."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

from planner import Options
from planner.exchange import Exchange, nothing
from planner_models.livevideo import LiveVideo, Trees, exchange
from planner_models.livevideo.designs import DESIGNS
from tests.livevideo.networks import problem, problems


def two_ways(*asked: tuple[str, str, float, float]) -> LiveVideo:
    """S to A over X and E, to B over Y and F; requests of (group, channel, bitrate, time)."""
    one = problem(
        [("S", "X", 9.0, 1.0), ("S", "Y", 9.0, 1.0), ("X", "E", 9.0, 1.0), ("Y", "F", 9.0, 1.0),
         ("E", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("v", 2000.0, 1.0), ("w", 1000.0, 1.0)],
        [(group, channel, rate, 1.0) for group, channel, rate, _ in asked],
        tiers={"S": "source", "X": "reflector", "Y": "reflector", "E": "edge", "F": "edge", "A": "group",
               "B": "group"},
    )  # fmt: skip
    return one.with_requests(one.requests.assign(arrival_s=[time for *_, time in asked]))


def trees(*rows: tuple[str, float, str, str]) -> Trees:
    return Trees(trees=pd.DataFrame(rows, columns=["channel", "bitrate_kbps", "tail", "head"]))


V_TO_A = [("v", 1000.0, "S", "X"), ("v", 1000.0, "X", "E"), ("v", 1000.0, "E", "A")]
V_TO_B = [("v", 1000.0, "S", "Y"), ("v", 1000.0, "Y", "F"), ("v", 1000.0, "F", "B")]
ASKED = [("A", "v", 1000.0, 0.5), ("B", "v", 1000.0, 10.5), ("A", "w", 1000.0, 30.5)]


def test_a_controller_hears_all_and_tells_next_hops() -> None:
    """5 clusters report 6 links (12 bytes) and 3 requests (24); 4 clusters hear a version (8) and a next
    hop (16), DNS where 2 clients go (20)."""
    told = exchange.central(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert told == Exchange(messages=5 + 4 + 1, bytes=6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_each_channel_hears_all_links() -> None:
    """v and w are asked for, v has trees."""
    told = exchange.channel_by_channel(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert told == Exchange(messages=2 * 5 + 4 + 1, bytes=2 * 6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_clusters_announce_what_they_receive_every_second() -> None:
    """4 links between clusters, 60 times a row of 16 bytes for what is not received; X tells E of v 60
    times, Y tells F from the 11th second on, 28 bytes each. E and F have no clusters below."""
    told = exchange.distributed(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert told == Exchange(messages=4 * 60, bytes=4 * 60 * 16 + (60 + 50) * 28)


def test_hybrid_control_is_both() -> None:
    one, plan = two_ways(*ASKED), trees(*V_TO_A, *V_TO_B)
    both, central, local = (
        count(one, plan) for count in (exchange.hybrid, exchange.central, exchange.distributed)
    )
    assert both == Exchange(messages=central.messages + local.messages, bytes=central.bytes + local.bytes)


@pytest.mark.parametrize(("ttl_s", "again"), [(40.0, 0), (30.0, 3), (1.0, 3)])
def test_dns_is_asked_once_an_answer_has_run_out(ttl_s: float, again: int) -> None:
    """5 clusters report 6 links and the 6 objects that X, Y, E and F receive, 12 bytes each. A and B, and
    the clusters on their ways, ask for v, A for w in vain. After 31 s A wants v at 2000 kbit/s: what A,
    E and X were told of v is 30.5 s old."""
    rows = [("v", 2000.0, "S", "X"), ("v", 2000.0, "X", "E"), ("v", 2000.0, "E", "A")]
    one = two_ways(*ASKED, ("A", "v", 2000.0, 31.0))
    told = exchange.by_dns(ttl_s)(one, trees(*V_TO_A, *V_TO_B, *rows))
    asked = 3 + 3 + 1 + again
    assert told == Exchange(messages=5 + 2 * asked, bytes=6 * 12 + 6 * 12 + asked * 16)


def test_nobody_asks_nothing_is_steered() -> None:
    one, plan = two_ways(), trees()
    assert nothing(one, plan) == Exchange(messages=0, bytes=0)
    assert exchange.central(one, plan) == Exchange(messages=5, bytes=6 * 12)
    assert exchange.channel_by_channel(one, plan) == Exchange(messages=0, bytes=0)
    assert exchange.distributed(one, plan) == Exchange(messages=240, bytes=240 * 16)
    assert exchange.by_dns(30.0)(one, plan) == Exchange(messages=5, bytes=6 * 12)


@given(problems())
@settings(max_examples=5)
def test_every_design_counts(one: LiveVideo) -> None:
    """Whole numbers, alike for the same plan, and nothing only where nobody is told."""
    for design in DESIGNS:
        plan = design.decide(one, options=Options(time_limit_s=1, threads=1), previous=None).plan
        assert plan is not None
        assert design.exchange is not None
        told = design.exchange(one, plan)
        assert told == design.exchange(one, plan)
        assert isinstance(told.bytes, int)
        assert isinstance(told.messages, int)
        assert (told.messages == 0) == (design.name == "everything_everywhere"), design.name
