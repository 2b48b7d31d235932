"""Playback by chunks: closed forms, queues by Lindley's recursion, conservation, and wrong input."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options
from planner.arrays import Floats
from planner.contract.notes import observe_notes
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner_models.livevideo import SYSTEM, LiveVideo
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.chunks import Chunk, ChunkPlane, ChunkRule, Waiter, without_load_s
from planner_models.livevideo.simulation.control import simulate, simulate_designs
from planner_models.livevideo.simulation.events import Change, Control
from planner_models.livevideo.simulation.switching import SwitchRule
from tests.models.livevideo import networks

QUICK = Options(time_limit_s=0.5, threads=1, gap=1e-3)
TIERS = {"s": "source", "e": "edge", "g": "group"}


def star(groups: int, *, core_mbps: float = 75.0, same: bool = False) -> LiveVideo:
    """Return a source, an edge and groups, each of which requests 1.4 Mbit/s: of one channel, or its own."""
    names = [f"g{number}" for number in range(groups)]
    channels = ["v0"] if same else [f"v{number}" for number in range(groups)]
    item = networks.problem(
        [("s", "e", core_mbps, 1.0), *(("e", name, 50.0, 0.0) for name in names)],
        [(channel, rate, 1.0) for channel in channels for rate in (1_400.0, 600.0)],
        [(name, channels[0] if same else channel, 1_400.0, 1.0)
         for name, channel in zip(names, channels * (groups if same else 1), strict=True)],
        tiers=TIERS,
    )  # fmt: skip
    tables = item.to_tables()
    links = tables["links"].assign(latency_ms=[20.0, *[5.0] * groups])
    settings_ = tables["settings"].assign(chunk_s=2.0)
    requests = tables["requests"].assign(arrival_s=0.0)
    return LiveVideo.from_tables({**tables, "links": links, "settings": settings_, "requests": requests})


def run(
    problem: LiveVideo, rule: ChunkRule, *, control: Control = "distributed", **more: Any
) -> SimulationResult:
    return simulate(problem, control=control, chunks=rule, adapt=False, options=QUICK, **more)


@pytest.mark.parametrize("rule", [ChunkRule(), ChunkRule(connection_trips=3, requests_per_s=20.0)])
def test_a_client_alone_waits_for_round_trips_servers_and_a_chunk(rule: ChunkRule) -> None:
    item = star(1)
    (client,) = run(item, rule, until_s=20.0).tables["clients"].itertuples()
    trips_s = (1 + rule.connection_trips) * 2 * (0.020 + 0.005)
    served_s = 2 / (rule.requests_per_s or np.inf)
    assert client.first_byte_s == pytest.approx(trips_s + served_s)
    assert client.join_s == pytest.approx(trips_s + served_s + 2 * 1.4 / 50.0)
    assert client.join_s == pytest.approx(without_load_s(item, [1, 0], 0, rule))
    assert client.join_s <= client.bound_s
    # later chunks come over open connections, each 2 s after the last
    fetch_s = 2 * (0.020 + 0.005) + served_s + 2 * 1.4 / 50.0
    stalls = np.floor((20.0 - client.join_s) / (2 + fetch_s))
    left_s = 20.0 - client.join_s - stalls * (2 + fetch_s)
    assert client.stalled_s == pytest.approx(stalls * fetch_s + max(0.0, left_s - 2.0))
    played_s = client.watched_s - client.stalled_s
    assert client.mean_kbps * 20.0 == pytest.approx(1_400.0 * played_s)


def test_connections_that_close_are_set_up_for_each_chunk() -> None:
    item = star(1)
    kept, closed = (
        run(item, ChunkRule(keep_alive_s=keep_alive_s), until_s=60.0).tables["clients"].iloc[0]
        for keep_alive_s in (5.0, 1.0)
    )
    assert kept.join_s == closed.join_s
    cycles = 58 / (2 + 0.05 + 0.056)
    assert closed.stalled_s - kept.stalled_s == pytest.approx(cycles * 0.05, rel=0.1)


def test_a_burst_of_requests_waits_for_the_servers() -> None:
    """Nine clients at once: the edge answers one request each 50 ms, and so does the source."""
    item = star(9, core_mbps=1e4)
    result = run(item, ChunkRule(requests_per_s=20.0), until_s=1.9)
    first = np.sort(result.tables["clients"]["first_byte_s"].to_numpy(float))
    assert np.diff(first) == pytest.approx(np.full(8, 0.05), abs=1e-3)
    assert first[0] == pytest.approx(2 * 2 * 0.025 + 2 * 0.05)


def lindley(arrival_s: Floats, service_s: float) -> tuple[Floats, Floats]:
    """Return when each request starts and ends at a server that answers them in order of arrival."""
    start, end, free_s = np.empty(len(arrival_s)), np.empty(len(arrival_s)), 0.0
    for number in np.argsort(arrival_s, kind="stable"):
        start[number] = max(arrival_s[number], free_s)
        free_s = end[number] = start[number] + service_s
    return start, end


@given(
    st.integers(1, 20),
    st.sampled_from([20.0, 37.0, 200.0]),
    st.sampled_from([40.0, 75.0]),
    st.integers(0, 999),
)
@settings(max_examples=25)
def test_first_chunks_come_when_queues_say(groups: int, rate: float, core_mbps: float, seed: int) -> None:
    """Two servers and a link in a row, each by Lindley's recursion; links into groups are their own."""
    item = star(groups, core_mbps=core_mbps)
    arrival_s = np.sort(np.random.default_rng(seed).uniform(0.0, 1.0, groups))
    item = item.with_requests(item.requests.assign(arrival_s=arrival_s))
    result = run(item, ChunkRule(connection_trips=0, requests_per_s=rate), until_s=60.0)
    clients = result.tables["clients"].sort_values("asked_s")
    _, answered = lindley(arrival_s + 0.005, 1 / rate)
    _, found = lindley(answered + 0.020, 1 / rate)
    start, end = lindley(found, 2 * 1.4 / core_mbps)
    first, last = start + 0.020, end + 0.020
    came = np.maximum(first + 2 * 1.4 / 50.0, last) + 0.005
    before_next = came < arrival_s.min() + 2.0  # later, second chunks are in the queues too
    assert before_next.any()
    assert clients["join_s"].to_numpy(float)[before_next] == pytest.approx((came - arrival_s)[before_next])


class Counted(ChunkPlane):
    """Chunk plane that counts what crosses links, and when."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sent: Counter[tuple[int, int, int]] = Counter()
        self.finished = 0

    def _send(self, time_s: float, chunk: Chunk, waiter: Waiter, last_s: float) -> None:
        if not self.is_down(waiter.link):
            free_s = self.link_free_s[waiter.link]
            super()._send(time_s, chunk, waiter, last_s)
            self.sent[(*chunk, waiter.link)] += 1
            taken_s = self.link_free_s[waiter.link] - max(free_s, time_s)
            bits = self.problem.chunk_s * self.streams.bitrate[chunk.item]
            assert taken_s * self.capacity[waiter.link] == pytest.approx(bits)
        else:
            super()._send(time_s, chunk, waiter, last_s)

    def _finish(self, time_s: float, number: int, item: int) -> None:
        super()._finish(time_s, number, item)
        self.finished += 1


def test_a_cluster_requests_a_chunk_once_for_all_who_wait() -> None:
    item = star(6, same=True)
    item = item.with_requests(item.requests.assign(arrival_s=np.linspace(0.0, 3.0, 6)))
    plane = Counted(problem=item, control="distributed", adapt=False, rule=ChunkRule(requests_per_s=50.0))
    plane.advance(40.0)
    core = [count for (_, _, link), count in plane.sent.items() if link == 0]
    assert set(core) == {1}
    assert len(core) <= 21
    assert plane.finished > 5 * len(core)


def test_a_full_link_delivers_its_capacity_and_no_more() -> None:
    """Sixty clients of 1.4 Mbit/s share what is left of a link, 30 Mbit/s: it is busy all the time."""
    item = star(60, core_mbps=100.0)
    change = (Change(time_s=5.0, link=0, share=0.3),)
    result = run(item, ChunkRule(), until_s=200.0, changes=change, stale_change=9.0)
    clients = result.tables["clients"]
    delivered = clients["mean_kbps"].sum() / 1000
    assert delivered <= 30.0 + 5 * 100.0 / 200
    assert delivered >= 0.95 * 30.0
    assert clients["mean_kbps"].max() < 1.2 * clients["mean_kbps"].min()


@pytest.mark.parametrize("control", ["distributed", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_clients_of_a_failed_cluster_fetch_again(control: Control) -> None:
    item = generators.ec2_testbed(videos=20)
    reflector = int(np.flatnonzero(item.clusters["cluster"] == "R1")[0])
    changes = (Change(time_s=25.0, cluster=reflector), Change(time_s=40.0, cluster=reflector, share=1.0))
    result = run(item, ChunkRule(requests_per_s=100.0), control=control, until_s=60.0, changes=changes)
    clients = result.tables["clients"]
    assert (clients["watched_s"] >= 60.0 - clients["asked_s"] - 3.0).all()
    assert (clients["stalled_s"] <= 0.15 * clients["watched_s"]).all()
    assert (clients["mean_kbps"] <= 1_400.0).all()


@pytest.mark.slow
@given(st.sampled_from(["distributed", "centralized", "hybrid"]), st.integers(0, 99), st.data())
@settings(max_examples=15)
def test_time_and_bits_are_conserved(control: Control, seed: int, data: st.DataObject) -> None:
    item = generators.ec2_testbed(videos=12, link_mbps=6.0, seed=seed)
    core = np.flatnonzero(item.level[item.tail] < 2)
    shares = st.sampled_from([0.0, 0.4, 0.9, 1.0])
    changes = [
        Change(time_s=time, link=int(core[link % len(core)]), share=share)
        for time, link, share in data.draw(
            st.lists(st.tuples(st.floats(0, 25), st.integers(0, 99), shares), max_size=5)
        )
    ]
    rule = ChunkRule(requests_per_s=data.draw(st.sampled_from([None, 10.0, 60.0])))
    result = simulate(
        item, control=control, until_s=30.0, period_s=4.0, computing_s=1.0, changes=tuple(changes),
        chunks=rule, switching=data.draw(st.sampled_from([None, SwitchRule(period_s=4.0)])), options=QUICK,
    )  # fmt: skip
    clients = result.tables["clients"]
    since_s = 30.0 - clients["asked_s"] - clients["join_s"].fillna(np.inf)
    assert clients["watched_s"].to_numpy(float) == pytest.approx(since_s.clip(lower=0.0).to_numpy(float))
    played_s = clients["watched_s"] - clients["stalled_s"]
    assert (played_s >= -1e-9).all()
    received = clients["mean_kbps"] * (30.0 - clients["asked_s"])
    assert (received <= 1_400.0 * played_s + 1e-6).all()
    assert (received >= 200.0 * played_s - 1e-6).all()


def test_bitrates_switch_by_the_time_that_chunks_take() -> None:
    """Ten clients of 14 Mbit/s share 6 of a link: chunks take longer than they play, and bitrates fall."""
    item = star(10, core_mbps=20.0)
    changes = (Change(time_s=20.0, link=0, share=0.3),)
    result = simulate(
        item, control="distributed", until_s=80.0, changes=changes, stale_change=9.0, chunks=ChunkRule(),
        switching=SwitchRule(period_s=6.0), options=QUICK,
    )  # fmt: skip
    assert (result.tables["switches"]["to_kbps"] == 600.0).any()
    assert result.tables["clients"]["bitrate_kbps"].min() == 600.0


def of_design(problem: LiveVideo, **parameters: Any) -> SimulationResult:
    design = SYSTEM.design("distributed")
    return simulate_designs(
        problem, design=design, information={}, decision_parameters={}, options=QUICK, **parameters
    )


def test_assumptions_are_said() -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        of_design(star(1), by_chunks=True, requests_per_s=30.0)
    (note,) = notes
    assert note == (
        "assumed: chunks of 2 s; round trips that set up a connection: 1; idle connections stay open for "
        "5 s; servers of a cluster answer 30 requests a second, one after another; chunks cross a link one "
        "after another"
    )


def test_wrong_input_is_one_line() -> None:
    with pytest.raises(InputError) as caught:
        of_design(star(1), requests_per_s=30.0, keep_alive_s=1.0)
    rule = "without effect while streams flow evenly: set simulation.by_chunks to true"
    assert caught.value.faults == (
        f"simulation.keep_alive_s is 1, {rule}",
        f"simulation.requests_per_s is 30, {rule}",
    )
    tables = star(1).to_tables()
    unicast = LiveVideo.from_tables(
        {**tables, "settings": pd.DataFrame(tables["settings"]).assign(last_hop="unicast")}
    )
    with pytest.raises(InputError, match="by_chunks: links into groups carry a chunk once for all"):
        of_design(unicast, by_chunks=True)
