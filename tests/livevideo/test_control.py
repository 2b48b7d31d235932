"""Control over time: no loops, no stream degraded by a fresh local decision, few clusters touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner_models.livevideo import LiveVideo, check, generate
from planner_models.livevideo.control import simulate
from planner_models.livevideo.execution import Change, Control, Delivery
from planner_models.livevideo.local import Table

QUICK = Options(time_limit_s=0.1, threads=1, gap=1e-2)


def bed(videos: int, *, link_mbps: float = 75.0, seed: int = 0) -> LiveVideo:
    """The test bed with three bitrates to fall back on."""
    one = generate.ec2_testbed(videos=videos, link_mbps=link_mbps, seed=seed)
    rungs = pd.concat(
        [one.objects.assign(bitrate_kbps=rate) for rate in (1400.0, 600.0, 200.0)], ignore_index=True
    )
    return replace(one, objects=rungs)


@st.composite
def events(draw: st.DrawFn) -> tuple[LiveVideo, tuple[Change, ...]]:
    one = bed(
        draw(st.integers(3, 12)),
        link_mbps=draw(st.sampled_from([2.0, 3.0, 8.0])),
        seed=draw(st.integers(0, 99)),
    )
    core = np.flatnonzero(one.level[one.tail] < 2)
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
    return one, tuple(changes)


@given(events(), st.sampled_from(["distributed", "centralized", "hybrid"]), st.floats(0, 1))
@settings(max_examples=8)
def test_what_is_set_up_are_trees(
    drawn: tuple[LiveVideo, tuple[Change, ...]], control: Control, loss: float
) -> None:
    one, changes = drawn
    course = simulate(
        one,
        control=control,
        until_s=14.0,
        period_s=4.0,
        solve_s=1.0,
        loss=loss,
        changes=changes,
        options=QUICK,
    )
    check(one, course.plan)  # PlanRejected where a cluster is its own ancestor, or has two parents
    # at most the clusters between the group and the source
    assert course.metrics["touched"] is not None
    assert course.metrics["touched"] <= len(one.tiers) - 2


class Fresh(Delivery):
    """Agents that always know how things stand."""

    def _up(self, item: int, cluster: int) -> list[int] | None:
        self.table = Table(self.streams)
        before = self.streams.room_mbps.copy()
        path = super()._up(item, cluster)
        if path is not None:
            need = self.streams.bitrate[item]
            assert all(before[link] >= need * (1 - 1e-9) for link in path if self.control == "distributed")
        return path


@given(st.integers(3, 20), st.sampled_from([2.0, 3.0, 8.0]), st.integers(0, 99))
@settings(max_examples=8)
def test_fresh_local_decisions_degrade_no_stream(videos: int, link_mbps: float, seed: int) -> None:
    execution = Fresh(problem=bed(videos, link_mbps=link_mbps, seed=seed), control="distributed", seed=seed)
    for second in range(videos + 2):
        execution.advance(float(second))
        assert (execution.streams.room_mbps >= -1e-9).all()
    assert execution.record()["overloads"].empty


def test_join_times_keep_their_bound() -> None:
    one = bed(20)
    course = simulate(one, control="hybrid", until_s=25.0, solve_s=1.0, options=QUICK)
    trips = sum(2 * one.latency_ms[one.level[one.tail] == step].max() for step in range(3)) / 1000
    fetch = one.chunk_s * 1.4 / 75.0
    assert course.metrics["join_worst_s"] is not None
    assert course.metrics["join_worst_s"] <= trips + fetch + 1e-9
    central = simulate(one, control="centralized", until_s=25.0, solve_s=1.0, options=QUICK)
    assert central.metrics["join_s"] is not None
    assert course.metrics["join_s"] is not None
    assert central.metrics["join_s"] > 5 * course.metrics["join_s"]


def test_without_updates_hybrid_is_distributed() -> None:
    one = bed(15)
    lost = simulate(one, control="hybrid", until_s=20.0, loss=1.0, solve_s=1.0, options=QUICK)
    alone = simulate(one, control="distributed", until_s=20.0)
    assert lost.metrics["served"] == alone.metrics["served"] == 1.0
    assert (
        simulate(one, control="centralized", until_s=20.0, loss=1.0, options=QUICK).metrics["served"] == 0.0
    )


def test_a_failed_reflector_is_left_behind() -> None:
    one = bed(15)
    reflector = int(np.flatnonzero(one.clusters["cluster"] == "R1")[0])
    change = (Change(time_s=10.2, cluster=reflector),)
    course = simulate(
        one, control="hybrid", until_s=20.0, solve_s=1.0, changes=change, silent_from_s=9.0, options=QUICK
    )
    assert course.metrics["served"] == 1.0
    assert "R1" not in set(course.plan.trees["tail"])


def test_announcements_count_hops_and_room() -> None:
    one = bed(2)
    execution = Delivery(problem=one, control="distributed")
    execution.advance(0.5)
    item = int(one.object[0])
    fresh = Table(execution.streams)
    taken = {link for (o, _), link in execution.streams.parent.items() if o == item}
    root = next(link for link in taken if one.level[one.tail[link]] == 0)
    reflector = int(one.head[root])
    assert fresh.announced(item, reflector)[0] == 0
    other = next(int(c) for c in np.flatnonzero(one.level == 1) if int(c) != reflector)
    hops, room = fresh.announced(item, other)
    assert hops == 1
    assert room == pytest.approx(75.0)
