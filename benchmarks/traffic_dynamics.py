"""Speed of the flow-level simulation by number of hosts: LocalFlow every 50 ms on fat trees.

Flow sizes have the VL2 distribution where PLANNER_TRACES names a folder that has it, else they are
lognormal.

    python -m benchmarks.traffic_dynamics [--quick]
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pandas as pd

from benchmarks.common import machine, parser_of
from planner_models.traffic.designs import DESIGNS
from planner_models.traffic.problem import generators
from planner_models.traffic.simulation import flow_arrivals, flow_level_simulation
from planner_models.traffic.simulation.flow_arrivals import Lognormal, SizeDistribution

LOCALFLOW = next(design for design in DESIGNS if design.name == "localflow")


def size_distribution() -> SizeDistribution:
    """Return the VL2 distribution of flow sizes, or a lognormal one where VL2 is missing."""
    folder = os.environ.get("PLANNER_TRACES")
    path = Path(folder or "") / "flowsizes" / "VL2_CDF.txt"
    if folder and path.is_file():
        return flow_arrivals.read(path)
    return Lognormal(median_bytes=40_000, sigma=3.0)


def time_simulations(quick: bool) -> None:
    """Print the wall seconds for a second of network time; check that settling changes throughput little."""
    rows = []
    cases = [(8, 0.0), (8, 1e-4)] if quick else [(8, 0.0), (8, 1e-4), (16, 0.0), (16, 1e-4), (16, 1e-3)]
    sizes = size_distribution()
    exact: dict[int, float] = {}
    for k, settle_s in cases:
        problem = generators.fat_tree(k=k, seed=1)
        seconds = 1.0 if k == 8 else 0.5
        start = time.perf_counter()
        result = flow_level_simulation.simulate(
            problem,
            sizes=sizes,
            until_s=seconds,
            design=LOCALFLOW,
            interval_s=0.05,
            settle_s=settle_s,
        )
        wall = time.perf_counter() - start
        throughput = result.throughput_mbps(seconds / 4) / 1e3
        exact.setdefault(k, throughput)
        rows.append(
            {
                "hosts": len(problem.demands),
                "settle_s": settle_s,
                "flows": len(result.flows),
                "wall_per_network_s": wall / seconds,
                "throughput_gbps": throughput,
                "vs_exact": throughput / exact[k] - 1,
            }
        )
    table = pd.DataFrame(rows)
    print("\nLocalFlow every 50 ms")
    print(table.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    assert (table["vs_exact"].abs() < 0.2).all()


def main() -> None:
    """Print the table."""
    quick = parser_of(__doc__, "128 hosts only").parse_args().quick
    print(machine())
    time_simulations(quick)


if __name__ == "__main__":
    main()
