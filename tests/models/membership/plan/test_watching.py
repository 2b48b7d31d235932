"""False alarms in closed form against a simulation of heartbeats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner_models.membership.plan.watching import (
    detection_s,
    false_alarm_rates,
    lease_load,
    paused_alarms,
    shortest_lease_s,
)

DAY_S = 86_400.0


def rate(timeout_s: float, loss: float, spread_s: float = 0.0, interval_s: float = 0.1) -> float:
    return float(
        false_alarm_rates(interval_s, np.array([timeout_s]), np.array([loss]), np.array([spread_s]))[0, 0]
    )


def simulated_alarms(
    timeout_s: float, loss: float, spread_s: float, interval_s: float, count: int, seed: int
) -> float:
    """Return the silences longer than a timeout in a second of heartbeats that are lost and late."""
    random = np.random.default_rng(seed)
    comes = random.random(count) >= loss
    time = np.arange(count)[comes] * interval_s + random.exponential(spread_s, int(comes.sum()))
    last = np.maximum.accumulate(time)
    return float((np.diff(last) > timeout_s).sum()) / (count * interval_s)


@pytest.mark.parametrize(("timeout_s", "alarms"), [(0.25, 86.0), (0.35, 0.9)])
def test_losses_alone_are_as_measured(timeout_s: float, alarms: float) -> None:
    assert rate(timeout_s, 0.01) * DAY_S == pytest.approx(alarms, rel=0.06)


@pytest.mark.parametrize(("timeout_s", "alarms"), [(0.35, 54.0), (1.0, 6.1)])
def test_pauses_are_as_measured(timeout_s: float, alarms: float) -> None:
    per_day = DAY_S / 600
    by_pauses = float(paused_alarms([(per_day, 0.3)], 0.1, np.array([timeout_s]))[0])
    assert by_pauses + rate(timeout_s, 0.01) * DAY_S == pytest.approx(alarms, rel=0.01)


@pytest.mark.parametrize(
    ("timeout_s", "loss", "spread_s"),
    [(0.25, 0.1, 0.0), (0.25, 0.1, 0.01), (0.35, 0.2, 0.02), (0.15, 0.05, 0.03)],
)
def test_closed_form_is_near_the_simulation(timeout_s: float, loss: float, spread_s: float) -> None:
    measured = simulated_alarms(timeout_s, loss, spread_s, 0.1, 1_000_000, 1)
    assert rate(timeout_s, loss, spread_s) == pytest.approx(measured, rel=0.07)


def test_longer_timeouts_and_fewer_losses_alarm_less() -> None:
    timeouts = np.linspace(0.2, 2.0, 50)
    losses = np.array([0.0, 0.01, 0.1])
    rates = false_alarm_rates(0.1, timeouts, losses, np.full(3, 0.02))
    assert (np.diff(rates, axis=1) <= 1e-12).all()
    assert (np.diff(rates, axis=0) >= -1e-12).all()


def test_detection_takes_the_timeout_less_half_an_interval() -> None:
    assert detection_s(0.1, 1.0) == pytest.approx(0.95)


def test_leases_send_at_least_once_a_second() -> None:
    assert lease_load(1500, 4.0) == 1500.0
    assert lease_load(1500, 0.5) == pytest.approx(9000.0)
    assert shortest_lease_s(1500, 9000.0) == pytest.approx(0.5)
    assert math.isinf(shortest_lease_s(1500, 1400.0))
