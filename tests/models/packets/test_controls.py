"""Traces of each congestion control in scripted runs, against the formulas of its RFC or paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import planner
from planner_models.circuitflows.packets import CIRCUIT_DOWN, CIRCUIT_UP, DETACH, RESIZE, Network
from planner_models.circuitflows.packets.state import LOST
from planner_models.packets.controls import CONTROLS, bbr
from planner_models.packets.state import SENT, TICKS_PER_US
from tests.models.circuitflows.packets.test_network import add_changes, build, flows

ENDLESS = 10_000_000


def one_flow(control: str, *, window: float | None = None, **how: Any) -> Network:
    """One flow of rack 0 that never ends; `window`: where it is in congestion avoidance from the start."""
    settings: dict[str, Any] = {"host_mbps": 200.0, "capacity": 512, "largest": 512, **how}
    network = build(2, flows((0, 1, 0, ENDLESS, 0.0, -1)), control=control, **settings)
    if window is not None:
        network.of("window")[...] = network.of("threshold")[...] = window
    return network


def trace(network: Network, times: Sequence[float] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The window at each of these times, us."""
    result = []
    for time in times:
        network.advance(time)
        result.append(network.of("window")[0])
    return np.array(result)


def lose_some(network: Network) -> Network:
    """Lose a few packets of the middle of the next window: for a while only five may wait."""
    sent = int(network.of("next_number")[0])
    while network.of("next_number")[0] <= sent + 1:
        network.advance(network.now_us + 5)
    index = network.now_us + 50
    stop = [(index, DETACH, 1, 0.0), (index, RESIZE, 1, 5.0)]
    network = add_changes(
        network, [*stop, (index + 100, CIRCUIT_DOWN, 1, 0.0), (index + 100, RESIZE, 1, 512.0)]
    )
    recovery = network.of("recovery_number")[0]
    while network.of("recovery_number")[0] == recovery:
        network.advance(network.now_us + 5)
    assert network.count(LOST) > 0
    return network


# --- Reno ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_reno_grows_by_a_packet_a_round_trip_and_halves_after_a_loss() -> None:
    """A round trip of 100 ms: 30, 31, 32, ... packets, half of it after a loss, and on (RFC 5681)."""
    trip = 4 * 25_000 + 25.0
    network = one_flow("reno", window=30.0, packet_delay_us=25_000.0, least_timeout_us=1e6)
    windows = trace(network, [(k + 0.9) * trip for k in range(1, 5)])
    np.testing.assert_allclose(windows, [30 + k for k in range(1, 5)], rtol=0.01)
    network = lose_some(network)
    before = network.of("loss_window")[0]
    assert before == pytest.approx(35, abs=1)
    assert network.of("threshold")[0] == network.of("window")[0] == before / 2
    rounds = np.arange(3.0, 9.0)
    windows = trace(network, network.now_us + rounds * trip)
    np.testing.assert_allclose(np.diff(windows), 1.0, atol=0.05)
    assert windows[0] == pytest.approx(before / 2 + 2, abs=1.1)


# --- CUBIC --------------------------------------------------------------------------------


def begin(network: Network) -> float:
    """Advance to the beginning of congestion avoidance; return its time, us."""
    while np.isnan(network.of("cubic_epoch_ticks")[0]):
        network.advance(network.now_us + 5)
    return float(network.us("cubic_epoch")[0])


@pytest.mark.slow
def test_cubic_follows_its_cubic_function() -> None:
    """K = cbrt(W_max (1 - 0.7) / 0.4) s after the loss the window is what it was: RFC 9438, figure 2."""
    network = one_flow("cubic", window=120.0, packet_delay_us=50_000.0, least_timeout_us=1e6)
    network = lose_some(network)
    epoch_us = begin(network)
    upper = network.of("loss_window")[0]
    k = np.cbrt(upper * (1 - 0.7) / 0.4)
    assert network.of("cubic_k_s")[0] == pytest.approx(k, rel=1e-3)
    assert network.of("cubic_most")[0] == upper
    seconds = np.arange(0.5, 9.0, 0.25)
    windows = trace(network, epoch_us + 1e6 * seconds)
    np.testing.assert_allclose(windows, 0.4 * (seconds - k) ** 3 + upper, rtol=0.02)
    assert network.count(SENT) > 1_000


def test_cubic_is_no_slower_than_reno() -> None:
    """In short round trips the cubic is flat: W_est grows by 3 (1 - 0.7) / (1 + 0.7) packets each (RFC 9438,
    4.3), by one beyond the window of before the loss."""
    network = lose_some(one_flow("cubic", window=30.0, packet_delay_us=250.0, least_timeout_us=1e5))
    upper, epoch_us, trip = network.of("loss_window")[0], begin(network), 4 * 250 + 25.0
    share = 3 * (1 - 0.7) / (1 + 0.7)
    rounds = np.arange(2.0, 14.0)
    windows = trace(network, epoch_us + rounds * trip)
    np.testing.assert_allclose(windows, 0.7 * upper + share * rounds, rtol=0.04)
    later = trace(network, epoch_us + np.array([40.0, 50.0]) * trip)
    assert later[1] - later[0] == pytest.approx(10.0, rel=0.1)


def test_cubic_is_that_of_the_rfc_reply_by_reply() -> None:
    """The equations of RFC 9438, 4.2 and 4.3, applied by hand to a window of replies each round trip."""
    network = lose_some(one_flow("cubic", window=60.0, packet_delay_us=5_000.0, least_timeout_us=1e5))
    upper, epoch_us, trip = float(network.of("loss_window")[0]), begin(network), (4 * 5_000 + 25.0) / 1e6
    k = np.cbrt(0.3 * upper / 0.4)
    window = estimate = 0.7 * upper
    windows = []
    for turn in range(100):
        replies = int(window)
        for reply in range(replies):
            seconds = (turn + reply / replies) * trip
            estimate += (0.9 / 1.7 if estimate < upper else 1.0) / window
            if 0.4 * (seconds - k) ** 3 + upper < estimate:
                window = max(window, estimate)
            else:
                target = 0.4 * (seconds + trip - k) ** 3 + upper
                window += (min(max(target, window), 1.5 * window) - window) / window
        windows.append(window)
    result = trace(network, epoch_us + 1e6 * trip * np.arange(1, 101))
    np.testing.assert_allclose(result, windows, rtol=2e-3)


def test_cubic_yields_faster_where_it_did_not_reach_its_last_window() -> None:
    """A second loss below W_max leaves W_max = W (1 + 0.7) / 2: RFC 9438, 4.7."""
    network = lose_some(one_flow("cubic", window=60.0, packet_delay_us=250.0, least_timeout_us=1e5))
    first = network.of("loss_window")[0]
    network.advance(begin(network) + 5_000.0)
    assert network.of("window")[0] < first
    network = lose_some(network)
    second = network.of("loss_window")[0]
    assert second < first
    assert network.of("cubic_most")[0] == pytest.approx(second * (1 + 0.7) / 2)
    assert network.of("window")[0] == pytest.approx(0.7 * second)


# --- DCTCP --------------------------------------------------------------------------------


def test_dctcp_forgets_marks_by_a_sixteenth_a_window() -> None:
    """Without marks alpha is (15/16)^n after n windows of data: RFC 8257, 3.3."""
    network = one_flow("dctcp", window=4.0, mark_packets=400)
    network.advance(20_000.0)
    alpha = network.of("dctcp_alpha")[0]
    windows = np.log(alpha) / np.log(15 / 16)
    assert windows > 50
    assert windows == pytest.approx(round(windows), abs=1e-6)


def test_dctcp_halves_its_window_each_round_trip_where_every_packet_is_marked() -> None:
    """Every queue is longer than the threshold, but for the first packet: alpha is 15/16, 0.94, 0.95, ...,
    and each round trip the window is cut by alpha / 2, down to two packets (RFC 8257, 3.3)."""
    network = one_flow("dctcp", window=64.0, mark_packets=1, host_mbps=None)
    windows = trace(network, np.arange(1.0, 6_000.0, 1.0))
    steps = [windows[0], *windows[1:][np.diff(windows) < 0]]
    expected, alpha = [64.0], 15 / 16
    for _ in range(3):
        expected.append(expected[-1] * (1 - alpha / 2))
        alpha = alpha * 15 / 16 + 1 / 16
    np.testing.assert_allclose(steps[:4], expected, rtol=0.01)
    assert network.count(LOST) == 0


def test_dctcp_keeps_a_short_queue_and_a_full_link() -> None:
    """With a threshold above a seventh of rate times round trip (RFC 8257, 4.1) the link is never idle, the
    queue stays near the threshold, and nothing is lost; Reno fills the queue until it loses."""
    used, longest = {}, {}
    for control, marks in (("dctcp", 8), ("reno", None)):
        network = one_flow(control, mark_packets=marks, capacity=100, packet_delay_us=100.0)
        network.advance(30_000.0)
        before, longest[control] = network.of("carried")[0, 1], 0
        for time in np.arange(30_000.0, 60_000.0, 20.0):
            network.advance(time)
            longest[control] = max(longest[control], int(network.of("queue_length")[1]))
        used[control] = (network.of("carried")[0, 1] - before) * 10 / 30_000
        if control == "dctcp":
            lost = network.count(LOST)
            network.advance(200_000.0)
            assert network.count(LOST) == lost
    assert used["dctcp"] > 0.99
    assert longest["dctcp"] <= 24 < 70 < longest["reno"]


# --- BBR ----------------------------------------------------------------------------------


def test_bbr_finds_the_rate_and_the_round_trip() -> None:
    """A packet each 10 us, and by hand a round trip of 2 x 10 us on links to and from the packet switch, 5 us
    on the host's, and 4 x 50 us: in flight are 2 x 22.5 packets at most, and 3 (4.2.3.2)."""
    network = one_flow("bbr", packet_delay_us=50.0)
    network.advance(20_000.0)
    trip = 4 * 50 + 2 * 10 + 5
    assert network.us("bbr_rtt")[0] == pytest.approx(trip)
    assert network.of("bbr_rate")[0] * TICKS_PER_US == pytest.approx(0.1, rel=0.01)
    assert network.of("bbr_mode")[0] == bbr.PROBE_RATE
    assert network.of("window")[0] == pytest.approx(2 * 0.1 * trip + 3, rel=0.02)
    assert network.count(LOST) == 0
    waiting, carried = [], network.of("carried")[0, 1]
    for time in np.arange(20_000.0, 40_000.0, 50.0):
        network.advance(time)
        waiting.append(int(network.of("queue_length")[1]))
    assert (network.of("carried")[0, 1] - carried) * 10 > 0.98 * 20_000
    assert max(waiting) <= 0.25 * 0.1 * trip + 3 + 2  # what probing for bandwidth aims at, seen a reply later


def test_bbr_doubles_its_rate_a_round_trip_until_the_pipe_is_full() -> None:
    """Startup (4.3.2): from ten packets in 8 ms to a packet each 10 us takes log2(80) = 6.3 round trips;
    three more show that the pipe is full. More packets are in flight than there are records."""
    network = one_flow("bbr", packet_delay_us=2_000.0, least_timeout_us=1e6)
    while network.of("bbr_mode")[0] == bbr.STARTUP and network.now_us < 1e6:
        network.advance(network.now_us + 1_000.0)
    assert 8 <= network.of("bbr_round")[0] <= 16
    assert network.of("bbr_full_rounds")[0] == 3
    network.advance(network.now_us + 50_000.0)
    assert network.of("bbr_mode")[0] == bbr.PROBE_RATE
    assert network.of("bbr_rate")[0] * TICKS_PER_US == pytest.approx(0.1, rel=0.01)


def test_bbr_sends_four_packets_while_it_looks_for_the_round_trip() -> None:
    network = one_flow("bbr", packet_delay_us=50.0, rtt_window_us=10_000.0)
    windows = trace(network, np.arange(1_000.0, 45_000.0, 50.0))
    low = windows <= 4
    assert 3 <= (np.diff(low.astype(int)) == 1).sum() <= 5
    assert 0.02 < low.mean() < 0.1


# --- TDTCP --------------------------------------------------------------------------------


def circuits(network: Network, days: int) -> Network:
    """Days of 400 us in weeks of 1,000 us: a pair is kept off the packet switch from 20 us before."""
    rows = []
    for day in range(days):
        up = 1_000.0 * day + 500
        rows += [(up - 20, DETACH, 1, 0.0), (up, CIRCUIT_UP, 1, up + 400), (up + 400, CIRCUIT_DOWN, 1, 0.0)]
    return add_changes(network, rows)


def test_tdtcp_keeps_a_window_for_each_path() -> None:
    """A path's transmissions, and with them its window, stand still while the other path is there."""
    network = circuits(one_flow("tdtcp", capacity=100, host_mbps=1_000.0), 20)
    sent = []
    for time in [1_000.0 * day + index for day in range(20) for index in (501.0, 899.0, 999.0)]:
        network.advance(time)
        sent.append(network.of("next_number").copy())
    by_day = np.array(sent).reshape(20, 3, 2)
    in_day, at_night = by_day[:, 1] - by_day[:, 0], by_day[:, 2] - by_day[:, 1]
    assert (in_day[:, 0] == 0).all()
    assert (in_day[1:, 1] > 0).all()
    assert (at_night[1:, 0] > 0).all()
    assert (at_night[:, 1] <= 1).all()  # one on its host's link as the day ends
    slow, fast = network.of("window")
    assert fast > slow


def test_tdtcp_takes_nothing_for_lost_that_the_other_path_overtakes() -> None:
    """Circuits of a twentieth of the delay overtake the packet switch each day, and nothing is lost. Reno
    cuts its window again and again; TDTCP that of the packet switch alone, of which the queue hands some to
    the circuit."""
    how: dict[str, Any] = {"capacity": 512, "packet_delay_us": 100.0, "circuit_delay_us": 5.0}
    network = circuits(one_flow("tdtcp", host_mbps=1_000.0, **how), 10)
    network.of("threshold")[...] = network.of("window")[...] = 8.0
    network.advance(10_000.0)
    assert network.count(LOST) == 0
    assert network.of("recovery_number")[1] == 0
    assert network.of("window")[1] > 8.0
    reno = circuits(one_flow("reno", window=8.0, host_mbps=1_000.0, **how), 10)
    reno.advance(10_000.0)
    assert reno.count(LOST) == 0
    assert reno.of("recovery_number")[0] > 0
    assert reno.of("delivered")[0] < 0.8 * network.of("delivered")[0]


@pytest.mark.slow
def test_tdtcp_gains_what_its_authors_publish() -> None:
    """24 to 41% more than CUBIC and DCTCP over shallow queues (Chen et al. 2022, abstract)."""
    delivered = {}
    for control in ("cubic", "dctcp", "tdtcp"):
        evaluation = planner.solve("circuitflows/controls", design=control)
        delivered[control] = evaluation.metrics["delivered_gb"]
    for control in ("cubic", "dctcp"):
        assert 1.24 <= delivered["tdtcp"] / delivered[control] <= 1.41


# --- all ----------------------------------------------------------------------------------


@pytest.mark.parametrize("control", CONTROLS)
def test_every_control_delivers_all_in_spite_of_losses(control: str) -> None:
    rows = [
        (rack, (rack + shift) % 3, 2 * rack + shift - 1, 150, 7.0 * rack, -1)
        for rack in range(3)
        for shift in (1, 2)
    ]
    network = build(3, flows(*rows), capacity=6, control=control, mark_packets=3, reply_share=0.05)
    network.advance(2e6)
    assert network.count(LOST) > 0 or control == "bbr"
    assert (network.of("delivered") == 150).all()
    assert not np.isnan(network.of("end_ticks")).any()
