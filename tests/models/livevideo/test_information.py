"""Observed problems: what each degradation changes and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.signalling import Signalling, no_signalling
from planner.errors import InputError
from planner_models import globe
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, check, information
from planner_models.livevideo.designs import DESIGNS, hybrid
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.topology import EARTH_KM
from tests.models.livevideo.networks import problem, problems
from tests.models.livevideo.observations import (
    DEGRADATIONS,
    OBSERVING,
    QUICK,
    TABLES,
    TIERS,
    degradation_of,
    one_way,
    placed,
    run,
    small,
)


@pytest.mark.parametrize("design", OBSERVING, ids=lambda design: design.name)
def test_observation_without_degradation_is_the_truth(design: Any) -> None:
    item = small()
    assert design.observe(item, age_s=0.0, noise=0.0) is item
    assert (
        design.observe(item, **degradation_of(design, {"age_s": 0.0, "granularity_km": 0.0, "seed": 3}))
        is item
    )


def same(item: LiveVideo, other: LiveVideo, *but: str) -> None:
    for name in TABLES:
        if name not in but:
            pd.testing.assert_frame_equal(
                getattr(item, name).reset_index(drop=True), getattr(other, name).reset_index(drop=True)
            )


@given(placed(), st.floats(0.1, 70))
@settings(max_examples=5)
def test_age_hides_the_last_requests_and_nothing_else(one: LiveVideo, age_s: float) -> None:
    observed = information.observe_centrally(one, age_s=age_s)
    same(one, observed, "requests")
    names = one.arrival_s <= 60 - age_s
    pd.testing.assert_frame_equal(observed.requests, one.requests[names])
    assert information.is_exact(one, observed)


@given(placed(), st.integers(0, 9))
@settings(max_examples=4)
def test_noise_changes_capacities_and_nothing_else(one: LiveVideo, seed: int) -> None:
    observed = information.observe_centrally(one, noise=0.2, seed=seed)
    same(one, observed, "links")
    same(observed, information.observe_centrally(one, noise=0.2, seed=seed))
    pd.testing.assert_frame_equal(
        one.links.drop(columns="capacity_mbps"), observed.links.drop(columns="capacity_mbps")
    )
    assert (observed.capacity_mbps != one.capacity_mbps)[one.capacity_mbps > 0].all()
    assert (
        information.observe_centrally(one, noise=0.2, seed=seed + 1).capacity_mbps != observed.capacity_mbps
    )[one.capacity_mbps > 0].all()
    assert not information.is_exact(one, observed)


def test_noise_has_the_stated_distribution() -> None:
    item = generators.heavy_tail(videos=20, seed=1)
    off = np.log(information.observe_centrally(item, noise=0.3).capacity_mbps / item.capacity_mbps)
    assert off.std() == pytest.approx(0.3, rel=0.03)
    assert np.median(off) == pytest.approx(0.0, abs=0.01)
    other = np.log(information.observe_centrally(item, noise=0.3, seed=1).capacity_mbps / item.capacity_mbps)
    assert np.corrcoef(off, other)[0, 1] == pytest.approx(0.0, abs=0.04)


def test_other_links_do_not_change_a_measurement() -> None:
    item = small()
    fewer = replace(item, links=item.links.iloc[5:])
    assert (
        information.observe_centrally(item, noise=0.3).capacity_mbps[5:]
        == information.observe_centrally(fewer, noise=0.3).capacity_mbps
    ).all()


@given(placed(), st.sampled_from([1.0, 300.0, 1000.0, 1e5]))
@settings(max_examples=6)
def test_regions_preserve_totals(one: LiveVideo, granularity_km: float) -> None:
    observed = information.observe_centrally(one, granularity_km=granularity_km)
    assert isinstance(observed, information.ControllerView)
    same(one, observed, "clusters", "links", "requests", "forbidden")
    level, above = observed.level[observed.tail], one.level[one.tail]
    for step in range(len(one.tiers) - 1):
        assert observed.capacity_mbps[level == step].sum() == pytest.approx(
            one.capacity_mbps[above == step].sum()
        )
    count = len(one.objects)
    totals = [np.bincount(each.object, weights=each.clients, minlength=count) for each in (one, observed)]
    assert totals[0] == pytest.approx(totals[1])
    groups = one.clusters[one.level == len(one.tiers) - 1]
    assert set(observed.regions) == set(groups["cluster"])
    assert set(observed.regions.values()) == set(
        observed.clusters["cluster"][observed.level == len(observed.tiers) - 1]
    )
    for _, current in groups.groupby(groups["cluster"].map(dict(observed.regions))):
        assert np.ptp(current["latitude"]) * globe.km_per_degree(EARTH_KM) <= granularity_km
    earliest = one.requests.groupby(["channel", "bitrate_kbps"])["arrival_s"].min()
    pd.testing.assert_series_equal(
        earliest, observed.requests.groupby(["channel", "bitrate_kbps"])["arrival_s"].min()
    )


def test_smaller_squares_give_more_regions() -> None:
    item = small()
    observed = [information.observe_centrally(item, granularity_km=km) for km in (10.0, 100.0, 1000.0, 1e5)]
    counts = [
        len(set(each.regions.values())) for each in observed if isinstance(each, information.ControllerView)
    ]
    assert counts[0] > counts[1] > counts[2] > counts[3]


def test_regions_need_coordinates() -> None:
    with pytest.raises(
        InputError, match=r"^granularity_km: clusters have no latitude and longitude, so that"
    ):
        information.observe_centrally(generators.ec2_testbed(videos=5), granularity_km=10.0)


def test_a_controller_without_requests_plans_nothing() -> None:
    item = small()
    late = run(item.with_requests(item.requests.assign(arrival_s=30.0)), "vdn", age_s=60.0)
    assert late.plan is not None
    assert not len(late.plan.trees)
    assert late.metrics["service_minus_cost"] == 0.0
    assert late.metrics["join_s"] is None


@pytest.mark.slow
@given(placed(), DEGRADATIONS)
@settings(max_examples=5)
def test_plans_on_observed_problems_violate_no_constraint(
    one: LiveVideo, degradation: dict[str, Any]
) -> None:
    """Plans are trees on links with capacity, with at most the optimal objective value."""
    best = run(one, "optimum")
    assert best.proof.objective is not None
    for design in OBSERVING:
        result = run(one, design.name, **degradation_of(design, degradation))
        assert result.plan is not None
        assert not len(result.violations), design.name
        assert not len(check(one, result.plan)), design.name
        value = result.metrics["service_minus_cost"]
        assert value is not None
        assert value <= best.proof.objective + 1e-9, design.name
        assert result.omniscient == (not degradation_of(design, degradation))


def test_regions_of_one_group_each_change_nothing() -> None:
    """The served requests have the same value; DNS may choose a nearer edge than the plan."""
    item = small()
    groups = item.clusters[item.level == 3]
    assert not groups[["latitude", "longitude"]].duplicated().any()
    exact, by_region = run(item, "vdn"), run(item, "vdn", granularity_km=1e-3)
    for name in ("clients_at_bitrate", "service_minus_cost"):
        assert by_region.metrics[name] == pytest.approx(exact.metrics[name], rel=0.02)


def test_clusters_find_another_path_for_refused_requests() -> None:
    """The controller observes capacity on the cheaper path over X; in truth only Y has it."""
    observed = information.ControllerView(**{name: getattr(one_way(), name) for name in TABLES})
    truth = one_way(narrow=("X", "E"))
    plan = SYSTEM.design("vdn").run(observed, options=QUICK).plan
    assert set(plan.trees["head"]) == {"X", "E", "A"}
    assert not len(information.realize(truth, observed, plan).trees)
    streams, refused = information.admit_plan(truth, observed, plan)
    assert refused.tolist() == [0]
    assert not streams.parent
    clusters = information.ClusterView(**{name: getattr(truth, name) for name in TABLES}, noise=0.1)
    vars(clusters)["controller_view"] = observed
    vars(clusters)["measurement_error_mbps"] = np.zeros(6)
    both = hybrid.distribute(clusters, options=QUICK).plan
    assert both is not None
    assert set(both.trees["head"]) == {"Y", "F", "A"}


def test_the_earlier_of_two_requests_is_served() -> None:
    wide = one_way().links.assign(capacity_mbps=9.0)
    requests = pd.DataFrame(
        {"group": "A", "channel": ["w", "v"], "bitrate_kbps": 1000.0, "arrival_s": [20.0, 10.0]}
    )
    observed = information.ControllerView(
        **{name: getattr(one_way(), name) for name in TABLES} | {"links": wide, "requests": requests}
    )
    truth = one_way().with_requests(requests)
    plan = SYSTEM.design("vdn").run(observed, options=QUICK).plan
    realized = information.realize(truth, observed, plan)
    assert set(plan.trees["channel"]) == {"v", "w"}
    assert set(realized.trees["channel"]) == {"v"}
    assert compute_delivery(truth, realized).served.tolist() == [False, True]


def test_pinned_streams_are_set_up_first() -> None:
    wide = one_way().links.assign(capacity_mbps=9.0)
    requests = pd.DataFrame(
        {"group": "A", "channel": ["w", "v"], "bitrate_kbps": 1000.0, "arrival_s": [20.0, 10.0]}
    )
    pins = pd.DataFrame([("w", "*", "*", "*")], columns=["channel", "bitrate_kbps", "tail", "head"])
    truth = replace(one_way().with_requests(requests), pinned=pins)
    observed = information.ControllerView(**{name: getattr(truth, name) for name in TABLES} | {"links": wide})
    realized = information.realize(truth, observed, SYSTEM.design("vdn").run(observed, options=QUICK).plan)
    assert set(realized.trees["channel"]) == {"w"}
    assert not len(check(truth, realized))


def test_clients_of_a_region_go_to_an_edge_with_the_object() -> None:
    """A and B ask for v from one region, and the controller brings it to E; only A is linked to E."""
    item = problem(
        [("S", "X", 9.0, 1.0), ("X", "E", 9.0, 1.0), ("X", "F", 9.0, 9.0), ("E", "A", 9.0, 0.0),
         ("F", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0)], [("A", "v", 1000.0, 1.0), ("B", "v", 1000.0, 1.0)], tiers=TIERS,
    )  # fmt: skip
    item = replace(item, clusters=item.clusters.assign(latitude=40.0, longitude=-100.0))
    central, both = (
        run(item, "vdn", granularity_km=100.0),
        run(item, "hybrid", age_s=0.0, granularity_km=100.0),
    )
    assert central.plan is not None
    assert both.plan is not None
    assert compute_delivery(item, central.plan).served.tolist() == [True, False]
    assert compute_delivery(item, both.plan).served.tolist() == [True, True]
    apart = replace(item, clusters=item.clusters.assign(latitude=40.0 + np.arange(len(item.clusters))))
    assert run(apart, "vdn", granularity_km=1.0).metrics["requests_served"] == 100.0


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
    counted = information.count_central(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=5 + 4 + 1, bytes=6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_the_controller_of_each_channel_receives_all_links() -> None:
    """v and w are requested, v has trees."""
    counted = information.count_per_channel(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=2 * 5 + 4 + 1, bytes=2 * 6 * 12 + 3 * 24 + 4 * (8 + 16) + 2 * 20)


def test_clusters_announce_their_objects_every_second() -> None:
    """4 links between clusters, 60 times a row of 16 bytes for what is not received; X tells E of v 60
    times, Y tells F from the 11th second on, 28 bytes each. E and F have no clusters below."""
    counted = information.count_distributed(two_ways(*ASKED), trees(*V_TO_A, *V_TO_B))
    assert counted == Signalling(messages=4 * 60, bytes=4 * 60 * 16 + (60 + 50) * 28)


def test_hybrid_signalling_is_the_sum() -> None:
    item, plan = two_ways(*ASKED), trees(*V_TO_A, *V_TO_B)
    both, central, local = (
        count(item, plan)
        for count in (information.count_hybrid, information.count_central, information.count_distributed)
    )
    assert both == Signalling(messages=central.messages + local.messages, bytes=central.bytes + local.bytes)


@pytest.mark.parametrize(("ttl_s", "again"), [(40.0, 0), (30.0, 3), (1.0, 3)])
def test_clusters_query_dns_when_an_answer_expires(ttl_s: float, again: int) -> None:
    """5 clusters report 6 links and the 6 objects that X, Y, E and F receive, 12 bytes each. A and B, and
    the clusters on their ways, ask for v, A for w in vain. After 31 s A wants v at 2000 kbit/s: what A,
    E and X heard of v is 30.5 s old."""
    rows = [("v", 2000.0, "S", "X"), ("v", 2000.0, "X", "E"), ("v", 2000.0, "E", "A")]
    item = two_ways(*ASKED, ("A", "v", 2000.0, 31.0))
    counted = information.count_dns(ttl_s)(item, trees(*V_TO_A, *V_TO_B, *rows))
    asked = 3 + 3 + 1 + again
    assert counted == Signalling(messages=5 + 2 * asked, bytes=6 * 12 + 6 * 12 + asked * 16)


def test_signalling_without_requests() -> None:
    item, plan = two_ways(), trees()
    assert no_signalling(item, plan) == Signalling(messages=0, bytes=0)
    assert information.count_central(item, plan) == Signalling(messages=5, bytes=6 * 12)
    assert information.count_per_channel(item, plan) == Signalling(messages=0, bytes=0)
    assert information.count_distributed(item, plan) == Signalling(messages=240, bytes=240 * 16)
    assert information.count_dns(30.0)(item, plan) == Signalling(messages=5, bytes=6 * 12)


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
