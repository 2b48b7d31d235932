"""Realization: plans on observed problems on the true links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from planner_models.livevideo import SYSTEM, LiveVideo, check
from planner_models.livevideo.designs import hybrid
from planner_models.livevideo.information import observe, realize
from planner_models.livevideo.plan.check import compute_delivery
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
    assert not len(realize.realize(truth, observed, plan).trees)
    streams, refused = realize.admit_plan(truth, observed, plan)
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
    realized = realize.realize(truth, observed, plan)
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
    realized = realize.realize(truth, observed, SYSTEM.design("vdn").run(observed, options=QUICK).plan)
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
