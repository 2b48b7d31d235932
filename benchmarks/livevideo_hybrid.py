"""How fast control in time is simulated, and what it shows: python -m benchmarks.livevideo_hybrid [--quick]

A channel a second is added to the test bed of Mukerjee 2018 (4.7.2) under each kind of control: wall
seconds a simulated minute, join times over their bound, deviation from the decision on all requests at
once. Then what decisions on announcements of a certain age overload. What the thesis states of it:
`planner reproduce livevideo/figure_4_16 livevideo/figure_4_17 livevideo/staleness`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

from planner import Options
from planner_models.livevideo import generate
from planner_models.livevideo.control import Course, ideal_kbps, overload_by_age, simulate
from planner_models.livevideo.events import Control

CONTROLS: tuple[Control, ...] = ("distributed", "centralized", "hybrid")
OPTIONS = Options(time_limit_s=0.5, threads=1, gap=1e-3)


def timed(videos: int, control: Control, repeats: int) -> tuple[Course, float]:
    """A run, and the median wall seconds that a simulated minute takes."""
    one = generate.ec2_testbed(videos=videos)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        course = simulate(one, control=control, until_s=videos + 10.0, options=OPTIONS)
        seconds.append((time.perf_counter() - start) * 60 / (videos + 10))
    return course, statistics.median(seconds)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    repeats = 1 if quick else 3
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, median of {repeats}")
    print("videos control       s/minute  join s  /bound  kbit/s deviation")
    for videos in (20,) if quick else (50, 150, 240):
        ideal = ideal_kbps(generate.ec2_testbed(videos=videos), options=OPTIONS)
        assert ideal is not None
        for control in CONTROLS:
            course, seconds = timed(videos, control, repeats)
            m = course.metrics
            join, of_bound, got = (
                m[key] or 0.0 for key in ("join_s", "join_of_bound", "average_bitrate_kbps")
            )
            away = max(0.0, 100 * (1 - got / ideal))
            print(
                f"{videos:6d} {control:12} {seconds:9.3f} {join:7.3f} {of_bound:7.2f} {got:7.0f} {away:8.2f}%"
            )
            if control == "hybrid" and videos <= 150:
                assert m["within_bound"] == 1.0
                assert away < 17
    videos = 60 if quick else 200
    one = generate.ec2_testbed(videos=videos, link_mbps=videos / 4)
    ages = (0.5, 10.0, 60.0) if quick else (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
    found = overload_by_age(one, ages, until_s=videos + 10.0, seeds=1 if quick else 5, options=OPTIONS)
    print()
    print(found.round(4).to_string(index=False))
    assert found["overload_mbps"].iloc[0] == 0.0
    assert found["overload_mbit"].iloc[-1] > 0.0


if __name__ == "__main__":
    main()
