"""Failure detection by heartbeats in closed form: false alarms and times to detect of a timeout.

A process sends a heartbeat every `interval`; each is lost with a probability, and takes half of the
round-trip time, and an exponential time more. Whoever watches it suspects it after a silence of `timeout`
since the last heartbeat came.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.units import MONTH_S
from planner_models.membership.protocols.gossip import first_probe_periods

POINTS: Final = 16
"""Quantiles of the delay of the last heartbeat that the mean is taken over."""
CELLS: Final = 1_000_000
"""Probabilities that are computed at once."""
NEVER: Final = 1e-30
"""Probability below which further heartbeats change nothing."""


def false_alarm_rates(interval_s: float, timeout_s: Floats, loss: Floats, spread_s: Floats) -> Floats:
    """Return false alarms of one watched process in a second, for each way of heartbeats and timeout, (C, T).

    (1 - p) / D x E_x[prod_j (p + (1 - p)(1 - F(T + x - jD)))], for a last heartbeat that took x: none of the
    heartbeats after it comes in time. The least delay adds to both sides of each time, and cancels.

    loss, spread_s  (C,) share of heartbeats that are lost, and mean of the exponential part of their delay
    """
    chunk = max(1, CELLS // (len(timeout_s) * POINTS))
    rates = [
        _alarm_chunk(interval_s, timeout_s, loss[start : start + chunk], spread_s[start : start + chunk])
        for start in range(0, len(loss), chunk)
    ]
    return np.concatenate(rates) if rates else np.zeros((0, len(timeout_s)))


def _alarm_chunk(interval_s: float, timeout_s: Floats, loss: Floats, spread_s: Floats) -> Floats:
    quantiles = -np.log1p(-(np.arange(POINTS) + 0.5) / POINTS)
    way, since = (
        table.ravel()
        for table in np.broadcast_arrays(
            np.arange(len(loss))[:, None, None],
            timeout_s[None, :, None] + spread_s[:, None, None] * quantiles,
        )
    )
    silent = np.ones(len(way))
    rows = np.arange(len(way))
    while True:
        since = since - interval_s
        is_open = (since >= -1e-9 * interval_s) & (silent[rows] > NEVER)
        rows, way, since = rows[is_open], way[is_open], since[is_open]
        if not len(rows):
            break
        lost, spread = loss[way], spread_s[way]
        scale = np.where(spread > 0, spread, 1.0)
        missing = np.where(spread > 0, np.exp(-np.maximum(since, 0.0) / scale), 0.0)
        silent[rows] *= lost + (1 - lost) * missing
    mean = silent.reshape(len(loss), len(timeout_s), POINTS).mean(axis=2)
    return np.asarray((1 - loss[:, None]) / interval_s * mean)


def paused_alarms(pauses: Sequence[tuple[float, float]], interval_s: float, timeout_s: Floats) -> Floats:
    """Return false alarms by pauses of the watched process in a month, one for each timeout, (T,).

    pauses  number in a month, and mean length, s, of exponential pauses; each begins at a uniform phase of
            the interval: E_phase[P(pause > T - phase)]
    """
    alarms = np.zeros(len(timeout_s))
    for per_month, mean_s in pauses:
        if per_month > 0 and mean_s > 0:
            phase = min(interval_s / mean_s, 700.0)
            late = np.exp(-np.maximum(timeout_s - interval_s, 0.0) / mean_s)
            alarms += per_month * late * -math.expm1(-phase) / phase
    return alarms


def detection_s(interval_s: float, timeout_s: float) -> float:
    """Return the mean time from a failure to its suspicion, s: the timeout, less half an interval."""
    return max(timeout_s - interval_s / 2, 0.0)


def lease_load(targets: float, timeout_s: float) -> float:
    """Return the messages that targets with leases send in a second.

    A ZooKeeper client pings after a third of its timeout, or after 1 s of silence if that is sooner.
    """
    return targets / min(timeout_s / 3, 1.0)


def shortest_lease_s(targets: float, capacity_per_s: float) -> float:
    """Return the shortest timeout of leases at which the load is within a capacity; inf for none."""
    if targets <= 0:
        return 0.0
    return 3 * targets / capacity_per_s if targets <= capacity_per_s else math.inf


# --- SWIM ----------------------------------------------------------------------------------

HELPERS: Final = 3
"""Others that probe a member indirectly after a direct probe failed (memberlist: indirect checks)."""
LARGE_GROUP: Final = 10_000
"""Members beyond which the mean time until a first probe does not change by 0.01%."""


def swim_suspicion_s(timeout_s: float, members: int) -> float:
    """Return the time from a suspicion until a member is declared down, s.

    memberlist's shortest one, which others that suspect it too bring about: x max(1, log10 n).

    timeout_s  in groups of up to 10
    """
    return timeout_s * max(1.0, math.log10(max(members, 1)))


def swim_detection_s(interval_s: float, suspicion_s: float, members: int) -> float:
    """Return the mean time from a failure until a member is declared down, s.

    The first probe comes, it fails at the end of its period, and nobody refutes the suspicion.
    """
    return interval_s * (first_probe_periods(min(max(members, 2), LARGE_GROUP)) + 1) + suspicion_s


def swim_paused_alarms(pauses: Sequence[tuple[float, float]], interval_s: float, suspicion_s: float) -> float:
    """Return the times in a month that a paused member is declared down though it comes back.

    P(pause > X + interval + suspicion) for the time X until the first probe, which is exponential with the
    mean of an interval: each of many others probes it at a random time.
    """
    return sum(
        per_month * math.exp(-(interval_s + suspicion_s) / mean_s) * mean_s / (mean_s + interval_s)
        for per_month, mean_s in pauses
        if mean_s > 0
    )


def swim_lost_alarms(loss: float, interval_s: float, suspicion_s: float, messages: float) -> float:
    """Return the times in a month that a live member is declared down because messages were lost.

    A probe a period fails where its ping or ack is lost, and those of each helper. The suspicion is refuted
    as soon as one of the messages about it reaches the member: gossip, and a probe a period.

    messages  of gossip about a suspicion that are sent to the member, in the mean
    """
    fails = (1 - (1 - loss) ** 2) * (1 - (1 - loss) ** 4) ** HELPERS
    unrefuted = math.exp(-(1 - loss) * (messages + suspicion_s / interval_s))
    return MONTH_S / interval_s * fails * unrefuted
