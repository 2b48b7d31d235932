"""Times until rules that flows keep alive expire: closed forms, and a simulation of flows."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from planner_models.updates.plan.flows import expiry_lives, harmonic, mean_last_expiry


@pytest.mark.parametrize("flows", [1, 2, 3, 8, 20])
def test_the_mean_time_until_a_queue_is_empty_against_its_series(flows: int) -> None:
    """M/M/inf with load m: from k to k - 1 flows takes sum_j m^j (k - 1)! / (k + j)! mean lives."""
    series = sum(
        flows**j * factorial(k - 1) / factorial(k + j) for k in range(1, flows + 1) for j in range(150)
    )
    assert mean_last_expiry(flows, 1.0) == pytest.approx(series, rel=1e-4)


def test_the_last_of_several_rules_against_a_simulation() -> None:
    random = np.random.default_rng(1)
    flows, rules, runs = 2, 5, 4000
    remaining, time = np.full(runs * rules, flows), np.zeros(runs * rules)
    while (remaining > 0).any():
        alive = np.flatnonzero(remaining)
        rate = flows + remaining[alive]
        time[alive] += random.exponential(1 / rate)
        remaining[alive] += np.where(random.random(len(alive)) < flows / rate, 1, -1)
    last = time.reshape(runs, rules).max(axis=1)
    error = last.std() / np.sqrt(runs)
    assert abs(mean_last_expiry(flows, rules) - last.mean()) < 4 * error


def test_rules_of_one_flow_end_with_the_last_flow_and_coarse_rules_never() -> None:
    assert expiry_lives(1000.0, np.array([1000])) == pytest.approx(sum(1 / k for k in range(1, 1001)))
    assert expiry_lives(1000.0, np.array([500, 500])) == expiry_lives(1000.0, np.array([1000]))
    assert harmonic(10**12) == pytest.approx(np.log(1e12) + np.euler_gamma, rel=1e-5)
    assert expiry_lives(1000.0, np.array([1])) is None
    result = [expiry_lives(1000.0, np.array([rules])) or 0.0 for rules in (50, 100, 200, 500, 1000)]
    assert result == sorted(result, reverse=True)
