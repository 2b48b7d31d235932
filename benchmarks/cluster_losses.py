"""Hierarchical partitioning of a market in its worst event: busy clusters are lost, one by one and together.

    python -m benchmarks.cluster_losses [--clusters N] [--write]

The loss comes after the global decision, so that local control alone answers it. The weighted cost is
compared with that of a broker which decides again with all information. `--write` replaces
data/coordination/events.csv, which `planner recipes` reads.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

import planner
from benchmarks.common import machine
from planner.coordination.worst_cases import COLUMNS
from planner.runs.run import Run
from planner.version import __version__

FILE: Final = Path(__file__).parents[1] / "data" / "coordination" / "events.csv"
SCENARIO: Final = "brokering/split_control"
DESIGNS: Final = ("c3", "pytheas")
LOCAL: Final = {"windows": 1000, "information": {"age_s": 300, "usable": 0.9}}
"""No global decision follows in the next windows."""


def weighted_cost(run: Run) -> float:
    """Return the weighted cost of a run's plan."""
    cost = run.metrics["weighted_cost"]
    assert cost is not None
    return cost


def measure_event(event: str, lost: Sequence[str], before: dict[str, Run]) -> Iterator[dict[str, Any]]:
    """Yield the excess cost and the clients without service of each design after the loss of clusters."""
    changes: dict[str, Any] = {"problem.fail_clusters": list(lost)} if lost else {}
    least = weighted_cost(planner.solve(SCENARIO, design="omniscient", changes=changes))
    for name in DESIGNS:
        run = planner.solve(SCENARIO, design={name: LOCAL}, changes=changes, previous=before[name])
        yield {
            "scenario": SCENARIO,
            "design": name,
            "event": event,
            "lost": len(lost),
            "excess": weighted_cost(run) / least - 1,
            "unserved": run.metrics["unserved"],
            "version": __version__,
        }


def main() -> None:
    """Print the excess cost and the clients without service after each loss, and the worst of all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clusters", type=int, default=8, help="busiest clusters to lose")
    parser.add_argument("--write", action="store_true", help="replace data/coordination/events.csv")
    arguments = parser.parse_args()
    print(machine())
    before = {name: planner.solve(SCENARIO, design={name: LOCAL}) for name in DESIGNS}
    rows = before["c3"].plan.assignments
    traffic = (rows["clients"] * rows["bitrate_kbps"]).groupby(rows["cluster"]).sum()
    busiest = [str(name) for name in traffic.nlargest(arguments.clusters).index]
    events = {"no loss": [], **{f"loss of {name}": [name] for name in busiest}}
    events[f"loss of the {len(busiest)} busiest clusters"] = busiest
    frame = pd.DataFrame(
        [row for event, lost in events.items() for row in measure_event(event, lost, before)]
    )
    for row in frame.to_dict(orient="records"):
        print(
            f"{row['event']:40s} {row['design']:8s} {row['excess']:7.2%}  unserved {row['unserved']:.0f}",
            flush=True,
        )
    for name, excess in frame.groupby("design")["excess"].max().items():
        print(f"{name}: at most {excess:.2%} above all information")
    if arguments.write:
        frame[list(COLUMNS)].to_csv(FILE, index=False, lineterminator="\n", float_format="%.7g")
        print(f"wrote {len(frame)} rows to {FILE}; {machine()}")


if __name__ == "__main__":
    main()
