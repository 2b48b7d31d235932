"""Observed problems: what each degradation changes and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models import globe
from planner_models.livevideo import SYSTEM, LiveVideo, check
from planner_models.livevideo.designs import hybrid
from planner_models.livevideo.information import observe
from planner_models.livevideo.plan.check import compute_delivery
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.topology import EARTH_KM
from tests.models.livevideo.networks import problem
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
    observed = observe.observe_centrally(one, age_s=age_s)
    same(one, observed, "requests")
    names = one.arrival_s <= 60 - age_s
    pd.testing.assert_frame_equal(observed.requests, one.requests[names])
    assert observe.is_exact(one, observed)


@given(placed(), st.integers(0, 9))
@settings(max_examples=4)
def test_noise_changes_capacities_and_nothing_else(one: LiveVideo, seed: int) -> None:
    observed = observe.observe_centrally(one, noise=0.2, seed=seed)
    same(one, observed, "links")
    same(observed, observe.observe_centrally(one, noise=0.2, seed=seed))
    pd.testing.assert_frame_equal(
        one.links.drop(columns="capacity_mbps"), observed.links.drop(columns="capacity_mbps")
    )
    assert (observed.capacity_mbps != one.capacity_mbps)[one.capacity_mbps > 0].all()
    assert (observe.observe_centrally(one, noise=0.2, seed=seed + 1).capacity_mbps != observed.capacity_mbps)[
        one.capacity_mbps > 0
    ].all()
    assert not observe.is_exact(one, observed)


def test_noise_has_the_stated_distribution() -> None:
    item = generators.heavy_tail(videos=20, seed=1)
    off = np.log(observe.observe_centrally(item, noise=0.3).capacity_mbps / item.capacity_mbps)
    assert off.std() == pytest.approx(0.3, rel=0.03)
    assert np.median(off) == pytest.approx(0.0, abs=0.01)
    other = np.log(observe.observe_centrally(item, noise=0.3, seed=1).capacity_mbps / item.capacity_mbps)
    assert np.corrcoef(off, other)[0, 1] == pytest.approx(0.0, abs=0.04)


def test_other_links_do_not_change_a_measurement() -> None:
    item = small()
    fewer = replace(item, links=item.links.iloc[5:])
    assert (
        observe.observe_centrally(item, noise=0.3).capacity_mbps[5:]
        == observe.observe_centrally(fewer, noise=0.3).capacity_mbps
    ).all()


@given(placed(), st.sampled_from([1.0, 300.0, 1000.0, 1e5]))
@settings(max_examples=6)
def test_regions_preserve_totals(one: LiveVideo, granularity_km: float) -> None:
    observed = observe.observe_centrally(one, granularity_km=granularity_km)
    assert isinstance(observed, observe.ControllerView)
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
    observed = [observe.observe_centrally(item, granularity_km=km) for km in (10.0, 100.0, 1000.0, 1e5)]
    counts = [
        len(set(each.regions.values())) for each in observed if isinstance(each, observe.ControllerView)
    ]
    assert counts[0] > counts[1] > counts[2] > counts[3]


def test_regions_need_coordinates() -> None:
    with pytest.raises(
        InputError, match=r"^granularity_km: clusters have no latitude and longitude, so that"
    ):
        observe.observe_centrally(generators.ec2_testbed(videos=5), granularity_km=10.0)


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
    observed = observe.ControllerView(**{name: getattr(one_way(), name) for name in TABLES})
    truth = one_way(narrow=("X", "E"))
    plan = SYSTEM.design("vdn").run(observed, options=QUICK).plan
    assert set(plan.trees["head"]) == {"X", "E", "A"}
    assert not len(observe.realize(truth, observed, plan).trees)
    streams, refused = observe.admit_plan(truth, observed, plan)
    assert refused.tolist() == [0]
    assert not streams.parent
    clusters = observe.ClusterView(**{name: getattr(truth, name) for name in TABLES}, noise=0.1)
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
    observed = observe.ControllerView(
        **{name: getattr(one_way(), name) for name in TABLES} | {"links": wide, "requests": requests}
    )
    truth = one_way().with_requests(requests)
    plan = SYSTEM.design("vdn").run(observed, options=QUICK).plan
    realized = observe.realize(truth, observed, plan)
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
    observed = observe.ControllerView(**{name: getattr(truth, name) for name in TABLES} | {"links": wide})
    realized = observe.realize(truth, observed, SYSTEM.design("vdn").run(observed, options=QUICK).plan)
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
