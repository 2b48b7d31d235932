"""Simulation of control in time, speed and results: python -m benchmarks.livevideo_hybrid [--quick]

Each kind of control runs on the test bed of Mukerjee 2018 (4.7.2), where a channel is added each second:
wall seconds per simulated minute, join times over their bound, deviation from one decision on all
requests. Then the overload of decisions on announcements of a certain age. For the thesis' values:
`planner reproduce livevideo/figure_4_16 livevideo/figure_4_17 livevideo/staleness`.
"""

from __future__ import annotations

from functools import partial

from benchmarks.common import machine, median_time, parser_of
from planner import Options
from planner.contract.simulation import SimulationResult
from planner_models.livevideo.problem import generators
from planner_models.livevideo.simulation.control import ideal_kbps, overload_by_age, simulate
from planner_models.livevideo.simulation.events import Control

CONTROLS: tuple[Control, ...] = ("distributed", "centralized", "hybrid")
OPTIONS = Options(time_limit_s=0.5, threads=1, gap=1e-3)


def time_run(videos: int, control: Control, repeats: int) -> tuple[SimulationResult, float]:
    """Return a run, and the median wall seconds per simulated minute."""
    instance, until_s = generators.ec2_testbed(videos=videos), videos + 10.0
    run = partial(simulate, instance, control=control, until_s=until_s, options=OPTIONS)
    seconds, result = median_time(run, repeats, warm=False)
    return result, seconds * 60 / until_s


def main() -> None:
    """Print the tables of control and of overload by age."""
    quick = parser_of(__doc__).parse_args().quick
    repeats = 1 if quick else 3
    print(f"{machine()}, median of {repeats}")
    print("videos control       s/minute  join s  /bound  kbit/s deviation")
    for videos in (20,) if quick else (50, 150, 240):
        ideal = ideal_kbps(generators.ec2_testbed(videos=videos), options=OPTIONS)
        assert ideal is not None
        for control in CONTROLS:
            result, seconds = time_run(videos, control, repeats)
            m = result.metrics
            names = ("join_s", "join_of_bound", "average_bitrate_kbps")
            join, of_bound, got = (m[key] or 0.0 for key in names)
            away = max(0.0, 100 * (1 - got / ideal))
            print(
                f"{videos:6d} {control:12} {seconds:9.3f} {join:7.3f} {of_bound:7.2f} {got:7.0f} {away:8.2f}%"
            )
            if control == "hybrid" and videos <= 150:
                assert m["within_bound"] == 1.0
                assert away < 17
    videos = 60 if quick else 200
    instance = generators.ec2_testbed(videos=videos, link_mbps=videos / 4)
    ages = (0.5, 10.0, 60.0) if quick else (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
    table = overload_by_age(instance, ages, until_s=videos + 10.0, seeds=1 if quick else 5, options=OPTIONS)
    print()
    print(table.round(4).to_string(index=False))
    assert table["overload_mbps"].iloc[0] == 0.0
    assert table["overload_mbit"].iloc[-1] > 0.0


if __name__ == "__main__":
    main()
