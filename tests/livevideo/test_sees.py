"""Beliefs: what each blur changes and what it leaves, and how plans made on them play out in truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.errors import InputError
from planner.run import Run, evaluate
from planner.scenario import Entry
from planner_models import globe
from planner_models.livevideo import (
    SYSTEM,
    LiveVideo,
    Trees,
    admission,
    check,
    dns,
    generate,
    hybrid,
    local,
    sees,
)
from planner_models.livevideo.check import delivered
from planner_models.livevideo.cities import EARTH_KM
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.trees import from_tables
from tests.livevideo.networks import problem, problems

QUICK = Options(time_limit_s=5, threads=1, gap=1e-3)
TOLD = [design for design in DESIGNS if design.name != "everything_everywhere"]
TABLES = ("clusters", "links", "objects", "requests", "holders", "pinned", "forbidden", "settings")
TIERS = {
    "S": "source",
    "X": "reflector",
    "Y": "reflector",
    "E": "edge",
    "F": "edge",
    "A": "group",
    "B": "group",
}


def run(one: LiveVideo, name: str, **blur: Any) -> Run:
    entry = Entry(label=name, design=SYSTEM.design(name), sees=blur)
    return evaluate(SYSTEM, one, entry, options=QUICK)


def small(seed: int = 0) -> LiveVideo:
    return generate.heavy_tail(
        videos=60, groups=80, edges=20, requests_per_video=1.5, source_gbps=0.4, sources=2, reflectors=3,
        reflectors_per_edge=2, seed=seed,
    )  # fmt: skip


@st.composite
def placed(draw: st.DrawFn) -> LiveVideo:
    """A small problem whose clusters have places and whose requests have times."""
    one = draw(problems(rules=True))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    clusters = one.clusters.assign(
        latitude=rng.uniform(30, 50, len(one.clusters)), longitude=rng.uniform(-120, -70, len(one.clusters))
    )
    asked = one.requests.assign(arrival_s=rng.uniform(0, 60, len(one.requests)))
    return replace(one, clusters=clusters, requests=asked)


BLURS = st.sampled_from(
    [
        {"age_s": 20.0},
        {"noise": 0.5, "seed": 1},
        {"grain_km": 800.0},
        {"age_s": 10.0, "noise": 0.3, "grain_km": 300.0},
        {"grain_km": 1e5},
        {"noise": 2.0, "seed": 2},
    ]
)


def of(design: Any, blur: dict[str, Any]) -> dict[str, Any]:
    """What of a blur the design is told with."""
    local_only = design.sees is sees.announced
    return {key: value for key, value in blur.items() if not (local_only and key == "grain_km")}


# --- what is believed ---------------------------------------------------------------------


@pytest.mark.parametrize("design", TOLD, ids=lambda design: design.name)
def test_no_blur_is_the_truth_itself(design: Any) -> None:
    one = small()
    assert design.sees(one, age_s=0.0, noise=0.0) is one
    assert design.sees(one, **of(design, {"age_s": 0.0, "grain_km": 0.0, "seed": 3})) is one


def same(one: LiveVideo, other: LiveVideo, *but: str) -> None:
    for name in TABLES:
        if name not in but:
            pd.testing.assert_frame_equal(
                getattr(one, name).reset_index(drop=True), getattr(other, name).reset_index(drop=True)
            )


@given(placed(), st.floats(0.1, 70))
@settings(max_examples=5)
def test_age_hides_what_came_last_and_nothing_else(one: LiveVideo, age_s: float) -> None:
    seen = sees.told(one, age_s=age_s)
    same(one, seen, "requests")
    known = one.arrival_s <= 60 - age_s
    pd.testing.assert_frame_equal(seen.requests, one.requests[known])
    assert admission.exact(one, seen)


@given(placed(), st.integers(0, 9))
@settings(max_examples=4)
def test_noise_changes_capacities_and_nothing_else(one: LiveVideo, seed: int) -> None:
    seen = sees.told(one, noise=0.2, seed=seed)
    same(one, seen, "links")
    same(seen, sees.told(one, noise=0.2, seed=seed))
    pd.testing.assert_frame_equal(
        one.links.drop(columns="capacity_mbps"), seen.links.drop(columns="capacity_mbps")
    )
    assert (seen.capacity_mbps != one.capacity_mbps).all()
    assert (sees.told(one, noise=0.2, seed=seed + 1).capacity_mbps != seen.capacity_mbps).all()
    assert not admission.exact(one, seen)


def test_noise_is_what_it_says() -> None:
    one = generate.heavy_tail(videos=20, seed=1)
    off = np.log(sees.told(one, noise=0.3).capacity_mbps / one.capacity_mbps)
    assert off.std() == pytest.approx(0.3, rel=0.03)
    assert np.median(off) == pytest.approx(0.0, abs=0.01)
    other = np.log(sees.told(one, noise=0.3, seed=1).capacity_mbps / one.capacity_mbps)
    assert np.corrcoef(off, other)[0, 1] == pytest.approx(0.0, abs=0.04)


def test_a_link_is_measured_alike_whatever_others_there_are() -> None:
    one = small()
    fewer = replace(one, links=one.links.iloc[5:], lost="unserved")
    assert (sees.told(one, noise=0.3).capacity_mbps[5:] == sees.told(fewer, noise=0.3).capacity_mbps).all()


@given(placed(), st.sampled_from([1.0, 300.0, 1000.0, 1e5]))
@settings(max_examples=6)
def test_regions_keep_the_sums(one: LiveVideo, grain_km: float) -> None:
    seen = sees.told(one, grain_km=grain_km)
    assert isinstance(seen, sees.Told)
    same(one, seen, "clusters", "links", "requests", "forbidden")
    level, above = seen.level[seen.tail], one.level[one.tail]
    for step in range(len(one.tiers) - 1):
        assert seen.capacity_mbps[level == step].sum() == pytest.approx(
            one.capacity_mbps[above == step].sum()
        )
    count = len(one.objects)
    totals = [np.bincount(each.object, weights=each.clients, minlength=count) for each in (one, seen)]
    assert totals[0] == pytest.approx(totals[1])
    groups = one.clusters[one.level == len(one.tiers) - 1]
    assert set(seen.regions) == set(groups["cluster"])
    assert set(seen.regions.values()) == set(seen.clusters["cluster"][seen.level == len(seen.tiers) - 1])
    for _, mine in groups.groupby(groups["cluster"].map(dict(seen.regions))):
        assert np.ptp(mine["latitude"]) * globe.km_per_degree(EARTH_KM) <= grain_km
    earliest = one.requests.groupby(["channel", "bitrate_kbps"])["arrival_s"].min()
    pd.testing.assert_series_equal(
        earliest, seen.requests.groupby(["channel", "bitrate_kbps"])["arrival_s"].min()
    )


def test_finer_regions_are_more() -> None:
    one = small()
    seen = [sees.told(one, grain_km=km) for km in (10.0, 100.0, 1000.0, 1e5)]
    counts = [len(set(each.regions.values())) for each in seen if isinstance(each, sees.Told)]
    assert counts[0] > counts[1] > counts[2] > counts[3]


def test_regions_need_places() -> None:
    with pytest.raises(InputError, match=r"^grain_km: clusters have no latitude and longitude, so that"):
        sees.told(generate.ec2_testbed(videos=5), grain_km=10.0)


def test_nothing_known_is_a_problem_without_requests() -> None:
    one = small()
    late = run(one.with_requests(one.requests.assign(arrival_s=30.0)), "vdn", age_s=60.0)
    assert late.plan is not None
    assert not len(late.plan.trees)
    assert late.metrics["service_minus_cost"] == 0.0
    assert late.metrics["join_s"] is None


# --- how it plays out ---------------------------------------------------------------------


@given(placed(), BLURS)
@settings(max_examples=5)
def test_plans_on_beliefs_break_no_limit(one: LiveVideo, blur: dict[str, Any]) -> None:
    """Whatever is believed: trees on links that have room, worth no more than the best of all plans."""
    best = run(one, "optimum")
    assert best.proof.objective is not None
    for design in TOLD:
        done = run(one, design.name, **of(design, blur))
        assert done.plan is not None
        assert not len(done.violations), design.name
        assert not len(check(one, done.plan)), design.name
        worth = done.metrics["service_minus_cost"]
        assert worth is not None
        assert worth <= best.proof.objective + 1e-9, design.name
        assert done.omniscient == (not of(design, blur))


@given(placed(), BLURS)
@settings(max_examples=5)
def test_hybrid_serves_whom_its_controller_serves_and_more(one: LiveVideo, blur: dict[str, Any]) -> None:
    blur = {"age_s": 10.0, **blur}
    central, both = run(one, "centralized", **blur), run(one, "hybrid", **blur)
    assert central.plan is not None
    assert both.plan is not None
    assert (delivered(one, both.plan).served >= delivered(one, central.plan).served).all()


@given(placed())
@settings(max_examples=3)
def test_a_controller_that_knows_nothing_leaves_it_to_the_clusters(one: LiveVideo) -> None:
    one = one.with_requests(one.requests.assign(arrival_s=one.requests["arrival_s"] + 1e-3))
    alone, both = run(one, "distributed"), run(one, "hybrid", age_s=1e3)
    assert alone.plan is not None
    assert both.plan is not None
    pd.testing.assert_frame_equal(alone.plan.trees, both.plan.trees)
    assert both.plan.waits is not None
    assert not len(both.plan.waits)


def test_regions_of_one_group_each_are_no_blur() -> None:
    """What is served is worth the same; DNS may choose a nearer edge than the plan did."""
    one = small()
    groups = one.clusters[one.level == 3]
    assert not groups[["latitude", "longitude"]].duplicated().any()
    sharp, told = run(one, "vdn"), run(one, "vdn", grain_km=1e-3)
    for name in ("clients_at_bitrate", "service_minus_cost"):
        assert told.metrics[name] == pytest.approx(sharp.metrics[name], rel=0.02)


def one_way(*, narrow: tuple[str, str] | None = None) -> LiveVideo:
    """S to A over X and E or Y and F, a stream wide; `narrow` is a link that is believed to be narrow."""
    links = [("S", "X", 1.0, 1.0), ("S", "Y", 1.0, 5.0), ("X", "E", 1.0, 1.0), ("Y", "F", 1.0, 1.0),
             ("E", "A", 9.0, 0.0), ("F", "A", 9.0, 0.0)]  # fmt: skip
    return problem(
        [(tail, head, 0.5 if (tail, head) == narrow else mbps, cost) for tail, head, mbps, cost in links],
        [("v", 1000.0, 1.0), ("w", 1000.0, 1.0)],
        [("A", "v", 1000.0, 1.0)],
        tiers=TIERS,
        lost="unserved",
    )


def test_what_does_not_fit_is_refused_and_clusters_find_another_way() -> None:
    """The controller believes in the cheaper way over X; in truth there is room over Y only."""
    believed = sees.Told(**{name: getattr(one_way(), name) for name in TABLES})
    truth = one_way(narrow=("X", "E"))
    plan = SYSTEM.design("vdn").decide(believed, options=QUICK).plan
    assert set(plan.trees["head"]) == {"X", "E", "A"}
    assert not len(admission.enact(truth, believed, plan).trees)
    streams, refused = admission.set_up(truth, believed, plan)
    assert refused.tolist() == [0]
    assert not streams.parent
    clusters = sees.Reporting(**{name: getattr(truth, name) for name in TABLES}, lost="unserved", noise=0.1)
    vars(clusters)["told"] = believed
    vars(clusters)["error_mbps"] = np.zeros(6)
    both = hybrid.distribute(clusters, options=QUICK).plan
    assert both is not None
    assert set(both.trees["head"]) == {"Y", "F", "A"}


def test_of_two_that_do_not_fit_the_first_to_ask_is_served() -> None:
    wide = one_way().links.assign(capacity_mbps=9.0)
    asked = pd.DataFrame(
        {"group": "A", "channel": ["w", "v"], "bitrate_kbps": 1000.0, "arrival_s": [20.0, 10.0]}
    )
    believed = sees.Told(
        **{name: getattr(one_way(), name) for name in TABLES} | {"links": wide, "requests": asked}
    )
    truth = one_way().with_requests(asked)
    plan = SYSTEM.design("vdn").decide(believed, options=QUICK).plan
    made = admission.enact(truth, believed, plan)
    assert set(plan.trees["channel"]) == {"v", "w"}
    assert set(made.trees["channel"]) == {"v"}
    assert delivered(truth, made).served.tolist() == [False, True]


def test_pinned_streams_are_set_up_first() -> None:
    wide = one_way().links.assign(capacity_mbps=9.0)
    asked = pd.DataFrame(
        {"group": "A", "channel": ["w", "v"], "bitrate_kbps": 1000.0, "arrival_s": [20.0, 10.0]}
    )
    pins = pd.DataFrame([("w", "*", "*", "*")], columns=["channel", "bitrate_kbps", "tail", "head"])
    truth = replace(one_way().with_requests(asked), pinned=pins)
    believed = sees.Told(**{name: getattr(truth, name) for name in TABLES} | {"links": wide})
    made = admission.enact(truth, believed, SYSTEM.design("vdn").decide(believed, options=QUICK).plan)
    assert set(made.trees["channel"]) == {"w"}
    assert not len(check(truth, made))


def test_who_was_told_in_a_region_goes_to_an_edge_that_has_the_object() -> None:
    """A and B ask for v from one region, and the controller brings it to E; only A is linked to E."""
    one = problem(
        [("S", "X", 9.0, 1.0), ("X", "E", 9.0, 1.0), ("X", "F", 9.0, 9.0), ("E", "A", 9.0, 0.0),
         ("F", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0)], [("A", "v", 1000.0, 1.0), ("B", "v", 1000.0, 1.0)], tiers=TIERS,
    )  # fmt: skip
    one = replace(one, clusters=one.clusters.assign(latitude=40.0, longitude=-100.0))
    central, both = run(one, "vdn", grain_km=100.0), run(one, "hybrid", age_s=0.0, grain_km=100.0)
    assert central.plan is not None
    assert both.plan is not None
    assert delivered(one, central.plan).served.tolist() == [True, False]
    assert delivered(one, both.plan).served.tolist() == [True, True]
    apart = replace(one, clusters=one.clusters.assign(latitude=40.0 + np.arange(len(one.clusters))))
    assert run(apart, "vdn", grain_km=1.0).metrics["requests_served"] == 100.0


# --- what clusters tell each other --------------------------------------------------------


def reporting(one: LiveVideo, error: tuple[str, str, float] | None = None, **how: float) -> sees.Reporting:
    """Clusters of which one tells of a link that it has more room, or less, than there is."""
    made = sees.Reporting(**{name: getattr(one, name) for name in TABLES}, lost="unserved", **how)
    off = np.zeros(len(one.links))
    if error is not None:
        off[one.link_labels.index(f"{error[0]}->{error[1]}")] = error[2]
    vars(made)["error_mbps"] = off
    return made


def heads(plan: Trees | None) -> set[str]:
    assert plan is not None
    return set(plan.trees["head"])


def test_clusters_believe_what_others_announce_and_see_their_own() -> None:
    one = one_way()
    near = one.links.assign(latency_ms=[1.0, 1.0, 1.0, 1.0, 1.0, 9.0])  # E is A's nearest edge
    one = replace(one, links=near)
    assert heads(local.distribute(reporting(one)).plan) == {"X", "E", "A"}
    # X announces too little room from S: E has no way, A goes to F
    assert heads(local.distribute(reporting(one, ("S", "X", -0.5))).plan) == {"Y", "F", "A"}
    # E sees its own link from X
    assert heads(local.distribute(reporting(one, ("X", "E", -0.5))).plan) == {"X", "E", "A"}
    # X announces more than there is, and is refused itself: A goes to F
    narrow = replace(one, links=near.assign(capacity_mbps=[0.5, 1.0, 1.0, 1.0, 9.0, 9.0]), lost="unserved")
    assert heads(local.distribute(reporting(narrow, ("S", "X", 0.5))).plan) == {"Y", "F", "A"}


def test_dns_goes_by_what_monitors_report() -> None:
    """By DNS a wrong report leads to a link without room, where the request is denied."""
    one = one_way()
    links = one.links.assign(latency_ms=[1.0, 1.0, 1.0, 1.0, 1.0, 9.0])
    one = replace(one, links=links)
    assert heads(dns.distribute(reporting(one)).plan) == {"X", "E", "A"}
    assert heads(dns.distribute(reporting(one, ("S", "X", -0.5))).plan) == {"Y", "F", "A"}
    narrow = replace(one, links=links.assign(capacity_mbps=[0.5, 1.0, 1.0, 1.0, 9.0, 9.0]), lost="unserved")
    assert heads(dns.distribute(narrow).plan) == {"Y", "F", "A"}
    assert heads(dns.distribute(reporting(narrow, ("S", "X", 0.5))).plan) == set()


def test_old_announcements_deny_and_do_not_overload() -> None:
    """Of w's taking the room from S at 5 s E hears a minute later: v is sent to X, which has no way."""
    one = problem(
        [("S", "X", 1.0, 1.0), ("S", "Y", 1.0, 1.0), ("X", "E", 9.0, 1.0), ("X", "F", 9.0, 1.0),
         ("Y", "E", 9.0, 1.0), ("E", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("w", 1000.0, 1.0)],
        [("B", "w", 1000.0, 1.0), ("A", "v", 1000.0, 1.0)], tiers=TIERS,
    )  # fmt: skip
    one = one.with_requests(one.requests.assign(arrival_s=[5.0, 20.0]))
    served = {}
    for age_s in (0.0, 10.0, 60.0):
        plans = [run(one, "distributed", age_s=age_s)]
        for seed in range(1, 8):  # E chooses by chance between X and Y while it believes both
            entry = Entry(label="d", design=SYSTEM.design("distributed"), sees={"age_s": age_s},
                          parameters={"seed": seed})  # fmt: skip
            plans.append(evaluate(SYSTEM, one, entry))
        assert all(not len(done.violations) for done in plans)
        served[age_s] = {done.metrics["requests_served"] for done in plans}
    assert served[0.0] == served[10.0] == {100.0}
    assert served[60.0] == {50.0, 100.0}


def test_announcements_age_only_within_the_window() -> None:
    one = small()
    fresh, old = run(one, "distributed", age_s=1e-6), run(one, "distributed")
    assert fresh.metrics["service_minus_cost"] == old.metrics["service_minus_cost"]


# --- how long clients wait ----------------------------------------------------------------


def test_join_times_by_hand() -> None:
    """Two round trips of 2 x (10 + 20) and 2 x (10 + 20 + 5) ms for 3 and 1 clients, and a chunk of 2 s at
    1 Mbit/s over the narrowest link."""
    links = pd.DataFrame(
        [("S", "E", 4.0, 10.0), ("E", "A", 8.0, 20.0), ("E", "B", 2.0, 25.0)],
        columns=["tail", "head", "capacity_mbps", "latency_ms"],
    )
    one = LiveVideo(
        clusters=pd.DataFrame({"cluster": ["S", "E", "A", "B"], "tier": ["s", "e", "g", "g"]}),
        links=links,
        objects=pd.DataFrame({"channel": ["v"], "bitrate_kbps": [1000.0]}),
        requests=pd.DataFrame({"group": ["A", "B"], "channel": "v", "bitrate_kbps": 1000.0,
                               "clients": [3.0, 1.0], "arrival_s": [0.0, 1.0]}),
    )  # fmt: skip
    done = run(one, "vdn")
    assert done.metrics["join_s"] == pytest.approx(0.06 + 2 * 1 / 4)
    late = run(one, "centralized", age_s=20.0)
    assert late.metrics["join_s"] == pytest.approx(20 + 0.06 + 2 * 1 / 4)
    assert late.plan is not None
    assert late.plan.waits is not None
    assert late.plan.waits["waited_s"].tolist() == [20.0, 20.0]
    few = replace(one, requests=one.requests.assign(clients=[1.0, 3.0]))
    assert run(few, "vdn").metrics["join_s"] == pytest.approx(0.07 + 2 * 1 / 2)
    again = from_tables(one, late.plan.to_tables())
    assert again.waits is not None
    pd.testing.assert_frame_equal(again.waits, late.plan.waits)
    with pytest.raises(InputError, match="trees: the plan has no such table"):
        from_tables(one, {"waits": late.plan.waits})


def test_under_hybrid_control_only_those_wait_for_whom_there_was_no_room() -> None:
    """Room for one: v takes it when it comes; 10 s later the controller gives it to w, worth more."""
    one = problem(
        [("S", "E", 1.0, 1.0), ("E", "A", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("w", 1000.0, 9.0)],
        [("A", "v", 1000.0, 1.0), ("A", "w", 1000.0, 1.0)],
        tiers=TIERS,
    )
    for came, waited in (([1.0, 5.0], ["w"]), ([5.0, 1.0], []), ([1.0, 25.0], [])):
        done = run(one.with_requests(one.requests.assign(arrival_s=came)), "hybrid", age_s=10.0)
        assert done.plan is not None
        assert set(done.plan.trees["channel"]) == {"w"}
        assert done.plan.waits is not None
        assert done.plan.waits["channel"].tolist() == waited


def test_hybrid_control_answers_like_clusters_and_serves_like_a_controller() -> None:
    one = small(seed=1)
    central, both, alone = (run(one, name) for name in ("centralized", "hybrid", "distributed"))
    for done in (central, both, alone):
        assert done.metrics["join_s"] is not None
    assert central.metrics["join_s"] > 10 > 1 > both.metrics["join_s"]  # type: ignore[operator]
    assert both.metrics["service_minus_cost"] > alone.metrics["service_minus_cost"]  # type: ignore[operator]
    assert both.metrics["service_minus_cost"] > central.metrics["service_minus_cost"]  # type: ignore[operator]
