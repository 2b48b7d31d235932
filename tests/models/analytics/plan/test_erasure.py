"""Queues that erase data, by hand, against queues without a limit and against steps of a second."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.arrays import Floats
from planner_models.analytics import Analytics
from planner_models.analytics.plan.answers import find_loads, replay_queues
from planner_models.analytics.plan.metrics import measure_levels
from planner_models.analytics.problem.generators import diurnal
from planner_models.analytics.simulation import QueueExecution
from tests.models.analytics.problems import tables

MBPS_OF_BYTES = 8 / 60 / 1e6


def limit(problem: Analytics, hours: dict[str, float]) -> Analytics:
    """Return the problem with hours by cube after which all sites erase data."""
    made = dict(problem.to_tables())
    made["sites"] = made["sites"].assign(region="a")
    made["retention"] = pd.DataFrame({"region": "a", "cube": list(hours), "at_most_h": list(hours.values())})
    return Analytics.from_tables(made)


def test_data_is_erased_by_hand() -> None:
    """Of 1,600 bytes a minute, 500 are sent at once and 500 in the next minute; then 600 are a minute old."""
    problem = Analytics.from_tables(tables(sites=1, intervals=3, uplink_mbps=500 * MBPS_OF_BYTES))
    levels = np.zeros((3, 1, 1), dtype=np.int64)
    limited = limit(problem, {"c": 1 / 60})
    erasure = replay_queues(limited, find_loads(limited, levels)).erasure
    assert erasure is not None
    assert erasure.sent[:, 0] == pytest.approx([500, 500, 500])
    assert erasure.waiting[:, 0] == pytest.approx([1100, 1600, 1600])
    # of the second minute, 500 are sent in the third, and 1,100 erased at its end; of the third, 500 later
    assert erasure.lost[0, 0] == pytest.approx(600 + 1100 + 1100)
    figures = measure_levels(limited, levels)
    assert figures["late_loss"] == pytest.approx(3.0)
    assert figures["erased_gb"] == pytest.approx(2800 / 1e9)
    assert figures["sent_gb"] == pytest.approx((4800 - 2800) / 1e9)


def crowded(seed: int) -> tuple[Analytics, np.ndarray]:
    """Return a problem with uplinks that carry too little for its finest levels, which are sent."""
    problem = diurnal(sites=3, pops=1, queries=10, hours=0.5, bandwidth=0.5, variation=0.8, seed=seed)
    return problem, np.zeros((6, 3, 10), dtype=np.int64)


@pytest.mark.parametrize("seed", range(3))
def test_a_limit_that_is_never_reached_changes_nothing(seed: int) -> None:
    problem, levels = crowded(seed)
    limited = limit(problem, {"cube1": 1e6})
    first, second = (replay_queues(item, find_loads(item, levels)) for item in (problem, limited))
    assert second.erasure is not None
    assert not second.erasure.is_erased.any()
    # points of presence merge each interval's data by its own levels, and not by those of the queue
    assert second.erasure.waiting[:, :].sum() > 0
    assert second.erasure.finish_s == pytest.approx(
        _finish(problem, find_loads(problem, levels).site), rel=1e-6
    )
    assert first.backlog.max() > 0


def _finish(problem: Analytics, load: Floats) -> Floats:
    """Return the time at which each interval's bytes have left their site, in turn."""
    ends, rate = problem.start_s + problem.length_s, problem.capacity_bytes / problem.length_s[:, None]
    finish = np.empty_like(load)
    for site in range(load.shape[1]):
        free = 0.0
        for k, size in enumerate(load[:, site]):
            now, left = max(free, problem.start_s[k]), size
            while left > 1e-9 * size:
                at = min(int(np.searchsorted(ends, now, side="right")), len(ends) - 1)
                until = ends[at] if now < ends[-1] else np.inf
                part = min(left, rate[at, site] * (until - now))
                now = now + part / rate[at, site] if part == left else until
                left -= part
            free = finish[k, site] = max(now, ends[k])
    return finish


@pytest.mark.parametrize("seed", range(3))
def test_erased_bytes_are_those_of_steps_of_a_second(seed: int) -> None:
    """Two cubes with limits of 4 and 9 minutes; some bytes of each interval are in the queue at both."""
    problem, levels = crowded(seed)
    limited = limit(problem, {"cube1": 4 / 60, "cube2": 9 / 60})
    loads = find_loads(limited, levels)
    assert loads.chunks is not None
    erasure = replay_queues(limited, loads).erasure
    assert erasure is not None
    sent = step(limited, loads.chunks.sent, {0: 240.0, 1: 540.0})
    scale = loads.site.sum(axis=0).max()
    assert erasure.sent == pytest.approx(sent, abs=0.005 * scale)


def step(problem: Analytics, size: Floats, kept_s: dict[int, float]) -> Floats:
    """Return the bytes that leave each site in each interval, (K, S), second by second."""
    intervals, sites, cubes = size.shape
    sent = np.zeros((intervals, sites))
    ends = problem.start_s + problem.length_s
    for site in range(sites):
        queue = np.zeros((intervals, cubes))
        for k in range(intervals):
            rate = problem.capacity_bytes[k, site] / problem.length_s[k]
            for second in range(int(problem.length_s[k])):
                now = problem.start_s[k] + second
                for cube, age_s in kept_s.items():
                    queue[ends + age_s <= now, cube] = 0.0
                queue[k] += size[k, site] / problem.length_s[k]
                left = rate
                for row in range(k + 1):
                    total = queue[row].sum()
                    part = min(total, left)
                    if part > 0:
                        queue[row] *= 1 - part / total
                        left -= part
                        sent[k, site] += part
    return sent


def test_the_simulation_erases_as_the_replay() -> None:
    problem, levels = crowded(1)
    limited = limit(problem, {"cube1": 4 / 60, "cube2": 9 / 60})
    execution = QueueExecution(limited, limited, levels[0])
    execution.advance(1_800.0)
    frame = execution.record()["queues"]
    replay = replay_queues(limited, find_loads(limited, levels))
    assert replay.erasure is not None
    assert frame["backlog_gb"].to_numpy() == pytest.approx(replay.backlog / 1e9)
    assert frame["sent_gb"].to_numpy() == pytest.approx(replay.erasure.sent.sum(axis=1) / 1e9)
    assert replay.erasure.is_erased.any()
