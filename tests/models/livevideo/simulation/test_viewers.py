"""Viewers who come and go over a unicast last hop: closed form, the plan's accounting, conservation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.errors import InputError
from planner_models.livevideo import LiveVideo, Trees, check
from planner_models.livevideo.designs import overlay_multicast
from planner_models.livevideo.plan.plan import list_streams, load_per_link, served_clients
from planner_models.livevideo.simulation.control import simulate
from planner_models.livevideo.simulation.events import Change, Control, Update
from planner_models.livevideo.simulation.viewers import ViewerPlane
from tests.models.livevideo import networks

QUICK = Options(time_limit_s=0.2, threads=1, gap=1e-3)
TIERS = {"s": "source", "e": "edge", "g": "group"}


def unicast(problem: LiveVideo) -> LiveVideo:
    tables = problem.to_tables()
    return LiveVideo.from_tables({**tables, "settings": tables["settings"].assign(last_hop="unicast")})


def two_edges(*, clients: float = 30.0, core_mbps: float = 100.0) -> LiveVideo:
    """One channel of 2 Mbit/s for a group with links of 20 and 12 Mbit/s: 16 viewers at most."""
    links = [
        ("s", "e1", core_mbps, 1.0), ("s", "e2", core_mbps, 1.0),
        ("e1", "g", 20.0, 0.0), ("e2", "g", 12.0, 0.0),
    ]  # fmt: skip
    return unicast(
        networks.problem(links, [("v", 2_000.0, 1.0)], [("g", "v", 2_000.0, clients)], tiers=TIERS)
    )


@pytest.mark.parametrize(
    "control", ["distributed", pytest.param("centralized", marks=pytest.mark.slow), "hybrid"]
)
def test_the_last_hop_carries_a_stream_for_each_viewer(control: Control) -> None:
    problem = two_edges()
    result = simulate(problem, control=control, until_s=30.0, computing_s=1.0, options=QUICK)
    assert result.metrics["served"] == pytest.approx(16 / 30)
    assert result.tables["viewers"].set_index("edge")["clients"].to_dict() == {"e1": 10.0, "e2": 6.0}
    clients = result.tables["clients"]
    assert clients["viewers"].sum() == 30
    assert clients.loc[clients["bitrate_kbps"] > 0, "viewers"].sum() == 16
    check(problem, Trees(trees=result.tables["trees"], viewers=result.tables["viewers"]))


@pytest.mark.parametrize("capacity", [8, pytest.param(12, marks=pytest.mark.slow)])
def test_a_full_link_serves_the_mean_of_the_closed_form(capacity: int) -> None:
    """Viewers are a Poisson number of mean a; those who find no stream wait: min(N, c) are served."""
    mean, watch_s = 10, 40.0
    links = [("s", "e", 100.0, 1.0), ("e", "g", 2.0 * capacity, 0.0)]
    problem = unicast(
        networks.problem(links, [("v", 2_000.0, 1.0)], [("g", "v", 2_000.0, mean)], tiers=TIERS)
    )
    share = [
        simulate(
            problem, control="distributed", until_s=1500.0, announcement_s=1.0, watch_s=watch_s, seed=seed
        ).tables["clients"]["watched_s"].sum() / 1500.0
        for seed in range(2)
    ]  # fmt: skip
    weights = [math.exp(-mean) * mean**n / math.factorial(n) for n in range(80)]
    expected = sum(min(n, capacity) * weight for n, weight in enumerate(weights))
    assert np.mean(share) == pytest.approx(expected, rel=0.04)


@pytest.mark.slow
@given(networks.problems())
@settings(max_examples=8)
def test_a_steady_state_is_the_plan_of_the_controller(problem: LiveVideo) -> None:
    """Nobody comes or goes: load and service are those that the plan's accounting says."""
    problem = unicast(problem)
    problem = problem.with_requests(problem.requests.assign(arrival_s=0.0))
    plane = ViewerPlane(problem=problem, control="centralized", until_s=30.0, adapt=False)
    plane.advance(1.0)
    observed = plane.observe()
    plan = overlay_multicast.distribute(observed.problem).plan
    assert plan is not None
    for second in (2.0, 9.0):  # the same decision again changes nothing
        plane.apply(Update(plan=plan, observed_s=1.0, capacity_mbps=observed.capacity_mbps))
        plane.advance(second)
        streams, planned = list_streams(problem, plane.plan()), list_streams(problem, plan)
        assert served_clients(problem, streams).tolist() == served_clients(problem, planned).tolist()
        assert load_per_link(problem, streams) == pytest.approx(load_per_link(problem, planned))
    check(problem, plane.plan())
    clients = plane.record()["clients"]
    watching = clients[clients["bitrate_kbps"] > 0]
    assert watching["viewers"].sum() == served_clients(problem, planned).sum()
    assert (watching["stalled_s"] == 0).all()


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    problem = unicast(draw(networks.problems(rules=True)))
    links = st.integers(0, len(problem.links) - 1)
    change = st.builds(
        lambda time, link, share: Change(time_s=time, link=link, share=share),
        st.floats(0, 12), links, st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    )  # fmt: skip
    return {
        "problem": problem,
        "control": draw(st.sampled_from(["distributed", "centralized", "hybrid"])),
        "changes": tuple(draw(st.lists(change, max_size=4))),
        "watch_s": draw(st.sampled_from([None, 3.0, 30.0])),
        "loss": draw(st.sampled_from([0.0, 0.5])),
    }


@pytest.mark.slow
@given(runs(), st.booleans())
@settings(max_examples=12)
def test_streams_viewers_and_capacity_agree_at_any_time(drawn: dict[str, Any], adapt: bool) -> None:
    watch_s, changes = drawn["watch_s"], drawn["changes"]
    plane = ViewerPlane(
        problem=drawn["problem"], control=drawn["control"], changes=changes, adapt=adapt, loss=drawn["loss"],
        until_s=14.0, watch_s=watch_s, timeout_s=3.0,
    )  # fmt: skip
    problem = plane.problem
    for second in range(15):
        plane.advance(float(second))
        last = problem.is_last_hop
        if drawn["control"] == "distributed":  # edges know the links to their viewers
            assert (plane.streams.residual_mbps[last] >= -0.2 * problem.capacity_mbps[last] - 1e-9).all()
        if second in (4, 9) and drawn["control"] != "distributed":
            observed = plane.observe()
            if observed.requests:
                plan = overlay_multicast.distribute(observed.problem).plan
                assert plan is not None
                plane.apply(Update(plan=plan, observed_s=second, capacity_mbps=observed.capacity_mbps))
        load = np.zeros(len(problem.links))
        for item, link, count in plane.streams.carried():
            load[link] += count * problem.bitrate_mbps[item]
            tail = plane.streams.tail[link]
            assert plane.streams.has(item, tail) or drawn["control"] == "centralized"
        assert plane.capacity - load == pytest.approx(plane.streams.residual_mbps)
        by_link: dict[tuple[int, int], float] = {}
        for client in plane.watching.values():
            assert client.leaves_s > plane.now_s or client.leaves_s >= second
            key = (client.item, client.link)
            by_link[key] = by_link.get(key, 0.0) + client.viewers  # type: ignore[index, arg-type]
        assert by_link == {key: count for key, count in plane.streams.viewers.items() if count}
        if watch_s is None:
            present = sum(client.viewers for client in plane.clients if client.requested_s < plane.now_s)
            listed = [*plane.watching.values(), *plane.denied]
            assert sum(client.viewers for client in listed) == present
    clients = plane.record()["clients"]
    stay_s = clients["left_s"].astype(float).fillna(14.0) - clients["asked_s"]
    assert (clients["watched_s"] <= stay_s + 1e-9).all()
    assert (clients["stalled_s"] <= clients["watched_s"] + 1e-9).all()


def test_a_failed_edge_sends_its_viewers_to_the_other_as_far_as_they_fit() -> None:
    problem = two_edges(clients=12.0)
    edge = int(np.flatnonzero(problem.clusters["cluster"] == "e1")[0])
    failed = (Change(time_s=5.0, cluster=edge), Change(time_s=15.0, cluster=edge, share=1.0))
    for until_s, expected in ((10.0, {"e2": 6.0}), (20.0, {"e1": 6.0, "e2": 6.0})):
        result = simulate(problem, control="distributed", until_s=until_s, changes=failed)
        assert result.tables["viewers"].set_index("edge")["clients"].to_dict() == expected
    clients = result.tables["clients"]
    waited = clients["asked_s"] + 20.0 - clients["watched_s"]  # those who moved lost nothing, others 10 s
    assert (clients["viewers"] @ (waited > 9.0)) == 6


def test_a_smaller_last_hop_drops_as_many_viewers_as_it_must() -> None:
    problem = two_edges(clients=16.0)
    link = problem.link_labels.index("e1->g")
    result = simulate(
        problem, control="distributed", until_s=10.0, changes=(Change(time_s=5.0, link=link, share=0.35),)
    )
    assert result.tables["viewers"].set_index("edge")["clients"].to_dict() == {"e1": 3.0, "e2": 6.0}
    assert result.metrics["overload_mbit"] == 0.0


def test_viewers_of_multicast_neither_come_nor_go() -> None:
    problem = networks.problem(
        [("s", "e", 9.0, 1.0), ("e", "g", 9.0, 1.0)],
        [("v", 2_000.0, 1.0)],
        [("g", "v", 2_000.0, 3.0)],
        tiers=TIERS,
    )
    with pytest.raises(InputError, match=r"simulation\.watch_s: viewers come and go where each takes"):
        simulate(problem, control="hybrid", until_s=5.0, watch_s=9.0)


def test_frames_count_viewers_who_lose() -> None:
    result = simulate(two_edges(), control="distributed", until_s=10.0, frames=True)
    last = result.frames[-1]
    assert last.value == pytest.approx(2_000.0 * 16 / 30)
    assert isinstance(result.tables["viewers"], pd.DataFrame)
