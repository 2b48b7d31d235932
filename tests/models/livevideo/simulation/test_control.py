"""Control in time: no loops, no stream degraded by a current local decision, few clusters touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.contract.drawing import NetworkMap
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner.scenarios.scenario import load
from planner_models.livevideo import SYSTEM, LiveVideo, Trees, check
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.distributed import Announcements
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.control import (
    METRICS,
    SIMULATION,
    controller_delay_s,
    ideal_kbps,
    overload_by_age,
    simulate,
    simulate_designs,
)
from planner_models.livevideo.simulation.events import Change, Control, Partition, Update
from planner_models.livevideo.simulation.execution import DataPlane

QUICK = Options(time_limit_s=1.0, threads=1, gap=1e-2)
OPTIONS = Options(time_limit_s=5, threads=1, gap=1e-2)
PATIENT = Options(time_limit_s=60, threads=1, gap=1e-2)  # a busy machine decides alike


ALWAYS = {metric.name for metric in METRICS} - {"switches"}


def bed(videos: int, *, link_mbps: float = 75.0, seed: int = 0) -> LiveVideo:
    return generators.ec2_testbed(videos=videos, link_mbps=link_mbps, seed=seed)


@st.composite
def events(draw: st.DrawFn) -> tuple[LiveVideo, tuple[Change, ...]]:
    item = bed(
        draw(st.integers(3, 12)),
        link_mbps=draw(st.sampled_from([2.0, 3.0, 8.0])),
        seed=draw(st.integers(0, 99)),
    )
    core = np.flatnonzero(item.level[item.tail] < 2)
    changes = draw(
        st.lists(
            st.builds(
                lambda time, link, share: Change(time_s=time, link=int(core[link % len(core)]), share=share),
                st.floats(0, 12),
                st.integers(0, 99),
                st.sampled_from([0.0, 0.3, 0.9, 1.0]),
            ),
            max_size=4,
        )
    )
    return item, tuple(changes)


@pytest.mark.slow
@given(events(), st.sampled_from(["distributed", "centralized", "hybrid"]), st.floats(0, 1), st.data())
@settings(max_examples=20)
def test_streams_always_form_trees(
    drawn: tuple[LiveVideo, tuple[Change, ...]], control: Control, loss: float, data: st.DataObject
) -> None:
    item, changes = drawn
    cut = data.draw(st.frozensets(st.integers(0, len(item.clusters) - 1), max_size=4))
    start = data.draw(st.floats(0, 10))
    course = simulate(
        item,
        control=control,
        until_s=14.0,
        period_s=4.0,
        computing_s=1.0,
        loss=loss,
        partitions=(Partition(clusters=cut, from_s=start, to_s=start + 4.0),),
        timeout_s=3.0,
        changes=changes,
        options=QUICK,
    )
    check(
        item, Trees(trees=course.tables["trees"])
    )  # PlanRejected where a cluster is its own ancestor, or has two parents
    # at most the clusters between the group and the source
    assert course.metrics["touched"] is not None
    assert course.metrics["touched"] <= len(item.tiers) - 2


class Fresh(DataPlane):
    """Data plane with current announcements that checks the links of each local decision."""

    def _find_path_up(self, item: int, cluster: int) -> list[int] | None:
        self.announcements = Announcements(self.streams)
        before = self.streams.residual_mbps.copy()
        path = super()._find_path_up(item, cluster)
        if path is not None:
            need = self.streams.bitrate[item]
            assert all(before[link] >= need * (1 - 1e-9) for link in path)
        return path


@pytest.mark.slow
@given(events(), st.sampled_from(["distributed", "hybrid"]), st.integers(0, 99))
@settings(max_examples=20)
def test_current_announcements_degrade_no_stream(
    drawn: tuple[LiveVideo, tuple[Change, ...]], control: Control, seed: int
) -> None:
    """Overload only grows when capacity shrinks."""
    item, changes = drawn
    execution = Fresh(problem=item, control=control, changes=changes, seed=seed)
    before = np.zeros(len(item.links))
    for tenth in range(140):
        shrunk = execution.capacity.copy()
        execution.advance(tenth / 10)
        if tenth == 60 and control == "hybrid":
            observed = execution.observe()
            plan = (
                decomposition.distribute(observed.problem, options=QUICK).plan if observed.requests else None
            )
            if plan is not None:
                execution.apply(
                    Update(plan=plan, observed_s=observed.time_s, capacity_mbps=observed.capacity_mbps)
                )
        over = np.clip(-execution.streams.residual_mbps, 0.0, None)
        lost = np.clip(shrunk - execution.capacity, 0.0, None)
        assert (over <= before + lost + 1e-9).all()
        before = over
    if not changes:
        assert execution.record()["overloads"].empty


def test_join_times_keep_their_bound() -> None:
    item = bed(20)
    course = simulate(item, control="hybrid", until_s=25.0, computing_s=1.0, options=QUICK)
    trips = sum(2 * item.latency_ms[item.level[item.tail] == step].max() for step in range(3)) / 1000
    fetch = item.chunk_s * 1.4 / 75.0
    assert course.metrics["join_worst_s"] is not None
    assert course.metrics["join_worst_s"] <= trips + fetch + 1e-9
    assert course.metrics["within_bound"] == 1.0
    assert (course.tables["clients"]["bound_s"] >= trips + fetch - 1e-9).all()
    central = simulate(item, control="centralized", until_s=25.0, computing_s=1.0, options=QUICK)
    assert central.metrics["join_s"] is not None
    assert course.metrics["join_s"] is not None
    assert central.metrics["join_s"] > 5 * course.metrics["join_s"]


def test_without_updates_hybrid_is_distributed() -> None:
    item = bed(15)
    lost = simulate(item, control="hybrid", until_s=20.0, loss=1.0, computing_s=1.0, options=QUICK)
    alone = simulate(item, control="distributed", until_s=20.0)
    assert lost.metrics["served"] == alone.metrics["served"] == 1.0
    assert (
        simulate(item, control="centralized", until_s=20.0, loss=1.0, options=QUICK).metrics["served"] == 0.0
    )


def test_streams_leave_a_failed_reflector() -> None:
    item = bed(15)
    reflector = int(np.flatnonzero(item.clusters["cluster"] == "R1")[0])
    change = (Change(time_s=10.2, cluster=reflector),)
    course = simulate(
        item,
        control="hybrid",
        until_s=20.0,
        computing_s=1.0,
        changes=change,
        controller_fails_s=9.0,
        options=QUICK,
    )
    assert course.metrics["served"] == 1.0
    assert "R1" not in set(course.tables["trees"]["tail"])


def test_announcements_give_hops_and_residual_capacity() -> None:
    entry = bed(2)
    execution = DataPlane(problem=entry, control="distributed")
    execution.advance(0.5)
    item = int(entry.object[0])
    fresh = Announcements(execution.streams)
    taken = {link for (o, _), link in execution.streams.parent.items() if o == item}
    root = next(link for link in taken if entry.level[entry.tail[link]] == 0)
    reflector = int(entry.head[root])
    assert fresh.distance(item, reflector)[0] == 0
    other = next(int(c) for c in np.flatnonzero(entry.level == 1) if int(c) != reflector)
    hops, capacity = fresh.distance(item, other)
    assert hops == 1
    assert capacity == pytest.approx(75.0)


def test_overload_grows_with_the_age_of_announcements() -> None:
    result = overload_by_age(bed(60, link_mbps=15.0), (0.5, 10.0, 30.0), until_s=65.0, seeds=2)
    assert result["overload_mbps"].iloc[0] == 0.0  # a channel a second: nothing comes between
    assert result["overload_mbit"].is_monotonic_increasing
    assert result["overload_mbit"].iloc[-1] > 0
    assert result["buffering_ratio"].iloc[-1] > result["buffering_ratio"].iloc[0] == 0.0


def cluster(item: LiveVideo, name: str) -> int:
    return int(np.flatnonzero(item.clusters["cluster"] == name)[0])


def test_clusters_that_are_cut_off_still_serve() -> None:
    item = bed(20)
    away = frozenset({cluster(item, "E1"), cluster(item, "E2"), cluster(item, "R1")})
    course = simulate(
        item, control="hybrid", until_s=25.0, period_s=5.0, computing_s=1.0, timeout_s=8.0,
        partitions=(Partition(clusters=away, from_s=3.0),), options=QUICK,
    )  # fmt: skip
    assert course.metrics["served"] == 1.0
    assert course.metrics["within_bound"] == 1.0
    central = simulate(
        item, control="centralized", until_s=25.0, period_s=5.0, computing_s=1.0,
        partitions=(Partition(clusters=away, from_s=3.0),), options=QUICK,
    )  # fmt: skip
    assert central.metrics["served"] is not None
    assert central.metrics["served"] < 1.0


def test_small_fluctuations_change_nothing() -> None:
    item = bed(20)
    wave = tuple(
        Change(time_s=float(t), link=link, share=0.85 if t % 2 else 1.0)
        for t in range(5, 15)
        for link in range(4)
    )
    calm = simulate(item, control="distributed", until_s=25.0)
    waving = simulate(item, control="distributed", until_s=25.0, changes=wave)
    assert waving.tables["trees"].equals(
        calm.tables["trees"]
    )  # below the threshold of 20%, and within capacity


def test_an_operator_may_set_what_change_makes_decisions_stale() -> None:
    """A link into a reflector falls to 30%: overloaded streams stay where only larger changes count."""
    item = bed(20, link_mbps=3.0)
    link = int(np.flatnonzero(item.level[item.head] == 1)[0])
    drop = (Change(time_s=10.2, link=link, share=0.3),)
    overload = {
        threshold: simulate(
            item, control="distributed", until_s=25.0, changes=drop, stale_change=threshold
        ).metrics["overload_mbit"]
        for threshold in (0.2, 0.8)
    }
    assert overload[0.2] is not None
    assert overload[0.8] is not None
    assert overload[0.2] == 0.0 < overload[0.8]


def test_the_ideal_fills_the_capacity() -> None:
    assert ideal_kbps(bed(20), options=QUICK) == pytest.approx(1400.0)
    tight = ideal_kbps(bed(20, link_mbps=2.0), options=QUICK)
    assert tight == pytest.approx(1400.0 * 4 / 20)  # four links out of sources, one stream on each


def test_the_delay_of_the_controller_depends_on_its_place() -> None:
    item = generators.heavy_tail(videos=5, groups=10, edges=5, sources=2, reflectors=3)
    east, far = controller_delay_s(item, 40.7, -74.0), controller_delay_s(item, -33.9, 151.2)
    assert 0.015 < east < 0.025  # New York to the west coast: some 4,000 km of fibre
    assert far > 3 * east
    with pytest.raises(InputError, match="clusters: have no latitude and longitude"):
        controller_delay_s(bed(2), 40.7, -74.0)


def simulate_of_study(
    problem: LiveVideo, name: str, information: dict[str, Any] | None = None, **parameters: Any
) -> SimulationResult:
    return simulate_designs(
        problem,
        design=SYSTEM.design(name),
        information=information or {},
        decision_parameters={},
        options=OPTIONS,
        **parameters,
    )


@pytest.mark.slow
def test_the_shipped_scenario_shows_who_reacts_to_the_failure() -> None:
    scenario = load("livevideo/testbed_failure", changes={"problem.videos": 30, "problem.link_mbps": 15})
    assert [entry.design.name for entry in scenario.designs] == list(SIMULATION.designs)
    problem = scenario.make_problem()
    results = {name: simulate_of_study(problem, name, **scenario.simulation) for name in SIMULATION.designs}
    for name, result in results.items():
        assert set(result.metrics) == ALWAYS, name
        check(problem, Trees(trees=result.tables["trees"]))  # PlanRejected where these are no trees
        clients = result.tables["clients"]
        assert len(clients) == len(problem.requests)
        # a client watches no longer than since it joined, and stalls no longer than it watches
        since_s = 60.0 - clients["asked_s"] - clients["join_s"].fillna(np.inf).clip(upper=60.0)
        assert (clients["watched_s"] <= since_s.clip(lower=0.0) + 1.0).all(), name
        assert (clients["stalled_s"] <= clients["watched_s"] + 1e-9).all(), name
    central, hybrid = results["centralized"].metrics, results["hybrid"].metrics
    assert central["join_s"] is not None
    assert hybrid["join_s"] is not None
    assert hybrid["join_s"] < 1 < central["join_s"]
    assert hybrid["served"] == 1.0


@pytest.mark.slow
def test_a_simulation_repeats_by_its_seed() -> None:
    problem = generators.ec2_testbed(videos=20, link_mbps=5.0)
    item, same, other = (simulate_of_study(problem, "hybrid", loss=0.5, seed=seed) for seed in (1, 1, 2))
    assert item.metrics == same.metrics
    for name, table in item.tables.items():
        pd.testing.assert_frame_equal(table, same.tables[name])
    assert not item.tables["clients"].equals(other.tables["clients"])


def test_a_simulation_without_requests_has_unknown_metrics() -> None:
    problem = generators.ec2_testbed(videos=5)
    empty = simulate_of_study(problem.with_requests(problem.requests.iloc[:0]), "hybrid")
    assert empty.metrics == dict.fromkeys(ALWAYS)


def test_a_failed_cluster_carries_nothing_until_it_recovers() -> None:
    problem = generators.ec2_testbed(videos=20)
    failed = simulate_of_study(problem, "distributed", fail_clusters=("R1",), fail_s=5.0)
    assert "R1" not in set(failed.tables["trees"]["tail"])
    recovered = simulate_of_study(problem, "distributed", fail_clusters=("R1",), fail_s=5.0, recover_s=8.0)
    assert "R1" in set(recovered.tables["trees"]["tail"])
    degraded = simulate_of_study(problem, "distributed", degrade_links=("S1->R1", "S2->R1"), fail_s=5.0)
    assert "R1" not in set(degraded.tables["trees"]["tail"])


def test_clusters_that_are_cut_off_are_not_served_centrally() -> None:
    problem = generators.ec2_testbed(videos=20)
    cut = simulate_of_study(problem, "centralized", cut_off=("R1", "R2"), computing_s=1.0)
    assert cut.metrics["served"] == 0.0
    assert simulate_of_study(problem, "centralized", computing_s=1.0).metrics["served"] > 0.0  # type: ignore[operator]


def test_bad_parameters_are_one_line_each() -> None:
    problem = generators.ec2_testbed(videos=5)
    with pytest.raises(InputError) as caught:
        simulate_of_study(
            problem,
            "hybrid",
            information={"age_s": 5.0},
            cut_off=("R9",),
            degrade_links=("S1-R1",),
            fail_s=9.0,
            recover_s=3.0,
        )
    assert caught.value.faults == (
        "hybrid: age_s has no effect in a simulation: age follows from its periods and delays",
        "simulation.recover_s is 3, must be above fail_s, 9",
        "simulation.cut_off: 'R9' is unknown",
        "simulation.degrade_links: 'S1-R1' is unknown; did you mean 'S1->R1'?",
    )


def test_frames_show_the_failed_cluster_while_it_is_down() -> None:
    problem = generators.ec2_testbed(videos=20)
    result = simulate_of_study(
        problem, "hybrid", fail_clusters=("R1",), fail_s=5.0, recover_s=9.0, until_s=20.0, frames=True
    )
    assert [frame.label for frame in result.frames][:3] == ["0 s", "0.5 s", "1 s"]
    for frame in result.frames:
        assert isinstance(frame.drawing, NetworkMap)
        is_down = 5.0 <= frame.time_s < 9.0
        assert ("R1" in set(frame.drawing.nodes["node"])) != is_down, frame.label
        ends = {*frame.drawing.links["tail"], *frame.drawing.links["head"]}
        assert ("R1" in ends) != is_down, frame.label
        assert (frame.drawing.whole is not None) == is_down
    last = result.frames[-1]
    assert last.value == pytest.approx(result.metrics["average_bitrate_kbps"])


@pytest.mark.parametrize("control", ["distributed", "centralized", "hybrid"])
def test_clients_get_a_bitrate_that_they_accept_and_none_below(control: Control) -> None:
    """One link of 3 Mbit/s: two groups of 2 Mbit/s accept 1, the third accepts 2 Mbit/s only."""
    links = [("s", "r", 3.0, 1.0), ("r", "e", 9.0, 1.0)]
    names = [f"g{number}" for number in range(3)]
    item = LiveVideo(
        clusters=pd.DataFrame(
            {"cluster": ["s", "r", "e", *names], "tier": ["source", "reflector", "edge", *["group"] * 3]}
        ),
        links=pd.DataFrame(
            [*links, *(("e", name, 9.0, 1.0) for name in names)],
            columns=["tail", "head", "capacity_mbps", "cost"],
        ),
        objects=pd.DataFrame(
            [(f"v{n}", rate, rate / 1000) for n in range(3) for rate in (2_000.0, 1_000.0, 500.0)],
            columns=["channel", "bitrate_kbps", "priority"],
        ),
        requests=pd.DataFrame(
            {
                "group": names,
                "channel": ["v0", "v1", "v2"],
                "bitrate_kbps": 2_000.0,
                "clients": [5.0, 5.0, 1.0],
                "lowest_kbps": [1_000.0, 1_000.0, 2_000.0],
                "arrival_s": [0.0, 1.0, 2.0],
            }
        ),
    )
    assert item.has_ladders
    result = simulate(item, control=control, until_s=30.0, adapt=False, options=PATIENT)
    trees = result.tables["trees"]
    served = trees[trees["tail"] == "e"].set_index("head")["bitrate_kbps"].to_dict()
    assert served["g0"] in (1_000.0, 2_000.0)
    assert served["g1"] in (1_000.0, 2_000.0)
    assert served["g0"] + served["g1"] == 3_000.0
    assert "g2" not in served


@pytest.mark.parametrize("last_hop", ["multicast", "unicast"])
@pytest.mark.parametrize("control", ["distributed", "hybrid"])
def test_caps_of_bills_hold_in_time(control: Control, last_hop: str) -> None:
    """Ten channels of 1.4 Mbit/s cross links of a bill with a cap of 5 Mbit/s: three of them at most."""
    item = bed(10)
    links = item.links.assign(bill=np.where(item.level[item.head] == 1, "transit", ""))
    bills = pd.DataFrame({"bill": ["transit"], "price_per_mbps": [1.0], "cap_mbps": [5.0]})
    tables = item.to_tables()
    tables |= {"links": links, "bills": bills, "settings": tables["settings"].assign(last_hop=last_hop)}
    item = LiveVideo.from_tables(tables)
    result = simulate(item, control=control, until_s=15.0, adapt=False, computing_s=1.0, options=QUICK)
    trees = result.tables["trees"]
    on_bill = trees["head"].isin(item.clusters.loc[item.level == 1, "cluster"])
    assert 1_400.0 <= trees.loc[on_bill, "bitrate_kbps"].sum() <= 5_000.0
