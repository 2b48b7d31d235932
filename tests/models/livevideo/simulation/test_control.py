"""Control in time: no loops, no stream degraded by a current local decision, few clusters touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.errors import InputError
from planner_models.livevideo import LiveVideo, Trees, check
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.distributed import Announcements
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.control import (
    controller_delay_s,
    ideal_kbps,
    overload_by_age,
    simulate,
)
from planner_models.livevideo.simulation.events import Change, Control, Partition, Update
from planner_models.livevideo.simulation.execution import DataPlane

QUICK = Options(time_limit_s=0.1, threads=1, gap=1e-2)


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
