"""The compiled network against a plain twin, against times worked out by hand, and against conservation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.circuitflows.packets import (
    CIRCUIT_DOWN,
    CIRCUIT_UP,
    DETACH,
    RESIZE,
    Network,
    NetworkSettings,
    build_network,
)
from planner_models.circuitflows.packets.state import LOCAL, LOST
from planner_models.packets.controls import CONTROLS
from planner_models.packets.state import SENT
from tests.models.circuitflows.twin import Twin

HOW: dict[str, Any] = {
    "packet_bits": 1000.0,
    "host_mbps": 100.0,
    "packet_delay_us": 3.0,
    "circuit_delay_us": 20.0,
    "inside": 3,
    "capacity": 16,
    "least_timeout_us": 500.0,
    "reply_share": 0.0,
    "reply_every": 1,
    "alpha": 1.0,
    "beta": 1.0,
}


def flows(*rows: tuple[int, int, int, int, float, int]) -> dict[str, Any]:
    """source, target, host, packets, start and the flow before, of each."""
    columns = zip(*rows, strict=True)
    return dict(
        zip(("source", "target", "host", "size", "start_us", "before"), map(np.array, columns), strict=True)
    )


def build(racks: int, which: dict[str, Any], **how: Any) -> Network:
    settings_ = {**HOW, **how}
    settings_.setdefault("packet_mbps", np.full(racks, 100.0))
    settings_.setdefault("circuit_mbps", np.full((racks, racks), 800.0))
    settings_.setdefault("largest", 64)
    hosts = int(which["host"].max()) + 1
    return build_network(which, NetworkSettings(racks=racks, hosts=hosts, **settings_))


def add_changes(network: Network, rows: list[tuple[float, int, int, float]]) -> Network:
    us, kind, pair, value = (np.array(column) for column in zip(*rows, strict=True))
    return network.with_changes(us.astype(float), kind, pair, value.astype(float))


# --- by hand ------------------------------------------------------------------------------


def test_one_packet_takes_the_time_of_its_links_and_delays() -> None:
    """10 us on each of three links of 100 Mbit/s, and 6 us of delay there and back."""
    network = build(2, flows((0, 1, 0, 1, 5.0, -1)))
    network.advance(1e6)
    assert network.us("end")[0] == pytest.approx(5 + 3 * 10 + 2 * 6)


def test_a_reply_that_queues_takes_the_way_back() -> None:
    """A tenth of a packet's time up and down again."""
    network = build(2, flows((0, 1, 0, 1, 0.0, -1)), reply_share=0.1)
    network.advance(1e6)
    assert network.us("end")[0] == pytest.approx(3 * 10 + 6 + 2 * 1 + 6)


def test_a_window_is_sent_in_a_row() -> None:
    """Ten packets leave the host one after another and stay 10 us apart."""
    network = build(2, flows((0, 1, 0, 10, 0.0, -1)))
    network.advance(1e6)
    assert network.us("end")[0] == pytest.approx(10 * 10 + 2 * 10 + 2 * 6)


def test_a_circuit_carries_what_waits_and_keeps_the_pair_off_the_packet_switch() -> None:
    """Off the packet switch from 0, up from 50 to 60: eight packets of 1.25 us fit the day; two wait."""
    which = flows((0, 1, 0, 10, 0.0, -1))
    network = build(2, which, host_mbps=None, least_timeout_us=5_000.0)
    network = add_changes(
        network, [(0.0, DETACH, 1, 0), (50.0, CIRCUIT_UP, 1, 60.0), (60.0, CIRCUIT_DOWN, 1, 0)]
    )
    network.advance(1e6)
    assert network.of("carried")[:, 1].tolist() == [2, 8]
    # the last of two goes up, and down behind the one before it
    assert network.us("end")[0] == pytest.approx(60 + 10 + 10 + 10 + 12)


def test_nothing_crosses_at_night() -> None:
    network = add_changes(build(2, flows((0, 1, 0, 10, 0.0, -1))), [(0.0, DETACH, 1, 0)])
    network.advance(1e5)
    assert network.of("carried").sum() == 0


def test_a_full_queue_loses_packets_and_tcp_sends_them_again() -> None:
    """Four of ten at once find no place; three later replies show it, and all arrive in the end."""
    which = flows((0, 1, 0, 10, 0.0, -1))
    network = build(2, which, host_mbps=None, capacity=5, least_timeout_us=5_000.0)
    network.advance(30.0)
    assert network.count(LOST) > 0
    network.advance(1e6)
    assert network.of("delivered")[0] == 10
    assert not np.isnan(network.us("end")[0])
    assert network.count(SENT) == 10 + network.count(LOST)


def test_the_packet_switch_is_shared_in_turn() -> None:
    """Two pairs of one rack: equal flows end within a packet of each other."""
    which = flows((0, 1, 0, 40, 0.0, -1), (0, 2, 1, 40, 0.0, -1))
    network = build(3, which, capacity=64)
    network.advance(1e6)
    ends = network.us("end")
    assert abs(ends[0] - ends[1]) <= 10 + 1e-9


def test_back_pressure_keeps_packets_in_the_racks_queue() -> None:
    """Three racks send to one: no more than three of each pair are inside the packet switch.

    What finds no place there goes again before others; a delay of less than a packet's time loses none.
    """
    which = flows(*((rack, 3, rack, 12, 0.0, -1) for rack in range(3)))
    network = build(4, which, host_mbps=None, capacity=64)
    returned = 0
    for until in np.arange(5.0, 500.0, 5.0):
        network.advance(until)
        assert network.of("inside_length").max() <= 3
        returned = max(returned, int(network.of("returned_length").max()))
    assert returned > 0
    assert network.count(LOST) == 0


def test_what_finds_no_place_in_the_packet_switch_is_lost_where_too_many_wait_already() -> None:
    """Ten packets a microsecond apart reach a link ten times as slow: it takes one, three find places, five
    wait at their rack, which is kept off the packet switch by then, and one is lost."""
    network = build(
        2,
        flows((0, 1, 0, 10, 0.0, -1)),
        host_mbps=None,
        packet_mbps=np.array([1_000.0, 100.0]),
        packet_delay_us=20.0,
        least_timeout_us=5_000.0,
    )
    network = add_changes(network, [(15.0, DETACH, 1, 0), (200.0, CIRCUIT_DOWN, 1, 0)])
    network.advance(30.5)
    assert network.of("returned_length")[1] == 5
    assert network.count(LOST) == 1
    network.advance(1e5)
    assert network.of("delivered")[0] == 10


def test_a_flow_that_waits_starts_when_the_other_ends() -> None:
    network = build(2, flows((0, 1, 0, 5, 0.0, -1), (0, 1, 0, 5, 7.0, 0), (0, 1, 0, 1, 1e4, 0)))
    network.advance(1e6)
    assert network.us("start")[1] == network.us("end")[0]
    assert network.us("start")[2] == 1e4


def test_senders_multiply_their_window_when_a_circuit_is_signalled() -> None:
    which = flows((0, 1, 0, 100_000, 0.0, -1))
    windows = []
    for alpha in (1.0, 2.0):
        network = build(2, which, capacity=4, alpha=alpha, beta=1 / alpha)
        network = add_changes(
            network, [(980.0, DETACH, 1, 0), (1_000.0, CIRCUIT_UP, 1, 2_000.0), (2_000.0, CIRCUIT_DOWN, 1, 0)]
        )
        network.advance(1_045.0)
        windows.append(network.of("window")[0])
        assert network.of("circuit_signalled")[0] == 1
    assert windows[1] > 1.5 * windows[0]


def test_a_larger_queue_holds_more_from_then_on() -> None:
    network = build(2, flows((0, 1, 0, 1_000, 0.0, -1)), host_mbps=None, capacity=2)
    network = add_changes(network, [(0.0, DETACH, 1, 0), (600.0, RESIZE, 1, 64.0)])
    network.advance(599.0)
    assert network.of("queue_length")[1] == 2
    network.advance(20_000.0)
    assert network.of("queue_length")[1] > 2


def test_a_rack_without_a_packet_link_is_reached_by_circuits_alone() -> None:
    which = flows((0, 1, 0, 20, 0.0, -1), (1, 0, 1, 20, 0.0, -1))
    network = build(2, which, packet_mbps=np.array([100.0, 0.0]))
    days = [(kind, pair) for pair in (1, 2) for kind in (DETACH, CIRCUIT_UP, CIRCUIT_DOWN)]
    index = {DETACH: 900.0, CIRCUIT_UP: 1_000.0, CIRCUIT_DOWN: 3_000.0}
    network = add_changes(network, [(index[kind], kind, pair, 3_000.0) for kind, pair in days])
    network.advance(1e6)
    assert network.of("carried")[0].sum() == 0
    assert (network.of("delivered") == 20).all()


def test_a_lost_tail_is_sent_again_after_two_round_trips() -> None:
    """Nothing follows the last two of ten packets, which are lost: a probe comes long before the timeout.

    It stands for the one, and shows that the other is lost.
    """
    network = build(
        2, flows((0, 1, 0, 10, 0.0, -1)), host_mbps=None, capacity=7, inside=1, least_timeout_us=5_000.0
    )
    network.advance(1e6)
    assert network.count(LOST) == 2
    assert network.count(SENT) == 12
    assert network.us("end")[0] < 1_000.0
    assert np.isfinite(network.of("threshold")[0])


def test_a_timeout_that_the_next_reply_shows_to_be_spurious_is_taken_back() -> None:
    """Nothing crosses for longer than the timeout, and nothing is lost."""
    network = build(2, flows((0, 1, 0, 40, 0.0, -1)), capacity=64)
    network = add_changes(network, [(0.0, DETACH, 1, 0), (700.0, CIRCUIT_DOWN, 1, 0)])
    network.advance(690.0)
    assert network.of("window")[0] == 1
    network.advance(760.0)
    assert network.of("window")[0] >= 10
    assert np.isinf(network.of("threshold")[0])
    network.advance(1e6)
    assert network.count(LOST) == 0
    assert network.of("delivered")[0] == 40


def test_a_flow_is_killed_at_the_end_of_its_life_and_the_next_one_starts() -> None:
    which = flows((0, 1, 0, 1_000, 5.0, -1), (0, 1, 0, 3, 0.0, 0))
    network = build(2, which, life_us=300.0)
    network.advance(1e6)
    assert network.us("end")[0] == network.us("start")[1] == 305.0
    assert network.of("delivered")[0] < 100
    assert network.of("delivered")[1] == 3


def test_packets_within_a_rack_cross_their_hosts_link_alone() -> None:
    network = build(2, flows((1, 1, 0, 30, 0.0, -1)), capacity=1)
    network.advance(1e6)
    assert network.us("end")[0] == pytest.approx(30 * 10)
    assert network.of("carried").sum() == network.count(LOST) == 0


def test_an_idle_host_sees_a_flow_when_it_looks_and_a_busy_one_at_once() -> None:
    """Host 0 looks at 0, 100, ...: the first flow waits until then, the other starts beside it."""
    which = flows((0, 1, 0, 30, 40.0, -1), (0, 1, 0, 1, 120.0, -1))
    network = build(2, which, look_us=100.0, capacity=64)
    network.advance(99.0)
    assert network.count(SENT) == 0
    network.advance(1e6)
    assert network.us("end")[1] < 200.0


# --- the twin -----------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A few racks with a few flows, circuits and queue sizes; times that hardly ever coincide, or often."""
    n = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    step = draw(st.sampled_from([1e-9, 5.0]))  # of times, us; of rates: so that packets take whole steps

    def uniform(low: float, high: float, size: Any = None) -> Any:
        return np.ceil(rng.uniform(low, high, size) / step) * step

    def rates(low: float, high: float, size: Any) -> Any:
        us = HOW["packet_bits"] / rng.uniform(low, high, size)
        return HOW["packet_bits"] / (np.ceil(us / step) * step)

    rows = []
    for index in range(draw(st.integers(1, 8))):
        source = int(rng.integers(n))
        target = int((source + rng.integers(draw(st.sampled_from([0, 1])), n)) % n)
        before = int(rng.integers(-1, index)) if index and rng.random() < 0.3 else -1
        rows.append(
            (
                source,
                target,
                source * 2 + int(rng.integers(2)),
                int(rng.integers(1, 60)),
                float(uniform(0, 300)),
                before,
            )
        )
    changes, position = [], 0.0
    while position < 3_000:
        night, day = float(uniform(5, 30)), float(uniform(20, 300))
        shift = int(rng.integers(1, n))
        for source in range(n):
            pair = source * n + (source + shift) % n
            changes += [
                (position, DETACH, pair, 0.0),
                (position + night, CIRCUIT_UP, pair, position + night + day),
                (position + night + day, CIRCUIT_DOWN, pair, 0.0),
            ]
        changes += [
            (position + float(uniform(0, 100)), RESIZE, int(rng.integers(n * n)), float(rng.integers(2, 30)))
        ]
        position += night + day
    how = {
        **HOW,
        "host_mbps": draw(st.sampled_from([None, 100.0 if step > 1 else 97.3])),
        "packet_mbps": rates(30, 130, n) * (rng.random(n) < draw(st.sampled_from([0.7, 1.0]))),
        "circuit_mbps": rates(300, 900, (n, n)),
        "capacity": draw(st.sampled_from([2, 5, 16])),
        "inside": draw(st.sampled_from([1, 3])),
        "reply_share": draw(st.sampled_from([0.0, 0.0731])),
        "reply_every": draw(st.sampled_from([1, 2])),
        "alpha": draw(st.sampled_from([1.0, 2.0])),
        "least_timeout_us": 171.3,
        "life_us": draw(st.sampled_from([np.inf, 5_123.4])),
        "look_us": draw(st.sampled_from([0.0, 53.7])),
        "batch": draw(st.sampled_from([1, 4])),
        "control": draw(st.sampled_from(CONTROLS)),
        "rtt_window_us": draw(st.sampled_from([np.inf, 700.0])),
    }
    how["beta"] = 1 / how["alpha"]
    how["mark_packets"] = max(how["capacity"] // 3, 1) if how["control"] == "dctcp" else None
    return {
        "racks": n,
        "flows": flows(*rows),
        "changes": changes if draw(st.booleans()) else changes[:3],
        "how": how,
    }


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(case=cases())
def test_the_compiled_network_does_as_its_plain_twin(case: dict[str, Any]) -> None:
    network = add_changes(build(case["racks"], case["flows"], **case["how"]), case["changes"])
    twin = Twin(racks=case["racks"], flows=case["flows"], changes=case["changes"], **case["how"])
    for until in (400.0, 1_500.0, 60_000.0):
        network.advance(until)
        twin.run(until)
        np.testing.assert_array_equal(network.of("delivered"), [flow.delivered for flow in twin.flows])
        np.testing.assert_allclose(network.of("window"), [sender.window for sender in twin.senders])
    np.testing.assert_array_equal(network.of("end_ticks"), [flow.end for flow in twin.flows])
    assert network.count(LOST) == twin.lost
    assert network.of("carried")[1].sum() == twin.over_circuits
    assert network.of("carried")[0].sum() == twin.over_packets


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_no_packet_appears_or_vanishes(case: dict[str, Any]) -> None:
    """Every transmission is at its host, in a queue, in a switch, lost, or was carried."""
    network = add_changes(build(case["racks"], case["flows"], **case["how"]), case["changes"])
    for until in (50.0, 333.0, 900.0, 5_000.0):
        network.advance(until)
        of = network.of
        leaving = sum(
            int((of(f"{link}_busy") * (of(f"{link}_packet")[:, 0] >= 0)).sum())
            for link in ("uplink", "downlink", "circuit")
        )
        n = case["racks"]
        inside = sum(
            int(of("inside_flow")[pair, (of("inside_first")[pair] + k) % of("inside_flow").shape[1]] >= 0)
            for pair in range(n * n)
            for k in range(of("inside_length")[pair])
        )
        returned = sum(
            int(of("returned_flow")[pair, (of("returned_first")[pair] + k) % 5] >= 0)
            for pair in range(n * n)
            for k in range(of("returned_length")[pair])
        )
        ring = of("pipe_flow").shape[1]
        entering = sum(
            int(of("pipe_flow")[rack, (of("pipe_first")[rack] + k) % ring] >= 0)
            for rack in range(n)
            for k in range(of("pipe_length")[rack])
        )
        at_hosts = int((of("host_busy") * of("host_count")).sum())
        there = at_hosts + int(of("queue_data").sum()) + leaving + entering + inside + returned
        carried = int(of("carried").sum()) + network.count(LOCAL)
        assert network.count(SENT) == there + carried + network.count(LOST)
        needed = network.by_flow("outstanding") - network.by_flow("spurious")
        needed += of("to_retransmit") + of("unsent")
        live = np.isnan(of("end_ticks"))
        np.testing.assert_array_equal((of("delivered") + needed)[live], of("flow_size")[live])
        assert (of("spurious") <= of("outstanding")).all()
        assert (of("delivered") <= of("flow_size")).all()
        assert (of("queue_length") <= 64).all()


def test_advancing_in_steps_gives_the_same_as_at_once() -> None:
    which = flows(*((rack, (rack + 1) % 3, rack, 200, 3.7 * rack, -1) for rack in range(3)))
    full, steps = (build(3, which, capacity=6, reply_share=0.05) for _ in range(2))
    full.advance(3_000.0)
    for until in np.arange(0.0, 3_000.1, 37.0):
        steps.advance(until)
    steps.advance(3_000.0)
    np.testing.assert_array_equal(full.us("end"), steps.us("end"))
    np.testing.assert_array_equal(full.of("window"), steps.of("window"))
