"""Hierarchical partitioning of a market in its worst event: each of the busiest clusters is lost alone.

    python -m benchmarks.cluster_losses [--clusters N]

The loss comes after the global decision, so that local control alone answers it. The weighted cost is
compared with that of a broker which decides again with all information.
"""

from __future__ import annotations

import argparse
from typing import Any, Final

import planner
from benchmarks.common import machine
from planner.runs.run import Run

SCENARIO: Final = "brokering/split_control"
DESIGNS: Final = ("c3", "pytheas")
LOCAL: Final = {"windows": 1000, "information": {"age_s": 300, "usable": 0.9}}
"""No global decision follows in the next windows."""


def weighted_cost(run: Run) -> float:
    """Return the weighted cost of a run's plan."""
    cost = run.metrics["weighted_cost"]
    assert cost is not None
    return cost


def main() -> None:
    """Print the excess cost and the clients without service after each loss, and the worst of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=8, help="busiest clusters to lose")
    count = parser.parse_args().clusters
    print(machine())
    before = {name: planner.solve(SCENARIO, design={name: LOCAL}) for name in DESIGNS}
    rows = before["c3"].plan.assignments
    traffic = (rows["clients"] * rows["bitrate_kbps"]).groupby(rows["cluster"]).sum()
    excess: dict[str, list[float]] = {name: [] for name in DESIGNS}
    for cluster in traffic.nlargest(count).index:
        changes: dict[str, Any] = {"problem.fail_clusters": [cluster]}
        least = weighted_cost(planner.solve(SCENARIO, design="omniscient", changes=changes))
        for name in DESIGNS:
            run = planner.solve(SCENARIO, design={name: LOCAL}, changes=changes, previous=before[name])
            excess[name].append(weighted_cost(run) / least - 1)
            print(f"{cluster:32s} {name:8s} {excess[name][-1]:7.2%}  unserved {run.metrics['unserved']:.0f}")
    for name in DESIGNS:
        print(f"{name}: at most {max(excess[name]):.2%} above all information")


if __name__ == "__main__":
    main()
