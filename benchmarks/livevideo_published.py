"""Tables 4.3 to 4.5 of Mukerjee 2018 beside ours: python -m benchmarks.livevideo_published [--quick]

The traces are drawn anew, so orders count, not values. EE Everything Everywhere, OM Overlay
Multicast; cost is per satisfied request and relative to VDN's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from planner import Options
from planner_models.livevideo import LiveVideo, columns, dns, everywhere, generate, measure, multicast

PUBLISHED: dict[str, dict[str, tuple[float, float, float]]] = {  # kbit/s, x VDN's cost, % at bitrate
    "Average Day, Table 4.3": {
        "EE": (624, 174, 12), "OM": (2725, 1.1, 100), "CDN": (2725, 1.54, 100), "VDN": (2725, 1, 100),
    },
    "Large Event, Table 4.4": {
        "EE": (0.08, 167_000, 0), "OM": (2725, 1.1, 100), "CDN": (2725, 2.0, 100), "VDN": (2725, 1, 100),
    },
    "Heavy-Tail, Table 4.5": {
        "EE": (812, 7.7, 25), "OM": (1641, 4.1, 34), "CDN": (2068, 1.2, 54), "VDN": (3454, 1, 78),
    },
}  # fmt: skip


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    seconds = 3.0 if quick else 30.0
    small: dict[str, Any] = {"videos": 300, "groups": 300} if quick else {}
    makers: dict[str, Callable[[], LiveVideo]] = {
        "Average Day, Table 4.3": lambda: generate.average_day(seed=1, **small),
        "Large Event, Table 4.4": lambda: generate.large_event(seed=1, **small),
        "Heavy-Tail, Table 4.5": lambda: generate.heavy_tail(seed=1, **small),
    }
    for name, make in makers.items():
        problem = make()
        print(f"{name}: {problem.size()}")
        plans = {
            "VDN": columns.distribute(problem, options=Options(time_limit_s=seconds, gap=1e-3)).plan,
            "EE": everywhere.distribute(problem).plan,
            "OM": multicast.distribute(problem).plan,
            "OM, blind": multicast.distribute(problem, sees_load=False).plan,
            "CDN": dns.distribute(problem).plan,
            "CDN-1": dns.distribute_1s(problem).plan,
        }
        unit = None
        for design, plan in plans.items():
            assert plan is not None
            metrics = measure(problem, plan, None)
            cost = metrics["cost_per_satisfied"]
            unit = unit or cost
            assert unit is not None
            relative = cost / unit if cost is not None else float("nan")
            bitrate, served = metrics["average_bitrate_kbps"], metrics["clients_at_bitrate"]
            ours = f"{bitrate:8.1f} {relative:8.2f} {served:6.1f}%"
            theirs = PUBLISHED[name].get(design)
            shown = "not available" if theirs is None else f"{theirs[0]:8g} {theirs[1]:8g} {theirs[2]:6g}%"
            print(f"  {design:10} ours {ours}   published {shown}", flush=True)


if __name__ == "__main__":
    main()
