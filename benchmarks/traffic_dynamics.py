"""How fast flows in time are simulated, by hosts: LocalFlow every 50 ms over fat trees.

Flow sizes are those of the VL2 distribution where PLANNER_TRACES names a folder that has it, else
lognormal. What LocalFlow gains in time is `planner reproduce traffic/figure_10`.

    python -m benchmarks.traffic_dynamics [--quick]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import pandas as pd

from planner_models.traffic import execution, flow_sizes, generate
from planner_models.traffic.designs import DESIGNS
from planner_models.traffic.flow_sizes import Lognormal, Sizes

LOCALFLOW = next(design for design in DESIGNS if design.name == "localflow")


def sizes() -> tuple[Sizes, str]:
    """VL2's flow sizes where they can be had, else lognormal ones of a like mean and spread."""
    folder = os.environ.get("PLANNER_TRACES")
    path = Path(folder or "") / "flowsizes" / "VL2_CDF.txt"
    if folder and path.is_file():
        return flow_sizes.read(path), "VL2"
    return Lognormal(median_bytes=40_000, sigma=3.0), "lognormal"


def by_size(quick: bool) -> pd.DataFrame:
    """Wall seconds for a second of network time."""
    rows = []
    cases = [(8, 0.0), (8, 1e-4)] if quick else [(8, 0.0), (8, 1e-4), (16, 0.0), (16, 1e-4), (16, 1e-3)]
    drawn, _ = sizes()
    exact: dict[int, float] = {}
    for k, settle_s in cases:
        problem = generate.fat_tree(k=k, seed=1)
        seconds = 1.0 if k == 8 else 0.5
        started = time.perf_counter()
        done = execution.simulate(
            problem,
            sizes=drawn,
            until_s=seconds,
            design=LOCALFLOW,
            interval_s=0.05,
            settle_s=settle_s,
        )
        wall = time.perf_counter() - started
        throughput = done.throughput_mbps(seconds / 4) / 1e3
        exact.setdefault(k, throughput)
        rows.append(
            {
                "hosts": len(problem.demands),
                "settle_s": settle_s,
                "flows": len(done.flows),
                "wall_per_network_s": wall / seconds,
                "throughput_gbps": throughput,
                "vs_exact": throughput / exact[k] - 1,
            }
        )
    table = pd.DataFrame(rows)
    print("\nHow fast: LocalFlow every 50 ms")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    assert (table["vs_exact"].abs() < 0.2).all()
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="128 hosts only")
    given = parser.parse_args()
    print(f"cores: {os.cpu_count()}, load: {os.getloadavg()[0]:.2f}")
    by_size(given.quick)


if __name__ == "__main__":
    main()
