"""Section 4.7.2 of Mukerjee 2018 anew: python -m benchmarks.livevideo_hybrid [--quick]

A channel a second is added to the test bed under each kind of control: join time, bitrate and
buffering (Fig. 4.16), with links degraded and with updates lost (Fig. 4.17). Published: joins of
about 7 s under central, 200 ms under hybrid and below 1 s under distributed control; hybrid within
17% of the optimal decision, up to twice the bitrate of distributed control at medium load.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd

from planner import Options
from planner_models.livevideo import LiveVideo, columns, generate, measure
from planner_models.livevideo.control import Course, simulate
from planner_models.livevideo.execution import Change, Control

CONTROLS: tuple[Control, ...] = ("distributed", "centralized", "hybrid")
OPTIONS = Options(time_limit_s=0.5, threads=1, gap=1e-3)


def bed(videos: int) -> LiveVideo:
    """The test bed with the three bitrates that clients fall back on."""
    one = generate.ec2_testbed(videos=videos)
    rungs = [one.objects.assign(bitrate_kbps=rate) for rate in (1400.0, 600.0, 200.0)]
    return replace(one, objects=pd.concat(rungs, ignore_index=True))


def line(what: str, control: str, course: Course) -> str:
    """One row of figures."""
    m = course.metrics
    join = "      -" if m["join_s"] is None else f"{m['join_s']:7.3f}"
    worst = "      -" if m["join_worst_s"] is None else f"{m['join_worst_s']:7.3f}"
    bitrate, stalled, served = m["average_bitrate_kbps"], m["buffering_ratio"] or 0.0, m["served"] or 0.0
    return (
        f"{what:16} {control:12} join {join} s (worst {worst}), bitrate {bitrate:7.1f} kbit/s, "
        f"buffering {100 * stalled:6.2f}%, served {100 * served:5.1f}%, "
        f"overload {m['overload_mbps']:.1f} Mbit/s"
    )


def main() -> None:
    """Print figures 4.16 and 4.17 as rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    for videos in (20,) if quick else (50, 100, 150, 200):
        one = bed(videos)
        best = columns.distribute(one, options=Options(time_limit_s=5.0, threads=1)).plan
        assert best is not None
        ideal = measure(one, best, None)["average_bitrate_kbps"] or 1.0
        for control in CONTROLS:
            course = simulate(one, control=control, until_s=videos + 10.0, options=OPTIONS)
            away = 100 * (1 - (course.metrics["average_bitrate_kbps"] or 0.0) / ideal)
            print(line(f"{videos} videos", control, course) + f", {away:.1f}% below optimal", flush=True)
    videos = 20 if quick else 100
    one = bed(videos)
    core = np.flatnonzero(one.level[one.tail] < 2)
    for share in (0.75, 0.5, 0.25):
        chosen = np.random.default_rng(1).choice(core, round(0.25 * len(core)), replace=False)
        changes = tuple(Change(time_s=videos - 10.0, link=int(link), share=share) for link in chosen)
        for control in CONTROLS:
            course = simulate(one, control=control, until_s=videos + 10.0, changes=changes, options=OPTIONS)
            print(line(f"links at {100 * share:.0f}%", control, course), flush=True)
    for loss in (0.5, 1.0):
        for control in CONTROLS[1:]:
            course = simulate(one, control=control, until_s=videos + 10.0, loss=loss, options=OPTIONS)
            print(line(f"{100 * loss:.0f}% updates lost", control, course), flush=True)


if __name__ == "__main__":
    main()
